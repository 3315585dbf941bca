//! `onward limit list`

use onward_store::{Limit, LimitRecord, LimitScope, Rate, StoreReads};
use serde_json::{Value, json};

use super::scope::scope_text;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, duration_text, optional, print_json, print_table, remark};
use crate::store_file;

/// Lists the limits.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let limits = store.limits().await?;
    if options.json {
        for LimitRecord { scope, limit, running, tokens } in &limits {
            let mut value = json_of(scope, *limit);
            value["running"] = json!(running);
            value["tokens"] = json!(tokens);
            print_json(&value)?;
        }
    } else if limits.is_empty() {
        remark("no limits; onward limit set makes one");
    } else {
        print_table(table(&limits))?;
    }
    Ok(ExitCode::Done)
}

fn table(limits: &[LimitRecord]) -> Table {
    let mut table = Table::new([
        ("LIMIT ON", Align::Left),
        ("CONCURRENCY", Align::Right),
        ("RUNNING", Align::Right),
        ("RATE", Align::Right),
        ("BURST", Align::Right),
        ("TOKENS", Align::Right),
        ("WEIGHT", Align::Right),
        ("MINIMUM", Align::Right),
    ]);
    for LimitRecord { scope, limit, running, tokens } in limits {
        table.row([
            scope_text(scope),
            optional(limit.concurrency, |limit| limit.to_string()),
            optional(*running, |running| running.to_string()),
            optional(limit.rate, rate_text),
            optional(limit.rate, |rate| rate.burst.to_string()),
            optional(*tokens, |tokens| tokens.to_string()),
            optional(limit.weight, |weight| weight.to_string()),
            optional(limit.minimum, |minimum| minimum.to_string()),
        ]);
    }
    table
}

/// Returns a rate as text for people: `10/s`.
pub(crate) fn rate_text(rate: Rate) -> String {
    let per = match rate.per.as_millis() {
        1000 => "s".to_owned(),
        60_000 => "m".to_owned(),
        3_600_000 => "h".to_owned(),
        _ => duration_text(rate.per),
    };
    format!("{}/{per}", rate.tasks)
}

/// Returns a limit as text for people.
pub(super) fn limit_text(limit: Limit) -> String {
    let concurrency = limit.concurrency.map(|tasks| format!("concurrency {tasks}"));
    let rate = limit.rate.map(|rate| format!("rate {} with a burst of {}", rate_text(rate), rate.burst));
    let weight = limit.weight.map(|weight| format!("weight {weight}"));
    let minimum = limit.minimum.map(|tasks| format!("minimum {tasks}"));
    match [concurrency, rate, weight, minimum].into_iter().flatten().collect::<Vec<_>>() {
        limits if limits.is_empty() => "none".to_owned(),
        limits => limits.join(", "),
    }
}

/// Returns a limit as JSON, with durations in seconds.
pub(super) fn json_of(scope: &LimitScope, limit: Limit) -> Value {
    let mut value = json!(scope);
    value["concurrency"] = json!(limit.concurrency);
    value["weight"] = json!(limit.weight);
    value["minimum"] = json!(limit.minimum);
    value["rate"] = limit
        .rate
        .map_or(Value::Null, |rate| json!({ "tasks": rate.tasks, "per": rate.per.as_secs_f64(), "burst": rate.burst }));
    value
}
