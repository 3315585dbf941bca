//! `onward schedule backfill`

use clap::Args;
use onward_store::{Firing, Timestamp};
use serde_json::json;

use super::command::{OverlapPolicy, Schedule, open};
use super::trigger::text;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{moment, print_json, print_line, remark};
use crate::values::parse_past_time;

/// Arguments of `onward schedule backfill`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    schedule: Schedule,
    /// Start of the range: '2026-11-27 12:00', yesterday, 7d (ago), 2026-11-27T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    from: Timestamp,
    /// End of the range, not included (written as for --from)
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    until: Timestamp,
    /// Action while the task of the previous firing is active
    #[arg(long, value_name = "POLICY", default_value = "allow")]
    overlap: OverlapPolicy,
}

/// Fires a schedule for its moments in a range, at most 1000.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { schedule: Schedule { schedule }, from, until, overlap } = arguments;
    if until <= from {
        return Err(wrong_usage("--until is not after --from; the range is empty"));
    }
    let filled = open(options).await?.backfill_schedule(&schedule, from, until, overlap.into()).await?;
    for (at, firing) in &filled {
        if options.json {
            print_json(&json!({ "at": at, "became": firing }))?;
        } else {
            print_line(format_args!("{}  {}", moment(*at), text(firing)))?;
        }
    }
    if filled.is_empty() {
        remark("the schedule has no moment in this range");
    }
    let failed = filled.iter().any(|(_, firing)| matches!(firing, Firing::Failed { .. }));
    Ok(if failed { ExitCode::Failed } else { ExitCode::Done })
}
