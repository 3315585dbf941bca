//! Runs of workflows, as plain functions without a clock and without I/O.
//!
//! [`advance`] decides what follows from an [`Arrival`], and [`RunState::fold`] takes the events of
//! that decision into the state. The events are written with their [`Effects`] in one turn. So the
//! state is always the fold of the events that were written, and a later build that decides in
//! another way does not change what a run has done.
//!
//! A *reference* is a fresh number for each submission: of a step, an item, an undo, or another try
//! of one. A report of a reference that is not open changes nothing.
//!
//! In reading order: `verdict` (the join rule), `waves`, `start`, `ends`, `finish`; then `items`,
//! `signals`, `moments`, `undo`, `cancel` and `actions`.

mod actions;
mod batch;
mod bounds;
mod cancel;
mod context;
mod decision;
mod ends;
mod event;
mod finish;
mod fold;
mod fold_undo;
mod items;
mod json;
mod moments;
mod pages;
mod phase;
mod publish;
mod reason;
mod references;
mod schemas;
mod scope;
mod signals;
mod start;
mod state;
mod step_state;
mod task;
mod turn;
mod undo;
mod undo_state;
mod verdict;
mod view;
mod waves;

#[cfg(test)]
mod tests;

pub(crate) use bounds::{COMMAND_KIND, RUN_KIND_PREFIX};
pub(crate) use context::{RunContext, RunFacts};
pub(crate) use decision::{
    Action, ActionKind, Advanced, Arrival, Decision, Effects, NoResults, Published, ReportedResult, Results, RunNext,
    StepTask,
};
pub(crate) use event::{RunEvent, decode, encode};
pub(crate) use json::Json;
pub(crate) use phase::Phase;
pub(crate) use schemas::Schemas;
pub(crate) use signals::check_signal;
pub(crate) use state::RunState;
pub(crate) use step_state::StepState;
pub(crate) use turn::advance;
pub(crate) use undo_state::UndoState;
pub(crate) use view::{ItemCounts, StepView};
