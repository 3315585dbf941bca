//! Reads.

use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::decimal::Id;
use crate::error::Result;
use crate::header::within;

/// A read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The number of the request.
    pub request: u64,
    /// The thing to read.
    pub what: ReadTarget,
    /// The task.
    pub task: Id,
    /// The longest wait for a result; default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The last entry of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Id>,
}

/// The thing that an [`Ask`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadTarget {
    /// The result of a task.
    Result,
    /// The children of a task of this worker.
    Children,
    /// The items of a batch of this worker.
    Items,
}

impl Ask {
    pub(crate) fn check(self) -> Result<()> {
        within("request", Some(self.request), 0, bounds::INTEGER)?;
        within("wait_ms", self.wait_ms, 0, bounds::ASK_WAIT_MS)
    }
}
