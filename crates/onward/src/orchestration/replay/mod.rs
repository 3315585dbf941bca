//! Runs the code of an orchestration against its history, without a clock or a store.

mod compatibility_flags;
mod event_text;
mod history;
mod machine;
mod nondeterminism;
mod random;
mod replay_context;
mod running_code;
pub(crate) mod store_guard;
pub(super) mod tags;

pub use compatibility_flags::CompatibilityFlags;
pub(crate) use history::encode;
pub use history::{HistoryEvent, StepEnd, TaskEnd, decode_history};
pub(super) use history::{has_open_operation, version_of};
pub(super) use machine::{Code, CodeFuture, CodeOutcome, Machine, is_command};
pub use nondeterminism::{CodeEnd, Nondeterminism};
pub(super) use replay_context::{Command, NewStep, OperationResult, ReplayContext, StepFuture, first_operation};
pub(crate) use store_guard::GuardedStore;
