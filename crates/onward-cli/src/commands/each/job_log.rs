//! The rows of `--job-log`, in the columns of GNU parallel's job log.

use super::dry_run::shell_words;
use super::record::LineResult;
use super::template::Template;

/// The first row. Tools that read the log of GNU parallel expect these names.
pub(super) const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// The value of `Exitval` for a command that did not end by itself.
const NO_EXIT: i32 = -1;

/// Returns the row of an ended line. Times are seconds since 1970 and seconds of the last attempt,
/// with three decimals. `Send` is always 0, because every command runs on this machine, and
/// `Receive` is the number of bytes of stdout that were kept. Returns `None` for a line that never
/// started, or whose task has been pruned.
pub(super) fn row(template: &Template, result: &LineResult) -> Option<Vec<u8>> {
    let (started_at, finished_at) = (result.started_at?, result.finished_at?);
    let (started, finished) = (started_at.as_microseconds(), finished_at.as_microseconds());
    let signal = result.signal().unwrap_or(0);
    let exit = result.exit.unwrap_or(NO_EXIT);
    let columns = format!(
        "{}\t:\t{}\t{}\t0\t{}\t{exit}\t{signal}\t",
        result.line,
        seconds(started),
        // The clock of the system may have been set back in between.
        seconds(finished.saturating_sub(started).max(0)),
        result.stdout.bytes.len(),
    );
    let command = shell_words(&template.fill(&result.input, &result.line.to_string(), Vec::new()));
    Some([columns.as_bytes(), &one_row(&command), b"\n"].concat())
}

fn seconds(microseconds: i64) -> String {
    format!("{}.{:03}", microseconds / 1_000_000, microseconds % 1_000_000 / 1000)
}

/// Replaces the bytes that end a row or a column by spaces.
fn one_row(command: &[u8]) -> Vec<u8> {
    command.iter().map(|byte| if matches!(byte, b'\n' | b'\t' | b'\r') { b' ' } else { *byte }).collect()
}
