//! Workflows: graphs of steps that a template describes.

mod client;
pub mod expression;
pub mod library;
mod nearest;
mod run;
pub mod template;
mod turn;

pub use client::{ItemCounts, RunAction, RunFollower, RunStart, RunView, StartedRun, StepView};
pub use onward_store::bounds::SCRIPT_KIND;
pub(crate) use run::RUN_KIND_PREFIX;
pub use run::{Phase as RunPhase, StepState};
pub(crate) use turn::{RunInstance, Templates, plan_turn as plan_workflow_turn, run_turn as run_workflow_turn};
