//! The arguments of `onward run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::values::{Jobs, parse_duration};

/// Arguments of `onward run`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The file with the workflow
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Input of the run: a JSON object, @FILE with one, or NAME=VALUE for one field; repeat to add
    /// fields
    #[arg(long, short, value_name = "INPUT")]
    pub(super) input: Vec<String>,
    /// Environment of the template to run in
    #[arg(long, value_name = "NAME")]
    pub(super) env: Option<String>,
    /// Start another run, although one with the same key exists
    #[arg(long, conflicts_with_all = ["check", "graph"])]
    pub(super) again: bool,
    /// Retry the steps that did not complete, and continue from there
    #[arg(long, conflicts_with_all = ["again", "check", "graph"])]
    pub(super) retry: bool,
    /// Take over what the last run of the workflow did, and run these steps again with all behind
    /// them; repeat for more steps. Without --input, with the input of that run
    #[arg(long, value_name = "STEP", conflicts_with_all = ["again", "retry", "check", "graph"])]
    pub(super) from: Vec<String>,
    /// Run these steps alone, on the results of the last run; repeat for more steps. Without
    /// --input, with the input of that run
    #[arg(long, value_name = "STEP", conflicts_with_all = ["from", "again", "retry", "check", "graph"])]
    pub(super) only: Vec<String>,
    /// Check the file and the input, print the plan, and run nothing
    #[arg(long, conflicts_with = "graph")]
    pub(super) check: bool,
    /// Print the steps as a Mermaid diagram, and run nothing
    #[arg(long)]
    pub(super) graph: bool,
    /// Number of steps that run at once: 4, or 50% of the cores
    #[arg(long, short, value_name = "COUNT", default_value = "100%")]
    pub(super) jobs: Jobs,
    /// Time that a stopped script has to end before it is killed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s")]
    pub(super) grace: Duration,
}

const AFTER_HELP: &str = "\
A step is finished when its result is in the store. After any interruption, run the same command again: it resumes
where it stopped and repeats no finished step. Run it once more after the end, and it prints the result without
running anything. --retry retries what failed in it, and --again starts another run. An edited file is another
workflow: --from STEP takes the results of its last run over, by the names of the steps.

The smallest workflow is a list of commands:
  - cargo fetch
  - cargo build --release
  - cargo test --release

Scripts run with sh -eu -c in the current directory. The environment of a script has ONWARD_RUN_ID, ONWARD_TASK_ID
and ONWARD_ATTEMPT (1 for the first). Its stdout is the result of the step: as JSON if it is JSON, else as a text.

A value of --input NAME=VALUE is JSON if it can be read as JSON and the input schema does not ask for a text.

Examples:
  onward run build.yaml
  onward run report.yaml --input day=2026-11-27 --input to=ops@example.org
  onward run order.yaml --input @order.json --env staging
  onward run report.yaml --from mail
  onward run report.yaml --check";
