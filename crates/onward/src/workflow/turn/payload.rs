//! The payload of a run.

use std::collections::BTreeMap;

use onward_store::{Name, Store, StoreReads, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::workflow::run::{Fork, RUN_KIND_PREFIX, RunLimits};
use crate::workflow::template::TemplateHash;

/// Returns the kind of the runs of a template.
pub(crate) fn run_kind(template: &str) -> Result<Name> {
    Ok(Name::new(format!("{RUN_KIND_PREFIX}{template}"))?)
}

/// The payload of the task of a run. It pins every template that the run can need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunPayload {
    /// The template.
    pub(crate) template: TemplateHash,
    /// The templates of `workflow` steps, of this run and of the runs below it, as the steps name
    /// them: `NAME` or `NAME@VERSION`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) workflows: BTreeMap<String, TemplateHash>,
    /// The environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) environment: Option<String>,
    /// The unique key of the run, which `run.key` reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The steps that run, and the run whose results the others have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<Fork>,
    /// The number of runs above this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) depth: u32,
    /// The limits that the step above sets.
    #[serde(flatten)]
    pub(crate) limits: RunLimits,
    /// The input, with the defaults of its schema.
    pub(crate) input: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

impl RunPayload {
    /// Reads the payload of a task.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| {
            Error::invalid(format!(
                "the payload is not one of a run: {error}; start runs with `onward run` or `start_run`"
            ))
        })
    }

    /// Returns the payload as bytes.
    pub(crate) fn write(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::invalid(format!("the input of the run cannot be written: {error}")))
    }
}

/// The payload of the task of a run that undoes another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoPayload {
    /// The run that is undone.
    pub(crate) undo: TaskId,
}

impl UndoPayload {
    /// Returns the payload as bytes.
    pub(crate) fn write(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::invalid(format!("the undo of a run cannot be written: {error}")))
    }
}

/// A run as the payload of its task describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunSource {
    pub(crate) payload: RunPayload,
    /// The run that its expressions know as `run`: this one, or the one that it undoes.
    pub(crate) known_as: TaskId,
    /// The time at which that run was submitted.
    pub(crate) submitted_at: Timestamp,
    /// The run that it undoes.
    pub(crate) undoes: Option<TaskId>,
}

impl RunSource {
    /// Reads the payload of a run. A run that undoes another one has the payload of that one.
    ///
    /// # Errors
    /// The store's error; `is_invalid` if the payload cannot be read, or the other run is gone.
    pub(crate) async fn read(store: &dyn Store, run: TaskId, submitted_at: Timestamp, bytes: &[u8]) -> Result<Self> {
        let Ok(UndoPayload { undo }) = serde_json::from_slice(bytes) else {
            return Ok(Self { payload: RunPayload::read(bytes)?, known_as: run, submitted_at, undoes: None });
        };
        let Some(original) = store.task(undo).await? else {
            return Err(Error::invalid(format!(
                "run {undo}, which run {run} undoes, was deleted; undo its steps by hand"
            )));
        };
        let payload = RunPayload::read(original.payload.as_deref().unwrap_or_default())?;
        Ok(Self { payload, known_as: undo, submitted_at: original.submitted_at, undoes: Some(undo) })
    }
}
