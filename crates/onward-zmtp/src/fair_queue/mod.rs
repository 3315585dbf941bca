//! A queue that reads from many sources and lets none of them starve.
//!
//! [`FairQueue`] takes messages from sources that are inserted and removed at any time:
//! connections, channels, any [`Stream`](futures_core::Stream). It does not depend on ZeroMQ and
//! needs no runtime.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::pin::{Pin, pin};
//! use std::task::{Context, Poll, Waker};
//!
//! use futures_core::Stream;
//! use onward_zmtp::FairQueue;
//!
//! /// A source with its messages in memory.
//! struct Buffered(VecDeque<&'static str>);
//!
//! impl Stream for Buffered {
//!     type Item = &'static str;
//!
//!     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<&'static str>> {
//!         Poll::Ready(self.0.pop_front())
//!     }
//! }
//!
//! async fn read_all() -> Vec<(u32, &'static str)> {
//!     let mut queue = FairQueue::new();
//!     queue.on_end(|ended| println!("source {} is through", ended.key));
//!
//!     // A handle works from any task or thread, while the queue is being read.
//!     let handle = queue.handle();
//!     handle.insert(1, Buffered(VecDeque::from(["a", "b", "c"]))).unwrap();
//!     handle.insert(2, Buffered(VecDeque::from(["x"]))).unwrap();
//!     // Without handles, the queue is at its end once its sources are.
//!     drop(handle);
//!
//!     let mut messages = Vec::new();
//!     while let Some(message) = queue.recv().await {
//!         messages.push(message);
//!     }
//!     messages
//! }
//!
//! # let mut reading = pin!(read_all());
//! # let mut context = Context::from_waker(Waker::noop());
//! # let Poll::Ready(messages) = reading.as_mut().poll(&mut context) else { panic!() };
//! // The sources took turns.
//! assert_eq!(messages, [(1, "a"), (2, "x"), (1, "b"), (1, "c")]);
//! ```
//!
//! # How it works
//!
//! The reader owns the sources, so it polls them without a lock. Every other task that inserts,
//! removes or wakes a source raises a signal. The signal is one word, which the reader loads before
//! each message.
//!
//! - **No source**: the reader waits for a handle to insert one.
//! - **One source**: the reader polls it with the waker of its own task. A message costs that poll,
//!   a load of the signal, and a clone of the key.
//! - **Many sources**: each has its own waker, which records that the source may have a message.
//!   The reader polls only the recorded sources, in turn. No message allocates, and its cost does
//!   not grow with the number of sources. When only one source is left, the reader soon polls it
//!   directly again.

mod handle;
mod mailbox;
mod many;
mod one;
mod queue;
mod ready_ring;
mod signal;
mod source;
mod sources;
pub(crate) mod sync;

pub use handle::{Handle, InsertError};
pub use queue::{DEFAULT_SOURCE_LIMIT, EMPTY_POLLS_BEFORE_YIELD, FairQueue, READS_BEFORE_YIELD, State};
#[cfg(feature = "tokio")]
pub(crate) use source::ReadAhead;
pub use source::{Ended, SourceId};
