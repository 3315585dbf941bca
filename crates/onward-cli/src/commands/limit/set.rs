//! `onward limit set`

use clap::Args;
use onward_store::{
    ConcurrencyLimit, GroupShare, Limit, LimitScope, Outcome, RateLimit, SetLimit, Store, Write, bounds,
};

use super::list::{json_of, limit_text};
use super::scope::{Scoped, scope_text};
use crate::apply::{apply_one, unexpected};
use crate::commands::queue::parse_concurrency;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::{Rate, check_queue};

/// Arguments of `onward limit set`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scope: Scoped,
    #[command(flatten)]
    limit: Limits,
}

/// The limits to change.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Limits {
    /// Largest number of tasks that run at once, in all processes together: 1 to 1000000, or none
    /// for no limit
    #[arg(long, value_name = "COUNT|none", value_parser = parse_concurrency)]
    concurrency: Option<ConcurrencyLimit>,
    /// Rate at which tasks start, in all processes together: 10/s, 100/m or 5/h, or none for no
    /// limit
    #[arg(long, value_name = "RATE|none", value_parser = parse_rate)]
    rate: Option<RateLimit>,
    /// Largest number of tasks that start at once after a pause; default: the starts per second, at
    /// least one
    #[arg(long, value_name = "COUNT", requires = "rate", value_parser = clap::value_parser!(u32).range(1..=i64::from(bounds::RATE_BURST)))]
    burst: Option<u32>,
    /// Groups only: share of the starts of a queue among the groups with work there, 1 to 1000, or
    /// none, which counts as 1
    #[arg(long, value_name = "WEIGHT|none", value_parser = parse_weight, conflicts_with_all = NOT_OF_GROUPS)]
    weight: Option<GroupShare>,
    /// Groups only: a group with fewer running tasks goes before groups that have reached their
    /// minimum, 1 to 1000000, or none
    #[arg(long, value_name = "COUNT|none", value_parser = parse_minimum, conflicts_with_all = NOT_OF_GROUPS)]
    minimum: Option<GroupShare>,
}

/// The scopes that have neither a weight nor a minimum.
const NOT_OF_GROUPS: [&str; 3] = ["queue", "kind", "all"];

fn parse_weight(text: &str) -> Result<GroupShare, String> {
    parse_share(text, bounds::GROUP_WEIGHT)
}

fn parse_minimum(text: &str) -> Result<GroupShare, String> {
    parse_share(text, bounds::QUEUE_CONCURRENCY)
}

fn parse_share(text: &str, most: u32) -> Result<GroupShare, String> {
    if text == "none" {
        return Ok(GroupShare::Unset);
    }
    let share = text.parse().ok().filter(|share| (1..=most).contains(share));
    share.map(GroupShare::Of).ok_or_else(|| format!("it must be from 1 to {most}, or `none`"))
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
    let Arguments { scope, limit: Limits { concurrency, rate, burst, weight, minimum } } = arguments;
    let rate = rate.map(|rate| match (rate, burst) {
        (RateLimit::AtMost(rate), Some(burst)) => RateLimit::AtMost(rate.burst(burst)),
        _ => rate,
    });
    let scope = scope.scope();
    if let LimitScope::Queue(queue) = &scope {
        check_queue(queue)?;
    }
    let store = store_file::open_to_edit(options, true).await?;
    let limit = set(&*store, SetLimit { scope: scope.clone(), concurrency, rate, weight, minimum }).await?;
    show(options, &scope, limit)
}

pub(super) async fn set(store: &dyn Store, set: SetLimit) -> anyhow::Result<Limit> {
    match apply_one(store, Write::SetLimit(set)).await? {
        Outcome::LimitSet(limit) => Ok(limit),
        other => Err(unexpected(other)),
    }
}

/// Prints the limit that applies now.
pub(super) fn show(options: &GlobalOptions, scope: &LimitScope, limit: Limit) -> anyhow::Result<ExitCode> {
    if options.json {
        print_json(&json_of(scope, limit))?;
    } else {
        print_line(format_args!("limit on {}: {}", scope_text(scope), limit_text(limit)))?;
    }
    Ok(ExitCode::Done)
}
