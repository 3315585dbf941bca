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
//! `state` has the state, its events and their fold. `turn` decides; in reading order: `verdict`
//! (the join rule), `waves`, `start`, `ends`, `finish`; then `items`, `signals`, `moments`, `undo`,
//! `cancel` and `actions`.

mod bounds;
mod context;
mod decision;
mod exercise;
mod fork;
mod schemas;
mod state;
mod turn;

#[cfg(test)]
mod tests;

pub(crate) use bounds::RUN_KIND_PREFIX;
pub(crate) use context::{RunContext, RunFacts, RunLimits};
pub(crate) use decision::{
    Action, ActionKind, Advanced, Arrival, Decision, Effects, Published, ReportedResult, Results, Room, RunNext,
};
#[doc(hidden)]
pub use exercise::{TurnsAlone, exercise_history};
pub(crate) use fork::{Fork, plan_fork};
pub(crate) use schemas::Schemas;
pub(crate) use state::RunState;
pub(crate) use state::event::{RunEvent, TakenAction, decode, encode};
pub use state::phase::Phase;
pub(crate) use state::result_source::StepResultSource;
pub use state::step_state::StepState;
pub(crate) use state::undo_state::UndoState;
pub(crate) use state::view::StepView;
pub(crate) use turn::advance;
pub(crate) use turn::allowed::check_action;
pub(crate) use turn::signals::{check_signal, repliers};
