//! The state of a run, its events and their fold.

pub(in crate::workflow::run) mod batch;
pub(in crate::workflow::run) mod event;
pub(in crate::workflow::run) mod fold;
pub(in crate::workflow::run) mod fold_undo;
pub(in crate::workflow::run) mod json;
pub(in crate::workflow::run) mod pages;
pub(in crate::workflow::run) mod phase;
pub(in crate::workflow::run) mod reason;
pub(in crate::workflow::run) mod references;
pub(in crate::workflow::run) mod result_source;
pub(in crate::workflow::run) mod run_state;
pub(in crate::workflow::run) mod step_state;
pub(in crate::workflow::run) mod undo_state;
pub(in crate::workflow::run) mod view;

pub(crate) use run_state::RunState;
pub(in crate::workflow::run) use run_state::{StepRecord, StepResult};
