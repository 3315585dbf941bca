//! Runs as programs see them: started, followed and acted on.

mod action;
mod follow;
mod start;
mod view;

pub use follow::RunFollower;
pub use start::{RunStart, StartedRun};
pub use view::{ItemCounts, RunView, StepView};
