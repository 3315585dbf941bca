//! Reports of ended lines: output, remarks about failures, and the tally.

use onward_store::TaskState;

use super::arguments::Arguments;
use super::record::LineResult;
use super::sinks::Sinks;
use super::summary::Tally;
use super::template::Template;
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted, one_line, remark};

/// The number of failures that are shown one by one.
const FAILURES_SHOWN: u64 = 20;

/// The number of lines for which the position of a cut is shown.
const CUTS_SHOWN: u64 = 20;

/// The number of lines at the end of stderr that are shown for a failure.
const STDERR_LINES: usize = 3;

/// The number of columns that are shown of each of these lines, and of the input.
const SHOWN_COLUMNS: usize = 100;

/// A report of ended lines.
#[derive(Debug)]
pub(super) struct Report {
    sinks: Sinks,
    bar: ProgressBar,
    tally: Tally,
}

impl Report {
    /// Opens the destinations of the results.
    pub(super) fn open(
        options: &GlobalOptions,
        arguments: &Arguments,
        template: &Template,
        total: Option<u64>,
    ) -> anyhow::Result<Self> {
        let sinks = Sinks::open(arguments, template, options.json)?;
        Ok(Self { sinks, bar: ProgressBar::new(options, Unit::Lines, total), tally: Tally::default() })
    }

    /// Returns a function that writes lines for people. Any thread may call it.
    pub(super) fn notices(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let bar = self.bar.clone();
        move |line| bar.suspend(|| remark(line))
    }

    /// Returns the tally so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Shows the number of lines that have ended, reported or not.
    pub(super) fn ended(&self, lines: u64) {
        self.bar.set_position(lines);
    }

    /// Shows the number of lines, once it is known.
    pub(super) fn total(&self, lines: u64) {
        self.bar.set_length(Unit::Lines, lines);
    }

    /// Reports one line.
    pub(super) fn line(&mut self, result: &LineResult, earlier: bool) -> anyhow::Result<()> {
        self.tally.earlier += u64::from(earlier);
        self.tally.cut += u64::from(result.is_cut());
        let (bar, sinks) = (&self.bar, &mut self.sinks);
        if result.is_done() {
            self.tally.done += 1;
        } else {
            self.tally.failed += 1;
            bar.set_message(format!("{} failed", self.tally.failed));
        }
        let (failed, cut) = (self.tally.failed, self.tally.cut);
        bar.suspend(|| {
            sinks.write(result)?;
            if !result.is_done() {
                show_failure(result, failed);
            }
            if result.is_cut() && cut <= CUTS_SHOWN {
                show_cut(result);
            }
            Ok(())
        })
    }

    /// Removes the progress bar.
    pub(super) fn close(&self) {
        self.bar.clear();
    }
}

/// Reports the position at which the output of a line was cut.
fn show_cut(result: &LineResult) {
    let stdout =
        result.stdout.cut.then(|| format!("stdout is cut after its first {} bytes", result.stdout.bytes.len()));
    let stderr =
        result.stderr.cut.then(|| format!("stderr is cut before its last {} bytes", result.stderr.bytes.len()));
    let where_cut: Vec<String> = stdout.into_iter().chain(stderr).collect();
    let more = if result.is_done() { "; --capture keeps more" } else { "" };
    remark(format_args!("line {} ({}): {}{more}", result.line, input_text(result), where_cut.join(", ")));
}

fn input_text(result: &LineResult) -> String {
    one_line(&String::from_utf8_lossy(&result.input), SHOWN_COLUMNS)
}

fn show_failure(result: &LineResult, count: u64) {
    if count > FAILURES_SHOWN {
        if count == FAILURES_SHOWN + 1 {
            remark("further failures are not shown here; --failures FILE and --results FILE have all of them");
        }
        return;
    }
    let input = input_text(result);
    let why = result.error.as_deref().unwrap_or("failed");
    let state = match result.state {
        Some(TaskState::Failed) => "failed permanently".to_owned(),
        Some(state) => format!("is {state}"),
        None => "is pruned".to_owned(),
    };
    let attempts = counted(result.attempts.into(), "attempt");
    remark(format_args!("line {} ({input}) {state} after {attempts}: {why}", result.line));
    let stderr = String::from_utf8_lossy(&result.stderr.bytes);
    let last: Vec<&str> = stderr.lines().rev().take(STDERR_LINES).collect();
    last.iter().rev().for_each(|line| remark(format_args!("    {}", one_line(line, SHOWN_COLUMNS))));
}
