//! The outcome of a task, derived from the end of its command.

use std::time::Duration;

use bytes::Bytes;
use onward::Failure;

use crate::process::{Captured, End, Finished};

/// The exit status that means a permanent failure.
const PERMANENT: i32 = 100;

/// The bytes that are kept of the end of stderr after a failure.
const STDERR_BYTES: usize = 4096;

/// The delay after which a stopped task is due again. It is not zero, so that this worker does not
/// claim the task again.
const AFTER_STOP: Duration = Duration::from_millis(1);

/// The outcome that a command has reported before its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Said {
    /// If it fails, retry after this long.
    pub(super) retry_after: Option<Duration>,
    /// It has failed permanently, with this error.
    pub(super) fail: Option<String>,
    /// If it exits with 0: the outcome of the task instead of completion.
    pub(super) instead: Option<Failure>,
}

/// Returns the result of a command, or its failure. A result larger than `limit` bytes is a
/// permanent failure.
pub(super) fn judge(finished: Finished, said: Said, limit: usize) -> Result<Bytes, Failure> {
    if let Some(message) = said.fail {
        return Err(Failure::permanent(message));
    }
    let failed = |how: String| format!("{how}{}", last_words(&finished.stderr));
    let tried_again = |message: String| match said.retry_after {
        Some(after) => Failure::retry_after(message, after),
        None => Failure::retryable(message),
    };
    match finished.end {
        End::Exited(0) if said.instead.is_some() => Err(said.instead.unwrap_or_else(Failure::await_completion)),
        End::Exited(0) if finished.stdout.cut => Err(Failure::permanent(format!(
            "the result is larger than {limit} bytes, the limit of this store; write it elsewhere and answer where"
        ))),
        End::Exited(0) => Ok(finished.stdout.bytes.into()),
        End::Exited(PERMANENT) => Err(Failure::permanent(failed(format!("exit status {PERMANENT}")))),
        End::Exited(status) => Err(tried_again(failed(format!("exit status {status}")))),
        End::Killed(signal) => Err(tried_again(failed(format!("killed by signal {signal}")))),
        End::TimedOut | End::Stopped => Err(Failure::not_counted("stopped before it was done", AFTER_STOP)),
    }
}

/// Returns the end of stderr after a colon, with a mark if its beginning was left out.
fn last_words(stderr: &Captured) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(STDERR_BYTES));
    let end = &text[from..];
    match (end.is_empty(), stderr.cut || from > 0) {
        (true, _) => String::new(),
        (false, false) => format!(": {end}"),
        (false, true) => format!(" (the last {} bytes of stderr follow): {end}", end.len()),
    }
}

#[cfg(test)]
mod tests {
    use onward_store::rules::retry::FailureClass;

    use super::*;

    fn class(end: End, said: Said) -> FailureClass {
        let stream = |text: &str| Captured { bytes: text.into(), cut: false };
        judge(Finished { end, stdout: stream("out"), stderr: stream("why\n") }, said, 1024).unwrap_err().class()
    }

    #[test]
    fn exit_100_is_permanent_and_75_is_not() {
        assert_eq!(class(End::Exited(100), Said::default()), FailureClass::Permanent);
        assert_eq!(class(End::Exited(75), Said::default()), FailureClass::Retryable);
    }

    #[test]
    fn a_signal_is_tried_again() {
        assert_eq!(class(End::Killed(9), Said::default()), FailureClass::Retryable);
    }

    #[test]
    fn a_delay_that_was_asked_for_is_kept() {
        let said = Said { retry_after: Some(Duration::from_secs(30)), ..Said::default() };
        assert_eq!(class(End::Exited(1), said), FailureClass::RetryAfter(Duration::from_secs(30)));
    }

    #[test]
    fn a_reported_failure_counts_more_than_the_exit() {
        let said = Said { fail: Some("no such account".into()), ..Said::default() };
        assert_eq!(class(End::Exited(0), said), FailureClass::Permanent);
    }

    #[test]
    fn the_error_ends_with_what_stderr_said() {
        let stderr = Captured { bytes: "why\n".into(), cut: false };
        let finished = Finished { end: End::Exited(3), stdout: Captured::default(), stderr };
        assert_eq!(judge(finished, Said::default(), 1024).unwrap_err().message(), "exit status 3: why");
    }

    #[test]
    fn an_error_whose_beginning_was_left_out_says_so() {
        let stderr = Captured { bytes: vec![b'x'; STDERR_BYTES + 1], cut: false };
        let finished = Finished { end: End::Exited(3), stdout: Captured::default(), stderr };
        let failure = judge(finished, Said::default(), 1024).unwrap_err();
        assert!(failure.message().starts_with("exit status 3 (the last 4096 bytes of stderr follow): xx"));
    }

    #[test]
    fn a_result_that_is_too_large_is_a_permanent_failure() {
        let stdout = Captured { bytes: vec![0; 1024], cut: true };
        let finished = Finished { end: End::Exited(0), stdout, stderr: Captured::default() };
        assert_eq!(judge(finished, Said::default(), 1024).unwrap_err().class(), FailureClass::Permanent);
    }
}
