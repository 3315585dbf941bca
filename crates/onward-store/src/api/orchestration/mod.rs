//! Orchestrations, as a store sees them: tasks with a history of their own and a mailbox.
//!
//! An orchestration is a task whose attempts are **turns**. A turn takes in messages, appends
//! events to the history, submits tasks and parks again, all of it as one write
//! ([`Write::Turn`](crate::Write::Turn)); whatever comes for it meanwhile (the end of a task that
//! it submitted, a signal, a request to stop) is a message in its mailbox and has it wait for a
//! claim again. A store knows neither what the events say nor what code makes them.

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
pub(crate) use message::Handful;
pub use message::{Message, MessageBody, Recipient, Signal};
pub use turn::{AfterTurn, ClaimedInstance, HistoryChunk, InstanceRecord, Turn, Turned};
