//! Orchestrations in the storage interface: tasks with a history and a mailbox.
//!
//! An orchestration is a task whose attempts are **turns**. A turn consumes messages, appends
//! events to the history, submits tasks and parks again, all in one write
//! ([`Write::Turn`](crate::Write::Turn)). The end of a task that it submitted, a signal, or a
//! request to cancel arrives as a message in its mailbox. A message makes a parked orchestration
//! wait for a claim again. A store interprets neither events nor code.

mod encoding;
mod hold;
mod instance;
mod message;
mod turn;

#[cfg(feature = "postgres")]
pub(crate) use encoding::{decode_instance, encode_instance};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use encoding::{decode_message, encode_message};
pub use hold::Hold;
pub(crate) use instance::Instance;
pub(crate) use message::EndReport;
#[cfg(feature = "sqlite")]
pub(crate) use message::TurnIntake;
pub use message::{Message, MessageBody, Recipient, Signal};
pub use turn::{
    AfterTurn, AttemptEnd, ChildTask, ClaimedInstance, EndWithTurn, Ended, HistoryChunk, InstanceRecord, Turn, Turned,
};
