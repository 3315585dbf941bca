//! The values of a task: when it runs, what it depends on, and what a store returns about it.
//!
//! [`NewTask`](crate::NewTask), which is submitted, and [`TaskRecord`](crate::TaskRecord), which is
//! read, have fields of these types.

pub use onward_store::rules::retry::FailureClass;
pub use onward_store::{
    Aggregate, AttemptError, ByteProgress, CompletionToken, Dependencies, Dependency, Io, IoKind, OnDependencyFailure,
    OnDuplicate, OutputPiece, OutputStream, PendingBatch, PendingBatchSelection, Progress, TagValue, Tags, TaskOutput,
    TaskResult, Ttl, TtlFrom, UniqueKey, WaitReason, When,
};
