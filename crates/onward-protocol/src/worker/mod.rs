//! The messages of a worker.

mod ask;
mod beat;
mod end;
mod hello;
mod message;
mod submit;

pub use ask::{Ask, ReadTarget};
pub use beat::{Beat, BeatTask, Progress};
pub use end::{End, Ends, OnFailure, Outcome, ReleaseReason};
pub use hello::{Grant, Hello, KindOptions, Resume};
pub use message::WorkerMessage;
pub use submit::{NewTask, OnDuplicate, Submit};
