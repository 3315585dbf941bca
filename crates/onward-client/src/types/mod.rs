//! The bodies of requests and responses.

mod content;
mod control;
mod critical_path;
mod duration;
mod event;
mod new_task;
mod orchestration;
mod outcome;
mod retry;
mod run;
mod task;

pub use content::Content;
pub use control::{Limit, LimitChange, Queue, Rate, Schedule, Tagged};
pub use critical_path::{CriticalPath, CriticalStep, SlackStep};
pub use duration::DurationText;
pub use event::Event;
pub use new_task::{NewTask, OnDuplicate, Submitted};
pub use orchestration::Orchestration;
pub use outcome::{Cancellation, TaskOutcome};
pub use retry::{Backoff, RetryPolicy};
pub use run::{Run, StartRun, Step, Template};
pub use task::{Attempt, Progress, Reason, Task, Why, is_ended};
