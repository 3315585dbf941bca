//! Attempts that somebody finishes later, from elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::task::{Lease, TaskId};
use crate::rules::retry::{FailureClass, RetryPolicy};

/// Names an attempt that is to be finished from elsewhere: a task, and which claim of it. As text
/// `17.3`, or `17` for whichever attempt of task 17 waits to be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompletionToken {
    /// The task.
    pub task: TaskId,
    /// Which claim of it, as in [`Lease::claim`]; `None` for whichever waits.
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

/// How an attempt waits to be finished from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompletionWait {
    /// How long, at most; then the attempt has failed. `None`: for ever.
    pub within: Option<Duration>,
    /// What follows if it fails.
    pub retry: RetryPolicy,
    /// Any number, for the jitter of that.
    pub random: u64,
}

/// How somebody finishes an attempt from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Finish {
    /// It succeeded.
    Complete {
        /// What it answers, at most as large as a payload may be.
        result: Option<Bytes>,
    },
    /// It failed, and the retry policy that its handler had says what follows.
    Fail {
        /// What went wrong; cut at 8 KiB.
        error: String,
        /// Whether trying again may help.
        class: FailureClass,
    },
    /// It is still under way: the time within which it must be finished begins anew.
    Extend {
        /// How long, at most, from now. `None`: for ever.
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
