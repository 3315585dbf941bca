//! The stored result of an ended line, and reading it back.
//!
//! A command that succeeded leaves a result: a line of JSON with the lengths of its streams, then
//! the streams. A command that failed leaves an error, which the store limits to 8 KiB: a line for
//! people with the lengths of the kept parts of the streams, then these parts.

use bytes::Bytes;
use onward_store::{TaskRecord, TaskState, Timestamp, bounds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::output::bytes_field;
use crate::process::{Captured, End, Finished};

/// The bytes that are kept of the end of stderr after a failed attempt.
const FAILED_STDERR_BYTES: usize = 5 * 1024;

/// The bytes that are kept of the beginning of stdout after a failed attempt.
const FAILED_STDOUT_BYTES: usize = 2 * 1024;

/// The beginning of the error of a command that a signal killed.
const KILLED: &str = "killed by signal ";

/// The mark in the first line of an error whose stderr was cut.
const LAST: &str = "the last ";

/// The mark in the first line of an error whose stdout was cut.
const FIRST: &str = "the first ";

/// The first line of an error and its two streams have to fit into the limit.
const _: () = assert!(FAILED_STDERR_BYTES + FAILED_STDOUT_BYTES + 512 < bounds::ERROR_BYTES);

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    exit: i32,
    stdout: usize,
    stderr: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stdout_cut: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stderr_cut: bool,
}

/// The bytes of a result that are reserved for its header.
pub(super) const HEADER_BYTES: usize = 256;

/// Returns the result of a command that succeeded.
pub(super) fn result(finished: &Finished) -> Bytes {
    let (stdout, stderr) = (&finished.stdout, &finished.stderr);
    let header = Header {
        exit: 0,
        stdout: stdout.bytes.len(),
        stderr: stderr.bytes.len(),
        stdout_cut: stdout.cut,
        stderr_cut: stderr.cut,
    };
    let mut result = serde_json::to_vec(&header).unwrap_or_default();
    result.push(b'\n');
    result.extend_from_slice(&stdout.bytes);
    result.extend_from_slice(&stderr.bytes);
    result.into()
}

/// Returns the error of a command that failed.
pub(super) fn error(finished: &Finished) -> String {
    let (stderr, stdout) = (&finished.stderr, &finished.stdout);
    let (stderr_text, stdout_text) = (String::from_utf8_lossy(&stderr.bytes), String::from_utf8_lossy(&stdout.bytes));
    let from = stderr_text.ceil_char_boundary(stderr_text.len().saturating_sub(FAILED_STDERR_BYTES));
    let to = stdout_text.floor_char_boundary(FAILED_STDOUT_BYTES);
    let last = if stderr.cut || from > 0 { LAST } else { "" };
    let first = if stdout.cut || to < stdout_text.len() { FIRST } else { "" };
    let (end, beginning) = (&stderr_text[from..], &stdout_text[..to]);
    let follows = format!("{last}{} bytes of stderr and {first}{} of stdout follow", end.len(), beginning.len());
    format!("{} ({follows})\n{end}{beginning}", how(finished.end))
}

/// Describes the end of a command for people.
pub(super) fn how(end: End) -> String {
    match end {
        End::Exited(status) => format!("exit status {status}"),
        End::Killed(signal) => format!("{KILLED}{signal}"),
        End::TimedOut => "stopped because it took longer than --timeout allows".to_owned(),
        End::Stopped => "stopped before it was done".to_owned(),
    }
}

/// An ended line, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LineResult {
    /// The number of the line.
    pub(super) line: u64,
    /// The text of the line.
    pub(super) input: Bytes,
    /// The state in which its task ended; `None` if the task has been pruned from history.
    pub(super) state: Option<TaskState>,
    /// The number of attempts.
    pub(super) attempts: u32,
    /// The exit status of the last attempt, if it ended by itself.
    pub(super) exit: Option<i32>,
    /// The time at which the last attempt began.
    pub(super) started_at: Option<Timestamp>,
    /// The time at which the line ended.
    pub(super) finished_at: Option<Timestamp>,
    /// The captured stdout of the command.
    pub(super) stdout: Captured,
    /// The captured stderr of the command.
    pub(super) stderr: Captured,
    /// The reason for the failure, in one line.
    pub(super) error: Option<String>,
}

impl LineResult {
    /// Reads the result of a line from its task.
    pub(super) fn of(line: u64, task: TaskRecord) -> Self {
        let result = task.result.into_bytes().unwrap_or_default();
        let mut of_line = Self {
            line,
            input: task.payload.unwrap_or_default(),
            state: Some(task.state),
            attempts: task.attempts,
            started_at: task.started_at,
            finished_at: task.finished_at,
            ..Self::default()
        };
        if task.state == TaskState::Completed {
            of_line.read_result(&result);
        } else {
            of_line.read_error(task.errors.last().map_or("no attempt was made", |error| &error.message));
        }
        of_line
    }

    /// Returns true if the line is done. A line whose task has been pruned counts as done, because
    /// a failed task can no longer be distinguished from it.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, Some(TaskState::Completed) | None)
    }

    /// Returns the signal that killed the command in its last attempt.
    pub(super) fn signal(&self) -> Option<i32> {
        self.error.as_deref()?.strip_prefix(KILLED)?.parse().ok()
    }

    /// Returns true if the command wrote more than was kept.
    pub(super) fn is_cut(&self) -> bool {
        self.stdout.cut || self.stderr.cut
    }

    fn read_result(&mut self, result: &Bytes) {
        let Some(end) = result.iter().position(|byte| *byte == b'\n') else { return };
        let Ok(header) = serde_json::from_slice::<Header>(&result[..end]) else { return };
        let (stdout, stderr) = halves(&result[end + 1..], header.stdout, header.stderr);
        self.exit = Some(header.exit);
        self.stdout = Captured { bytes: stdout, cut: header.stdout_cut };
        self.stderr = Captured { bytes: stderr, cut: header.stderr_cut };
    }

    fn read_error(&mut self, message: &str) {
        let (head, streams) = message.split_once('\n').unwrap_or((message, ""));
        let Some((how, lengths)) = head.split_once(" (").and_then(|(how, rest)| Some((how, lengths(rest)?))) else {
            self.error = Some(message.to_owned());
            return;
        };
        let ((stderr, stderr_cut), (stdout, stdout_cut)) = lengths;
        let (stderr, stdout) = halves(streams.as_bytes(), stderr, stdout);
        self.exit = how.strip_prefix("exit status ").and_then(|status| status.parse().ok());
        self.error = Some(how.to_owned());
        self.stderr = Captured { bytes: stderr, cut: stderr_cut };
        self.stdout = Captured { bytes: stdout, cut: stdout_cut };
    }

    /// Returns the line as a JSON object.
    pub(super) fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("line".to_owned(), self.line.into());
        bytes_field(&mut object, "input", Some(&self.input));
        object.insert("state".to_owned(), self.state.map_or("pruned", TaskState::as_str).into());
        object.insert("attempts".to_owned(), self.attempts.into());
        object.insert("exit".to_owned(), self.exit.into());
        bytes_field(&mut object, "stdout", Some(&self.stdout.bytes));
        bytes_field(&mut object, "stderr", Some(&self.stderr.bytes));
        for (name, cut) in [("stdout_cut", self.stdout.cut), ("stderr_cut", self.stderr.cut)] {
            if cut {
                object.insert(name.to_owned(), true.into());
            }
        }
        if let Some(error) = &self.error {
            object.insert("error".to_owned(), error.as_str().into());
        }
        Value::Object(object)
    }
}

/// Reads the first line of an error, after its opened parenthesis. Returns the length of stderr
/// and of stdout, each with whether it was cut.
fn lengths(text: &str) -> Option<((usize, bool), (usize, bool))> {
    let (stderr, rest) = text.split_once(" bytes of stderr and ")?;
    let stdout = rest.strip_suffix(" of stdout follow)")?;
    Some((length(stderr, LAST)?, length(stdout, FIRST)?))
}

fn length(text: &str, mark: &str) -> Option<(usize, bool)> {
    let kept = text.strip_prefix(mark);
    Some((kept.unwrap_or(text).parse().ok()?, kept.is_some()))
}

fn halves(bytes: &[u8], first: usize, second: usize) -> (Vec<u8>, Vec<u8>) {
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    (head.to_vec(), rest[..second.min(rest.len())].to_vec())
}

#[cfg(test)]
mod tests {
    use onward_store::{AttemptError, Name, Priority, Tags, TaskId};

    use super::*;

    fn captured(text: &str) -> Captured {
        Captured { bytes: text.into(), cut: false }
    }

    fn task(state: TaskState, result: Option<Bytes>, error: Option<String>) -> TaskRecord {
        let at = Timestamp::from_microseconds(0);
        TaskRecord {
            id: TaskId(1),
            kind: Name::new("each").unwrap(),
            queue: Name::default_queue(),
            group: None,
            state,
            priority: Priority::NORMAL,
            payload: Some("in".into()),
            key: None,
            submitted_at: at,
            run_at: at,
            expires_at: None,
            attempts: 2,
            started_at: None,
            finished_at: None,
            session: None,
            cancel_requested: false,
            result: result.into(),
            errors: error.map(|message| AttemptError { attempt: 2, at, message }).into_iter().collect(),
            progress: None,
            tags: Tags::new(),
            blocked_by: Vec::new(),
            parent: None,
            expected_io: onward_store::Io::default(),
            io: None,
            aggregate: None,
            batch: None,
            items: 0,
            affinity: None,
            orchestration: false,
            report: None,
            keep_key_for: std::time::Duration::ZERO,
            ttl: None,
            timeout: None,
            heartbeat_timeout: None,
            deadline: None,
            retention: None,
            retry: None,
            scheduled_at: None,
        }
    }

    #[test]
    fn a_result_is_read_back_as_it_was() {
        let finished = Finished { end: End::Exited(0), stdout: captured("a\n{b"), stderr: captured("warning") };
        let line = LineResult::of(7, task(TaskState::Completed, Some(result(&finished)), None));
        assert_eq!((line.exit, line.stdout, line.stderr), (Some(0), captured("a\n{b"), captured("warning")));
    }

    #[test]
    fn an_error_is_read_back_as_it_was() {
        let finished = Finished { end: End::Exited(3), stdout: captured("half\n"), stderr: captured("no (really)\n") };
        let line = LineResult::of(7, task(TaskState::Dead, None, Some(error(&finished))));
        assert_eq!((line.exit, line.error.as_deref()), (Some(3), Some("exit status 3")));
        assert_eq!((line.stdout, line.stderr), (captured("half\n"), captured("no (really)\n")));
    }

    #[test]
    fn a_stream_that_was_longer_is_still_known_to_be_cut() {
        let cut = |text: &str| Captured { bytes: text.into(), cut: true };
        let finished = Finished { end: End::Exited(3), stdout: captured("half\n"), stderr: cut("no\n") };
        let line = LineResult::of(7, task(TaskState::Dead, None, Some(error(&finished))));
        assert_eq!((line.stdout, line.stderr), (captured("half\n"), cut("no\n")));
    }

    #[test]
    fn an_error_that_the_store_made_is_shown_as_it_is() {
        let line = LineResult::of(7, task(TaskState::Dead, None, Some("its worker was lost (three times)".into())));
        assert_eq!(line.error.as_deref(), Some("its worker was lost (three times)"));
    }

    #[test]
    fn of_a_long_stderr_the_end_is_kept_and_the_whole_fits() {
        let stderr = format!("{}the reason", "é".repeat(10_000));
        let error =
            error(&Finished { end: End::Exited(1), stdout: captured(&"x".repeat(9000)), stderr: captured(&stderr) });
        assert!(error.len() <= bounds::ERROR_BYTES && error.contains("the reason"), "{}", error.len());
    }
}
