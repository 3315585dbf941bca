//! The protocol between Onward's worker gateway and workers in any language.
//!
//! A message is a JSON header and payloads, each in a frame of its own. `docs/worker-protocol.md`
//! defines every byte; `vectors.json` of this crate has examples that every implementation reads.
//!
//! * [`frame`] splits bytes into messages, and writes messages as bytes.
//! * [`worker`] has the messages of a worker, and [`gateway`] those of the gateway.
//! * [`WorkerMessage::read`] and [`GatewayMessage::read`] check a received message against every
//!   bound of [`bounds`]. A violation is an [`Error`] with a code of the protocol.
//!
//! The crate does no I/O, and nothing that a peer sends makes it panic.
//!
//! ```
//! use bytes::Bytes;
//! use onward_protocol::frame::{Decoder, Limits, encode};
//! use onward_protocol::gateway::Drain;
//! use onward_protocol::{GatewayMessage, WorkerMessage, write_message};
//!
//! // The gateway reads a message of a worker from the bytes of a stream.
//! let mut decoder = Decoder::new(Limits { payload: 0 });
//! encode(&[Bytes::from_static(br#"{"t":"grant","credit":8}"#)], decoder.buffer());
//! let frames = decoder.next_message()?.unwrap_or_default();
//! let grant = WorkerMessage::read(&frames)?;
//! assert!(matches!(grant, WorkerMessage::Grant(grant) if grant.credit == 8));
//! assert!(decoder.next_message()?.is_none());
//!
//! // It writes its own messages as frames: a header, and the payloads.
//! let drain = Drain { why: "restart".to_owned(), within_ms: 5000 };
//! let frames = write_message(&GatewayMessage::Drain(drain), Vec::new())?;
//! assert_eq!(frames, [r#"{"t":"drain","why":"restart","within_ms":5000}"#]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bounds;
mod decimal;
mod error;
pub mod frame;
pub mod gateway;
mod header;
mod retry;
mod task_fence;
pub mod turn;
pub mod worker;

pub use decimal::{Fence, Id};
pub use error::{Code, Error, Result};
pub use gateway::GatewayMessage;
pub use header::write_message;
pub use retry::{Backoff, RetryPolicy};
pub use task_fence::TaskFence;
pub use worker::WorkerMessage;

/// The version of the protocol that this crate speaks.
pub const VERSION: u32 = 1;
