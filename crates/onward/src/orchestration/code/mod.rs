//! The API with which the code of an orchestration is written.

mod combinators;
mod context;
mod future_set;
mod operation;
mod saga;
mod signal;
mod typed_calls;
pub(super) mod update;

pub use combinators::{Either, join_all, select, select_all, try_join_all};
pub use context::OrchestrationContext;
pub(super) use context::json;
pub use operation::{Activity, ActivityError, EventQueue, Running, Signalled, Step, Timer};
pub use saga::Saga;
pub use signal::Signal;
pub use typed_calls::{Query, UpdateCall};
pub use update::{AnyReply, NextUpdate, Update, UpdateQueue};
