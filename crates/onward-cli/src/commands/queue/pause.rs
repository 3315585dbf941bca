//! `onward queue pause`

use std::time::Duration;

use clap::Args;
use onward_store::{Scope, Timestamp, Write};
use serde_json::json;

use super::scope::{self, scope_text};
use crate::apply::apply_one;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{moment, print_json, print_line};
use crate::store_file;
use crate::values::{check_queue, parse_coming_time, parse_positive_duration};

/// Arguments of `onward queue pause`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scope: scope::Scoped,
    /// Resume automatically at this time: 'tomorrow 9:00', '2026-11-27 12:00', 12:00 (the next),
    /// 2026-11-27T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_coming_time, conflicts_with = "duration")]
    until: Option<Timestamp>,
    /// Resume automatically after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_positive_duration)]
    duration: Option<Duration>,
}

/// Pauses the scope.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let scope = arguments.scope.scope();
    if let Scope::Queue(queue) = &scope {
        check_queue(queue)?;
    }
    let store = store_file::open_or_create(options).await?;
    let now = store.clock().now();
    if let Some(until) = arguments.until.filter(|until| *until <= now) {
        return Err(wrong_usage(format!(
            "--until {}: this time has passed; a pause ends in the future, or when it is resumed",
            moment(until)
        )));
    }
    let after = arguments.duration.map(|duration| now.plus(duration));
    let until = arguments.until.or(after);
    apply_one(&*store, Write::Pause { scope: scope.clone(), until }).await?;
    if options.json {
        print_json(&json!({ "paused": scope, "until": until }))?;
    } else {
        let until = until.map(|until| format!(" until {}", moment(until))).unwrap_or_default();
        print_line(format_args!("paused {}{until}", scope_text(&scope)))?;
    }
    Ok(ExitCode::Done)
}
