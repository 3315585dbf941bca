//! The payload of a run.

use std::collections::BTreeMap;

use onward_store::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::workflow::run::RUN_KIND_PREFIX;
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
    /// The number of runs above this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) depth: u32,
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
