//! The outcome of a task, derived from the end of its command.

use std::time::Duration;

use bytes::Bytes;
use onward::Failure;

use crate::process::{End, Finished};

/// The exit status that means a permanent failure.
const PERMANENT: i32 = 100;

/// The delay after which a stopped task is due again. It is not zero, so that this worker does not
/// claim the task again.
const AFTER_STOP: Duration = Duration::from_millis(1);

/// The outcome that a command has reported before its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reported {
    /// If it fails, retry after this long.
    pub(super) retry_after: Option<Duration>,
    /// It has failed permanently, with this error.
    pub(super) fail: Option<String>,
    /// If it exits with 0: the outcome of the task instead of completion.
    pub(super) instead: Option<Failure>,
}

/// Returns the result of a command, or its failure. A result larger than `limit` bytes is a
/// permanent failure.
pub(crate) fn outcome(finished: Finished, reported: Reported, limit: usize) -> Result<Bytes, Failure> {
    if let Some(message) = reported.fail {
        return Err(Failure::permanent(message));
    }
    let failed = |how: String| format!("{how}{}", finished.stderr.last_words());
    let retried = |message: String| match reported.retry_after {
        Some(after) => Failure::retry_after(message, after),
        None => Failure::retryable(message),
    };
    match finished.end {
        End::Exited(0) if reported.instead.is_some() => Err(reported.instead.unwrap_or_else(Failure::await_completion)),
        End::Exited(0) if finished.stdout.cut => Err(Failure::permanent(format!(
            "the result is larger than {limit} bytes, the limit of this store; write it to a file and print its path"
        ))),
        End::Exited(0) => Ok(finished.stdout.bytes.into()),
        End::Exited(PERMANENT) => Err(Failure::permanent(failed(format!("exit status {PERMANENT}")))),
        End::Exited(status) => Err(retried(failed(format!("exit status {status}")))),
        End::Killed(signal) => Err(retried(failed(format!("killed by signal {signal}")))),
        End::TimedOut | End::Stopped => Err(stopped()),
    }
}

/// Returns the failure of a command that was asked to stop, which does not count as an attempt.
pub(crate) fn stopped() -> Failure {
    Failure::not_counted("stopped before it was done", AFTER_STOP)
}

#[cfg(test)]
mod tests {
    use onward_store::rules::retry::FailureClass;

    use super::*;
    use crate::process::Captured;

    fn class(end: End, reported: Reported) -> FailureClass {
        let stream = |text: &str| Captured { bytes: text.into(), cut: false };
        outcome(Finished { end, stdout: stream("out"), stderr: stream("why\n") }, reported, 1024).unwrap_err().class()
    }

    #[test]
    fn exit_100_is_permanent_and_75_is_not() {
        assert_eq!(class(End::Exited(100), Reported::default()), FailureClass::Permanent);
        assert_eq!(class(End::Exited(75), Reported::default()), FailureClass::Retryable);
    }

    #[test]
    fn a_signal_is_retried() {
        assert_eq!(class(End::Killed(9), Reported::default()), FailureClass::Retryable);
    }

    #[test]
    fn a_requested_delay_is_kept() {
        let reported = Reported { retry_after: Some(Duration::from_secs(30)), ..Reported::default() };
        assert_eq!(class(End::Exited(1), reported), FailureClass::RetryAfter(Duration::from_secs(30)));
    }

    #[test]
    fn a_reported_failure_counts_more_than_the_exit() {
        let reported = Reported { fail: Some("no such account".into()), ..Reported::default() };
        assert_eq!(class(End::Exited(0), reported), FailureClass::Permanent);
    }

    #[test]
    fn the_error_ends_with_stderr() {
        let stderr = Captured { bytes: "why\n".into(), cut: false };
        let finished = Finished { end: End::Exited(3), stdout: Captured::default(), stderr };
        assert_eq!(outcome(finished, Reported::default(), 1024).unwrap_err().message(), "exit status 3: why");
    }

    #[test]
    fn an_error_whose_beginning_was_left_out_is_marked() {
        let stderr = Captured { bytes: vec![b'x'; 4097], cut: false };
        let finished = Finished { end: End::Exited(3), stdout: Captured::default(), stderr };
        let failure = outcome(finished, Reported::default(), 1024).unwrap_err();
        assert!(failure.message().starts_with("exit status 3 (the last 4096 bytes of stderr follow): xx"));
    }

    #[test]
    fn a_result_that_is_too_large_is_a_permanent_failure() {
        let stdout = Captured { bytes: vec![0; 1024], cut: true };
        let finished = Finished { end: End::Exited(0), stdout, stderr: Captured::default() };
        assert_eq!(outcome(finished, Reported::default(), 1024).unwrap_err().class(), FailureClass::Permanent);
    }
}
