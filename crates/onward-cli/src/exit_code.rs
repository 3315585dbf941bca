//! The exit codes of the program.

use std::fmt;

use onward_store::Refusal;

/// The exit codes of `onward`, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// 0: done.
    Done,
    /// 1: the work failed.
    Failed,
    /// 2: wrong usage.
    Usage,
    /// 3: the store cannot be used: it is missing, damaged or out of reach, or it does not accept
    /// the user, the password or the key.
    Store,
    /// 130: interrupted; finished work is kept.
    Interrupted,
    /// 141: the reader of standard output closed it before the end, as `head` does.
    OutputClosed,
}

/// The explanation at the end of every help text.
pub(crate) const EXPLANATION: &str = "\
Exit codes:
    0  done
    1  the work failed
    2  wrong usage
    3  the store cannot be used: it is missing, damaged or out of reach, or refuses the
       user, the password or the key
  130  interrupted; finished work is kept
  141  standard output was closed before the end; finished work is kept";

impl ExitCode {
    /// Returns the number that the shell receives.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Store => 3,
            Self::Interrupted => 130,
            // A shell reports this number for a program that SIGPIPE ended.
            Self::OutputClosed => 141,
        }
    }

    /// Returns this code, or [`Failed`](Self::Failed) if it is [`Done`](Self::Done) and something
    /// else failed.
    pub(crate) fn or_failed(self, failed: bool) -> Self {
        if failed && self == Self::Done { Self::Failed } else { self }
    }

    /// Returns the code for an error that ended a command. The outermost cause of a known type
    /// decides.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(of_cause).unwrap_or(Self::Failed)
    }
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<ExitCode> {
    if cause.is::<WrongUsage>() {
        return Some(ExitCode::Usage);
    }
    if let Some(refusal) = cause.downcast_ref::<Refusal>() {
        return Some(if matches!(refusal, Refusal::Invalid(_)) { ExitCode::Usage } else { ExitCode::Failed });
    }
    if let Some(error) = cause.downcast_ref::<onward::Error>() {
        return Some(of_engine(error));
    }
    let error = cause.downcast_ref::<onward_store::Error>()?;
    Some(if error.is_invalid() { ExitCode::Usage } else { ExitCode::Store })
}

fn of_engine(error: &onward::Error) -> ExitCode {
    if error.is_invalid() {
        ExitCode::Usage
    } else if error.refusal().is_some() || error.is_unanswered() {
        ExitCode::Failed
    } else {
        ExitCode::Store
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

/// An error in the usage. Its text names the flag and the remedy.
#[derive(Debug)]
pub(crate) struct WrongUsage(String);

/// Returns an error that ends the program with code 2.
pub(crate) fn wrong_usage(message: impl Into<String>) -> anyhow::Error {
    WrongUsage(message.into()).into()
}

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use onward_store::{Error, TaskId};

    use super::*;

    #[test]
    fn a_damaged_store_ends_with_3_however_deep_it_lies() {
        let error = Err::<(), _>(Error::corrupt("page 7")).context("listing").context("onward task list").unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Store);
    }

    #[test]
    fn input_that_a_store_refuses_is_wrong_usage() {
        assert_eq!(ExitCode::of(&Error::invalid("too large").into()), ExitCode::Usage);
    }

    #[test]
    fn an_unknown_task_is_failed_work() {
        assert_eq!(ExitCode::of(&Refusal::TaskNotFound(TaskId(7)).into()), ExitCode::Failed);
    }
}
