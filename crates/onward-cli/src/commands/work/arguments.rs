//! The arguments of `onward work`.

use std::ffi::OsString;
#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onward::Preemption;
use onward_store::{Name, Priority};

use super::pressure::PressureOptions;
use crate::values::{Jobs, parse_duration, parse_kind, parse_priority};

/// Arguments of `onward work`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Run tasks of this kind, or of all kinds with a prefix (mail:*); may be given several times
    #[arg(long = "kind", value_name = "KIND", required = true, value_parser = parse_kind)]
    pub(super) kinds: Vec<Name>,
    /// Claim tasks from this queue only; may be given several times; default: from every queue
    #[arg(long = "queue", value_name = "QUEUE")]
    pub(super) queues: Vec<Name>,
    /// Number of commands that run at once: 4, or 50% of the cores
    #[arg(long, short, value_name = "COUNT", default_value = "100%")]
    jobs: Jobs,
    /// Time that a stopped command has to end before it is killed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s")]
    pub(super) grace: Duration,
    /// Time without a heartbeat after which other processes take over the tasks of this one; with a
    /// file, they take over at once if it is gone
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub(super) lease: Duration,
    /// Preempt commands for tasks of at least this priority: the running command with the lowest
    /// priority, if at least 64 levels lower, is stopped and retried later
    #[arg(long, value_name = "PRIORITY", value_parser = parse_priority)]
    preempt_from: Option<Priority>,
    #[command(flatten)]
    pub(super) pressure: PressureOptions,
    /// While working, forget tasks this long after they have ended (see onward store prune)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) keep_ended_for: Option<Duration>,
    /// While working, forget ended tasks except this many of the newest
    #[arg(long, value_name = "COUNT")]
    pub(super) keep_ended: Option<u64>,
    /// Stop when nothing is due and nothing runs
    #[arg(long)]
    pub(super) until_idle: bool,
    /// Print nothing to stderr about the start, the end, failed tasks and the stderr of commands
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Write stdout and stderr of each attempt to files TASK.ATTEMPT.out and TASK.ATTEMPT.err in
    /// this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) output_dir: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address (default: loopback)
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:9464")]
    pub(super) metrics: Option<SocketAddr>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
The command gets the payload on stdin; what it writes to stdout is the result. Its environment has ONWARD_TASK_ID,
ONWARD_KIND, ONWARD_QUEUE, ONWARD_ATTEMPT and ONWARD_REPORT.
For a bundle (onward submit --aggregate-size) it gets a line of JSON for each member, {\"payload\":\"…\",\"task\":7}, and
ONWARD_MEMBERS says how many there are.

How it ends:
  exit 0            completed
  exit 100          failed, and trying again cannot help
  any other exit    failed, and is tried again as the task's retry policy says (75 by convention)
  by a signal       failed, and is tried again
Of a failure, the end of stderr is kept as the error. Of a command that succeeds, the end of stderr is shown on the worker's.

On stderr the worker says what it serves, which attempts fail and why, and in the end how many tasks ended how; with --json as
lines of JSON, and with --quiet not at all.

ONWARD_REPORT is a pipe into which the command may write lines while it runs:
  progress 0.42 halfway there    how far it is, and what it is doing
  heartbeat                      it is alive (onward submit --heartbeat-timeout); progress says so too
  retry-after 30s                if it fails, try again after this long
  fail no such account           whatever its exit, it has failed and trying again cannot help

Example:
  onward work --kind resize --jobs 4 -- ./resize.sh";

impl Arguments {
    /// Returns the preemption that the user configured.
    pub(super) fn preemption(&self) -> Option<Preemption> {
        self.preempt_from.map(|from| Preemption { from, ..Preemption::default() })
    }

    /// Returns the number of commands that run at once.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.count()
    }
}
