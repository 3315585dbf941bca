//! Turns of runs: a claimed run is brought to the end of its history, advanced and written.
//!
//! The decisions are in [`run`](super::run); this folder has the reads and the writes around them.

mod children;
mod growth;
mod instance;
mod payload;
mod planned;
mod program;
mod results;
mod run_turn;
mod templates;
mod written;

pub(crate) use growth::check_room;
pub(crate) use instance::{RunInstance, read_run, run_context};
pub(crate) use payload::{RunPayload, RunSource, run_kind};
pub(crate) use planned::plan_turn;
pub(crate) use run_turn::{EVENT_KIND_PREFIX, run_turn};
pub(crate) use templates::{Templates, in_environment, reference};
