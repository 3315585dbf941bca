//! Runs as programs see them: started, followed and acted on.

mod action;
mod compare;
mod critical_path;
mod follow;
mod fork;
mod history;
mod list;
mod published;
mod start;
mod view;

pub use action::RunAction;
pub(crate) use action::{ACTION_SIGNAL, decode_action};
pub use compare::{ComparedRun, ComparedStep, RunComparison, StepComparison};
pub use critical_path::{CriticalPath, CriticalStep, SlackStep};
pub use follow::RunFollower;
pub use fork::LastRun;
pub use history::{RunHistory, RunHistoryEntry};
pub use list::{RunPage, RunQuery, RunSummary};
pub(crate) use published::LiveSender;
pub use published::{LiveEvents, PublishedEvent, PublishedEvents, published_event};
pub use start::{RunStart, StartedRun};
pub(crate) use view::run_status;
pub use view::{ItemCounts, RunView, StepView};
