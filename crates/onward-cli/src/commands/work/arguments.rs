//! The arguments of `onward work`.

use std::ffi::OsString;
#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onward::limits::Preemption;
use onward_store::{Name, Priority};

use super::pressure::PressureOptions;
#[cfg(feature = "metrics")]
use crate::values::parse_address;
use crate::values::{Jobs, parse_duration, parse_kind, parse_priority, parse_queue};

/// Arguments of `onward work`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group(clap::ArgGroup::new("gateway").args(GATEWAY).multiple(true)))]
pub(crate) struct Arguments {
    /// Run tasks of this kind, or of all kinds with a prefix (mail:*); may be given several times
    #[arg(long = "kind", value_name = "KIND", required_unless_present_any = OTHER_WORK, requires = "command", value_parser = parse_kind)]
    pub(super) kinds: Vec<Name>,
    /// Claim tasks from this queue only; may be given several times; default: from every queue
    #[arg(long = "queue", value_name = "QUEUE", value_parser = parse_queue)]
    pub(super) queues: Vec<Name>,
    /// Start this program as a worker, which names the kinds that it handles; may be given several
    /// times. It is a line of words with quotes as in a shell
    #[arg(long = "app", value_name = "COMMAND", conflicts_with_all = OF_COMMANDS)]
    pub(super) apps: Vec<String>,
    /// Serve workers that connect to this address: ipc:///run/onward.sock, which only you can use,
    /// or tcp://127.0.0.1:PORT; may be given several times
    #[arg(long = "listen", value_name = "ADDRESS", conflicts_with_all = OF_COMMANDS)]
    pub(super) listen: Vec<String>,
    /// Carry on the workflow runs of the store: decide which steps start, and start them
    #[arg(long)]
    pub(super) workflows: bool,
    /// Run the scripts of workflow steps too, each with sh
    #[arg(long, requires = "workflows")]
    pub(super) scripts: bool,
    /// Give each worker at most this many tasks at once; default: as many as it asks for
    #[arg(long, value_name = "COUNT", requires = "gateway", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) slots: Option<u32>,
    /// Number of commands that run at once: 4, or 50% of the cores
    #[arg(long, short, value_name = "COUNT", default_value = "100%")]
    jobs: Jobs,
    /// Time that a stopped command has to end before it is killed, and a stopped task of a worker
    /// before the engine ends it
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
    #[arg(value_parser = parse_address)]
    pub(super) metrics: Option<SocketAddr>,
    /// The command and its arguments
    #[arg(last = true, required_unless_present_any = OTHER_WORK, requires = "kinds", value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// The options that serve workers, and need no command.
const GATEWAY: [&str; 2] = ["apps", "listen"];

/// The options that give the process work, so that it needs no command.
const OTHER_WORK: [&str; 3] = ["apps", "listen", "workflows"];

/// The options that only an engine of this process uses.
const OF_COMMANDS: [&str; 12] = [
    "kinds",
    "workflows",
    "scripts",
    "jobs",
    "preempt_from",
    "resources",
    "bandwidths",
    "keep_ended_for",
    "keep_ended",
    "until_idle",
    "output_dir",
    "command",
];

const AFTER_HELP: &str = "\
The command receives the payload on stdin, and its stdout is the result. Its environment has ONWARD_TASK_ID,
ONWARD_KIND, ONWARD_QUEUE, ONWARD_ATTEMPT and ONWARD_REPORT.
For a batch (onward submit --aggregate-size) stdin has a line of JSON for each item, {\"payload\":\"…\",\"task\":7}, and
ONWARD_BATCH_ITEMS is their number.

Its end decides the outcome of the attempt:
  exit 0            completed
  exit 100          failed permanently; a retry cannot help
  any other exit    failed; retried by the task's retry policy (75 by convention)
  by a signal       failed; retried by the task's retry policy
After a failure, the end of stderr is kept as the error. After a success, the end of stderr is shown on the stderr of the worker.

On stderr the worker reports the kinds and queues that it serves, failed attempts with their errors, and at the end
the number of tasks by outcome; with --json as lines of JSON, with --quiet nothing.

ONWARD_REPORT is a pipe to which the command may write lines while it runs:
  progress 0.42 halfway there    the completed fraction, and what the command does
  heartbeat                      the command is alive (onward submit --heartbeat-timeout)
  retry-after 30s                if it fails, retry after this long
  complete-later 3d              if it exits with 0, the task awaits onward task complete
  move slow                      if it exits with 0, the task continues in this queue, uncounted
  fail no such account           failed permanently, regardless of the exit code

With --app the program is a worker in any language: it speaks the worker protocol, says which kinds it handles, and
runs many tasks. It is started again when it ends, and its output goes to stderr. Ctrl-C and SIGTERM let running tasks
finish; a second one stops at once. With --listen such workers are started by others, and connect with
ONWARD_GATEWAY=ipc:///run/onward.sock in their environment.

With --workflows the process carries on the runs that onward workflow start and other programs have started. Steps with
task: run where a worker serves their kind. Steps with run: execute text from templates of the store, so they need
--scripts.

Examples:
  onward work --kind resize --jobs 4 -- ./resize.sh
  onward work --app \"python app.py\"
  onward work --workflows --scripts
  onward work --listen ipc:///run/onward.sock";

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
