//! Handlers: how a task runs, what it gets and what it returns.

pub(crate) mod attempt;
pub(crate) mod batch;
mod checkpoint;
mod cleanup;
mod context;
mod end_report;
mod failure;
mod failure_conversions;
mod failure_details;
mod failure_policy;
mod finish;
#[cfg(feature = "postgres")]
mod finish_on_server;
mod handler;
mod heartbeat;
mod live_output;
mod middleware;
mod output;
mod progress;
mod result_writer;

pub(crate) use attempt::Attempt;
pub use attempt::Interruption;
pub(crate) use cleanup::clean_up;
pub use context::Context;
pub use end_report::EndReport;
pub use failure::Failure;
pub(crate) use failure::{AlternativeEnd, ChildrenWait};
pub use failure_conversions::FailureError;
pub use failure_policy::{FailedAttempt, Verdict};
pub(crate) use finish::Connections;
pub use finish::{Finished, Finishing};
#[cfg(feature = "postgres")]
pub use finish_on_server::{FinishingByStatement, FinishingOnServer};
pub use handler::HandlerOptions;
pub(crate) use handler::{Handler, HandlerFuture};
pub use middleware::Next;
pub use output::Output;
pub use result_writer::ResultWriter;
