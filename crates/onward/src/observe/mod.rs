//! Observation of an engine and its store: events, snapshots, metrics and forecasts.

mod after_commit;
mod drain_summary;
mod events;
mod forecast;
mod inspector;
mod overview;
mod rate_meter;
mod snapshot;
mod task_query;
pub mod telemetry;

pub use after_commit::Transition;
pub(crate) use after_commit::{Hook, Hooks};
pub use drain_summary::DrainSummary;
pub use events::EventStream;
pub use forecast::Forecast;
pub(crate) use forecast::ReportedProgress;
pub use onward_store::{Change, Event, EventCursor};
pub use overview::Overview;
pub(crate) use rate_meter::RateMeter;
pub use snapshot::{RunningTask, Snapshot};
pub use task_query::{TaskQuery, TaskStream};
pub(crate) use telemetry::{KindTelemetry, Telemetry};
