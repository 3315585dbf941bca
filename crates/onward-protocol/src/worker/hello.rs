//! The beginning of a session, and its credit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::error::{Error, Result};
use crate::header::{at_most, name, text, within};
use crate::retry::RetryPolicy;
use crate::task_fence::TaskFence;

/// The first message of a worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that the worker speaks.
    pub protocol: Vec<u32>,
    /// The kinds that it handles.
    pub kinds: BTreeMap<String, KindOptions>,
    /// The number of handlers that it runs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Its name in logs and lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The library that it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// The version of that library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The optional parts that it understands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The session that continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    /// The session for which this connection carries beats only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beats_for: Option<String>,
}

/// A session that continues on a new connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resume {
    /// The session.
    pub session: String,
    /// Every task that the worker holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<TaskFence>>,
}

/// The options of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct KindOptions {
    /// The largest number of tasks of this kind that the worker holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The retry policy of tasks that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// The longest attempt of tasks that have no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest silence of tasks that have no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// True if the tasks are turns of orchestrations; needs the feature `turns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<bool>,
}

impl Hello {
    pub(crate) fn check(&self) -> Result<()> {
        if self.protocol.is_empty() {
            return Err(Error::field("`protocol` is empty; list the versions that the worker speaks"));
        }
        at_most("protocol", self.protocol.len(), bounds::VERSIONS)?;
        at_most("kinds", self.kinds.len(), bounds::ENTRIES)?;
        if self.kinds.is_empty() && self.beats_for.is_none() {
            return Err(Error::field("`kinds` is empty; a worker handles at least one kind"));
        }
        for (kind, options) in &self.kinds {
            name("kinds", Some(kind))?;
            options.check()?;
        }
        within("slots", self.slots.map(u64::from), 1, bounds::SLOTS.into())?;
        for (field, value) in
            [("name", &self.name), ("sdk", &self.sdk), ("version", &self.version), ("language", &self.language)]
        {
            text(field, value.as_deref(), 0, bounds::NAME_BYTES)?;
        }
        let features = self.features.as_deref().unwrap_or_default();
        at_most("features", features.len(), bounds::FEATURES)?;
        features.iter().try_for_each(|feature| name("features", Some(feature)))?;
        text("key", self.key.as_deref(), 0, bounds::KEY_BYTES)?;
        text("beats_for", self.beats_for.as_deref(), 1, bounds::NAME_BYTES)?;
        self.resume.as_ref().map_or(Ok(()), Resume::check)
    }
}

impl Resume {
    fn check(&self) -> Result<()> {
        text("resume.session", Some(&self.session), 1, bounds::NAME_BYTES)?;
        at_most("resume.tasks", self.tasks.as_deref().unwrap_or_default().len(), bounds::ENTRIES)
    }
}

/// The options of the kind of an orchestration.
const ORCHESTRATION: KindOptions =
    KindOptions { limit: None, retry: None, timeout_ms: None, heartbeat_ms: None, orchestration: Some(true) };

impl KindOptions {
    fn check(&self) -> Result<()> {
        within("limit", self.limit.map(u64::from), 1, bounds::SLOTS.into())?;
        within("timeout_ms", self.timeout_ms, 1, bounds::INTEGER)?;
        within("heartbeat_ms", self.heartbeat_ms, 1, bounds::INTEGER)?;
        if self.orchestration == Some(true) && *self != ORCHESTRATION {
            return Err(Error::field("`orchestration` is true; such a kind has no other option"));
        }
        self.retry.as_ref().map_or(Ok(()), check_retry)
    }
}

/// Checks a retry policy.
pub(crate) fn check_retry(retry: &RetryPolicy) -> Result<()> {
    within("attempts", retry.attempts.map(u64::from), 1, bounds::INTEGER)?;
    for (field, value) in
        [("initial_ms", retry.initial_ms), ("increment_ms", retry.increment_ms), ("maximum_ms", retry.maximum_ms)]
    {
        within(field, value, 0, bounds::INTEGER)?;
    }
    match retry.factor {
        Some(factor) if !(factor.is_finite() && factor >= 1.0) => {
            Err(Error::field(format!("`factor` is {factor}; it must be at least 1")))
        }
        _ => Ok(()),
    }
}

/// Credit for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The number of tasks that the gateway may have sent on this connection in all.
    pub credit: u64,
}

impl Grant {
    pub(crate) fn check(self) -> Result<()> {
        within("credit", Some(self.credit), 0, bounds::INTEGER)
    }
}
