//! External completion: the end of an attempt that a caller other than its handler reports.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::task::{Lease, TaskId};
use crate::rules::retry::{FailureClass, RetryPolicy};

/// The name of an attempt that is completed externally: a task and a claim number.
///
/// As text it is `17.3`, or `17` for the attempt of task 17 that waits for external completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompletionToken {
    /// The task.
    pub task: TaskId,
    /// The claim number, as in [`Lease::claim`]; `None` for the attempt that waits now.
    pub claim: Option<u32>,
}

impl From<TaskId> for CompletionToken {
    fn from(task: TaskId) -> Self {
        Self { task, claim: None }
    }
}

impl From<Lease> for CompletionToken {
    fn from(lease: Lease) -> Self {
        Self { task: lease.task, claim: Some(lease.claim) }
    }
}

impl fmt::Display for CompletionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.claim {
            Some(claim) => write!(f, "{}.{claim}", self.task),
            None => self.task.fmt(f),
        }
    }
}

impl FromStr for CompletionToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((task, claim)) = text.split_once('.') else { return Ok(text.parse::<TaskId>()?.into()) };
        let wrong = || {
            Error::invalid(format!("`{text}` is not a completion token; use what the handler gave out, such as 17.3"))
        };
        let claim = claim.parse().ok().filter(|claim| *claim > 0).ok_or_else(wrong)?;
        Ok(Self { task: task.parse().map_err(|_| wrong())?, claim: Some(claim) })
    }
}

impl Serialize for CompletionToken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CompletionToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The terms under which an attempt waits for external completion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompletionWait {
    /// The time within which the attempt must be completed. After that it has failed. `None` waits
    /// forever.
    pub within: Option<Duration>,
    /// The retry policy that applies if the attempt fails.
    pub retry: RetryPolicy,
    /// A random number for the jitter of the retry delay.
    pub random: u64,
}

/// A report about an attempt that waits for external completion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalCompletion {
    /// The attempt succeeded, and the task completes.
    Complete {
        /// The result of the task; at most as large as a payload.
        result: Option<Bytes>,
    },
    /// The attempt failed. The [retry policy](CompletionWait::retry) decides what follows.
    Fail {
        /// The error message; cut at 8 KiB.
        error: String,
        /// The class of the failure, which decides whether another attempt follows.
        class: FailureClass,
    },
    /// The attempt is still in progress. Its time limit starts again.
    Extend {
        /// The new time limit, counted from now. `None` waits forever.
        within: Option<Duration>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written() {
        for text in ["17", "17.3"] {
            assert_eq!(text.parse::<CompletionToken>().unwrap().to_string(), text);
        }
        for text in ["", "0", "17.", "17.0", "17.x", ".3", "17.3.1"] {
            assert!(text.parse::<CompletionToken>().is_err(), "{text}");
        }
    }
}
