//! `onward limit set`

use clap::Args;
use onward_store::{ConcurrencyLimit, Limit, LimitScope, Outcome, RateLimit, SetLimit, Store, Write, limits};

use super::list::{json_of, limit_text};
use super::scope::{Scoped, scope_text};
use crate::apply::{apply_one, unexpected};
use crate::commands::queue::parse_concurrency;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::Rate;

/// Arguments of `onward limit set`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scope: Scoped,
    #[command(flatten)]
    limit: Limits,
}

/// What is to change.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Limits {
    /// The most tasks that run at once, in all processes together: 1 to 1000000, or none for any number
    #[arg(long, value_name = "COUNT|none", value_parser = parse_concurrency)]
    concurrency: Option<ConcurrencyLimit>,
    /// How fast tasks start, in all processes together: 10/s, 100/m or 5/h, or none for as fast as they can
    #[arg(long, value_name = "RATE|none", value_parser = parse_rate)]
    rate: Option<RateLimit>,
    /// How many tasks may start at once after a pause; default: as many as start in a second, and one at least
    #[arg(long, value_name = "COUNT", requires = "rate", value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::RATE_BURST)))]
    burst: Option<u32>,
}

fn parse_rate(text: &str) -> Result<RateLimit, String> {
    if text == "none" {
        return Ok(RateLimit::Unlimited);
    }
    let rate: Rate = text.parse()?;
    Ok(RateLimit::AtMost(onward_store::Rate::new(rate.starts, rate.period)))
}

/// Changes a limit.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { scope, limit: Limits { concurrency, rate, burst } } = arguments;
    let rate = rate.map(|rate| match (rate, burst) {
        (RateLimit::AtMost(rate), Some(burst)) => RateLimit::AtMost(rate.burst(burst)),
        _ => rate,
    });
    let scope = scope.scope();
    let store = store_file::open_existing(options).await?;
    let limit = set(&*store, SetLimit { scope: scope.clone(), concurrency, rate }).await?;
    show(options, &scope, limit)
}

pub(super) async fn set(store: &dyn Store, set: SetLimit) -> anyhow::Result<Limit> {
    match apply_one(store, Write::SetLimit(set)).await? {
        Outcome::LimitSet(limit) => Ok(limit),
        other => Err(unexpected(other)),
    }
}

/// Says what holds now.
pub(super) fn show(options: &GlobalOptions, scope: &LimitScope, limit: Limit) -> anyhow::Result<ExitCode> {
    if options.json {
        print_json(&json_of(scope, limit))?;
    } else {
        print_line(format_args!("limit on {}: {}", scope_text(scope), limit_text(limit)))?;
    }
    Ok(ExitCode::Done)
}
