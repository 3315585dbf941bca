//! Workflows: graphs of steps that a template describes.

mod client;
mod critical_path;
pub mod expression;
pub mod layout;
pub mod library;
mod nearest;
mod run;
pub mod template;
mod test_file;
mod turn;

pub(crate) use client::LiveSender;
pub use client::{
    ComparedRun, ComparedStep, CriticalPath, CriticalStep, ItemCounts, LastRun, LiveEvents, PublishedEvent,
    PublishedEvents, RunAction, RunComparison, RunFollower, RunHistory, RunHistoryEntry, RunPage, RunQuery, RunStart,
    RunSummary, RunView, SlackStep, StartedRun, StepComparison, StepView, published_event,
};
pub use onward_store::bounds::SCRIPT_KIND;
pub(crate) use run::RUN_KIND_PREFIX;
pub use run::{Phase as RunPhase, StepState};
#[doc(hidden)]
pub use run::{TurnsAlone, exercise_history};
pub use test_file::{CaseReport, WorkflowTest, WorkflowTestReport};
pub(crate) use turn::{RunInstance, Templates, plan_turn as plan_workflow_turn, run_turn as run_workflow_turn};
