//! A driver that its own task and the task of the program use in turn.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use tokio::io::AsyncWrite as _;
use tokio::time::{Instant, timeout_at};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::CancellationToken;

use super::turn::Driver;
use super::writing::write_failed;
use crate::protocol::Message;
use crate::socket::connection::cancellation::CancellationFlag;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::error::{Error, Result};

/// A driver that its own task and the writer of [`DirectWriter`] use in turn.
pub(in crate::socket::connection) struct SharedDriver(Mutex<Driver>);

/// A writer that bypasses the driver's task if nothing is to be written first. The reply to a
/// message that came alone need not wait for that task to run.
pub(in crate::socket::connection) struct DirectWriter(Weak<SharedDriver>);

impl DirectWriter {
    /// Takes and writes the message, or leaves it for the caller to queue. Never waits.
    pub(in crate::socket::connection) fn write(&self, message: &mut Message) -> bool {
        let Some(driver) = self.0.upgrade() else { return false };
        // If the driver is locked, the holder also writes what is queued.
        driver.0.try_lock().is_ok_and(|mut driver| driver.write_directly(message))
    }
}

impl SharedDriver {
    pub(in crate::socket::connection) fn new(driver: Driver) -> Self {
        Self(Mutex::new(driver))
    }

    pub(in crate::socket::connection) fn direct_writer(self: &Arc<Self>) -> DirectWriter {
        DirectWriter(Arc::downgrade(self))
    }

    fn driver(&self) -> MutexGuard<'_, Driver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the connection until it ends. Returns the reason, or `None` if it was stopped.
    pub(in crate::socket::connection) async fn run(&self, stop: &CancellationToken) -> Option<Error> {
        let mut stop = CancellationFlag::new(stop);
        poll_fn(|context| if stop.poll(context) { Poll::Ready(None) } else { self.driver().poll(context).map(Some) })
            .await
    }

    /// Sends what is queued, then shuts the connection down, at the latest at the deadline.
    pub(in crate::socket::connection) async fn finish(&self, deadline: Option<Instant>) {
        let closing = async {
            poll_fn(|context| self.driver().poll_flush(context)).await?;
            let shutdown = poll_fn(|context| Pin::new(&mut self.driver().stream).poll_shutdown(context)).await;
            shutdown.map_err(write_failed)?;
            // If the socket closes with unread bytes, the operating system resets the connection.
            // The peer then loses what it has not read yet.
            self.discard().await
        };
        // A passed deadline and a peer that is gone both end the work, so the result does not
        // matter.
        match deadline {
            Some(deadline) => drop(timeout_at(deadline, closing).await),
            None => drop(closing.await),
        }
    }

    /// Reads and discards until the peer closes, too.
    async fn discard(&self) -> Result<()> {
        let mut buffer = Vec::with_capacity(DISCARD_BYTES);
        loop {
            buffer.clear();
            let read =
                poll_fn(|context| poll_read_buf(Pin::new(&mut self.driver().stream), context, &mut buffer)).await;
            if read.map_err(|error| Error::io("reading from the peer failed", error))? == 0 {
                return Ok(());
            }
        }
    }

    /// Writes what the connection has encoded for a peer that sent too much, then shuts the
    /// connection down, at the latest at the deadline.
    pub(in crate::socket::connection) async fn flush_and_shut_down(&self, deadline: Instant) {
        let closing = async {
            poll_fn(|context| self.driver().poll_write_all(context)).await?;
            let shutdown = poll_fn(|context| Pin::new(&mut self.driver().stream).poll_shutdown(context)).await;
            shutdown.map_err(write_failed)?;
            self.discard().await
        };
        // The peer may be gone, or may not read, so the result does not matter.
        let _ = timeout_at(deadline, closing).await;
    }

    /// Returns the unsent items, and the number of messages that may or may not have arrived.
    /// Nothing is written afterwards.
    pub(in crate::socket::connection) fn take_unsent(&self) -> (VecDeque<Outgoing>, usize) {
        let mut driver = self.driver();
        driver.is_over = true;
        (mem::take(&mut driver.unsent.items.list), driver.uncertain.messages())
    }
}

/// The size of the buffer for reads that are discarded.
const DISCARD_BYTES: usize = 16 * 1024;
