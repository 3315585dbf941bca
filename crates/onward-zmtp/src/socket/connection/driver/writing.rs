//! Writes of a driver: items of the queue to the stream.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf as _;

use super::turn::{Driver, Waits};
use crate::protocol::Message;
use crate::socket::connection::batch_write;
use crate::socket::connection::pipe::REPORT_AFTER_MESSAGES;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::error::{Error, Result};
use crate::socket::queue::items::{QueueItem as _, Taken};

impl Driver {
    /// Writes one batch. Returns the number of bytes taken, which is zero if there is nothing to
    /// write or the stream must wait.
    pub(super) fn send(&mut self, context: &mut Context<'_>) -> Result<usize> {
        // The queue was empty when this turn last looked, so there is nothing to encode.
        if !(self.waits.for_messages && self.unsent.items.list.is_empty()) {
            self.encode(context)?;
        }
        if !self.connection.wants_write() {
            return Ok(0);
        }
        match batch_write::poll_write(Pin::new(&mut self.stream), context, self.connection.output()) {
            Poll::Pending => Ok(0),
            Poll::Ready(Ok(0)) => Err(write_failed(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Err(error)) => Err(write_failed(error)),
            Poll::Ready(Ok(count)) => {
                self.uncertain.written(self.connection.output().total_written());
                Ok(count)
            }
        }
    }

    /// Fills the write buffer with queued items, as far as they fit.
    ///
    /// Items that the program queues during the write wait until it is done. Taking them one at a
    /// time would make the driver contend with the program for the lock of the queue.
    fn encode(&mut self, context: &mut Context<'_>) -> Result<()> {
        let mut messages = 0;
        let mut may_refill = !self.waits.for_messages;
        while !self.connection.output().is_full() {
            let Taken { items, done, .. } = &mut self.unsent;
            let Some(item) = items.list.front_mut() else {
                if mem::take(&mut may_refill) && self.refill(context) {
                    continue;
                }
                break;
            };
            let size = item.size();
            done.messages += size.messages;
            done.bytes += size.bytes;
            messages += size.messages;
            match item {
                Outgoing::Message(message) | Outgoing::Hello(message) => self.connection.send_taking(message)?,
                Outgoing::Run(run) => self.connection.send_run(run)?,
                Outgoing::Subscribe(topic) => self.connection.subscribe(topic)?,
                Outgoing::Cancel(topic) => self.connection.cancel(topic)?,
            }
            if let Some(Outgoing::Run(run)) = items.list.pop_front() {
                items.keep(run);
            }
        }
        if self.should_report_done() {
            self.pipe.outgoing.done(&mut self.unsent.done);
        }
        let output = self.connection.output();
        self.uncertain.encoded(messages, output.total_written() + output.remaining() as u64);
        Ok(())
    }

    /// Takes the items queued for this peer, but first those of the backlog that is queued for any
    /// peer.
    fn refill(&mut self, context: &mut Context<'_>) -> bool {
        let taken = self.shared.poll_next_batch(&self.pipe, context, &mut self.unsent);
        self.waits.for_messages = taken.is_pending();
        matches!(taken, Poll::Ready(true))
    }

    /// Returns true if so much was encoded that the program should be notified before the write.
    /// Otherwise the next take notifies it at no cost.
    fn should_report_done(&mut self) -> bool {
        let (high_water_mark, done) = (self.pipe.outgoing.high_water_mark(), self.unsent.done);
        self.connection.output().is_full()
            || done.messages >= REPORT_AFTER_MESSAGES.min(high_water_mark.messages / 4)
            || done.bytes >= high_water_mark.bytes / 4
    }

    /// Writes a message from the program's own task, if it is the next to be written. The driver's
    /// task writes what the stream does not take at once.
    pub(super) fn write_directly(&mut self, message: &mut Message) -> bool {
        let is_next = self.unsent.items.list.is_empty()
            && !self.connection.wants_write()
            && !self.shared.has_backlog()
            && self.pipe.outgoing.reader_waits();
        // A message that cannot be encoded is queued. The driver's task then gets the same error
        // and ends the connection.
        if self.is_over || !is_next || self.connection.send_taking(message).is_err() {
            return false;
        }
        let output = self.connection.output();
        if let Some(Ok(count)) = output.whole().map(|whole| self.stream.try_write(whole)) {
            output.advance(count);
        }
        if output.has_remaining() {
            // The driver's task waits for messages, so it must be woken to write the rest.
            self.uncertain.encoded(1, output.total_written() + output.remaining() as u64);
            self.pipe.outgoing.wake_reader();
        }
        true
    }

    /// Writes everything that is encoded.
    pub(super) fn poll_write_all(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while self.connection.wants_write() {
            match batch_write::poll_write(Pin::new(&mut self.stream), context, self.connection.output()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => self.uncertain.written(self.connection.output().total_written()),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(write_failed(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(write_failed(error))),
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.waits = Waits::default();
        loop {
            match self.send(context) {
                Ok(0) if self.connection.wants_write() => return Poll::Pending,
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

#[cold]
pub(super) fn write_failed(error: io::Error) -> Error {
    Error::io("writing to the peer failed", error)
}
