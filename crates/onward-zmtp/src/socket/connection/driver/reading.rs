//! Reads of a driver: octets of the stream to the queue of the program.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tokio_util::io::poll_read_buf;

use super::turn::Driver;
use crate::protocol::Event;
use crate::socket::error::{Error, Result};

impl Driver {
    /// Reads once if there is room. Returns the number of bytes read.
    pub(super) fn receive(&mut self, context: &mut Context<'_>) -> Result<usize> {
        if self.is_stalled || self.waits.for_bytes || !self.connection.wants_read() {
            return Ok(0);
        }
        // Most turns end here, before a read buffer is prepared.
        if self.stream.poll_read_ready(context).is_pending() {
            self.waits.for_bytes = true;
            return Ok(0);
        }
        let read = poll_read_buf(Pin::new(&mut self.stream), context, &mut self.connection.read_buf());
        self.waits.for_bytes = read.is_pending();
        match read {
            Poll::Pending => Ok(0),
            Poll::Ready(Ok(0)) => Err(self.connection.end_of_stream().into()),
            Poll::Ready(Err(error)) => Err(Error::io("reading from the peer failed", error)),
            Poll::Ready(Ok(count)) => {
                if self.is_timed {
                    self.received_at = Instant::now();
                }
                self.is_decoded = false;
                Ok(count)
            }
        }
    }

    /// Decodes and queues messages for the program while there are any and there is room for them.
    pub(super) fn decode(&mut self, context: &mut Context<'_>) -> Result<()> {
        while !self.is_decoded {
            if self.incoming_batch.poll_room(context).is_pending() {
                self.is_stalled = true;
                return Ok(());
            }
            self.is_stalled = false;
            if self.decode_batch()? {
                // Decoding may have stopped because too many protocol replies wait to be written.
                self.is_decoded = self.connection.wants_read();
                return Ok(());
            }
            self.incoming_batch.flush();
        }
        Ok(())
    }

    /// Decodes as many messages as there is room for. Returns true if there is nothing left to
    /// decode.
    fn decode_batch(&mut self) -> Result<bool> {
        let Self { connection, incoming_batch, .. } = self;
        let received_at = self.received_at.into_std();
        while incoming_batch.has_room() {
            let may_run = connection.may_have_short_run() && incoming_batch.takes_runs();
            if may_run
                && incoming_batch
                    .fill_run(|run, room| connection.take_short_run(received_at, run, room.messages, room.bytes))
            {
                if connection.is_all_decoded() {
                    return Ok(true);
                }
                continue;
            }
            match connection.poll_event(received_at)? {
                None => return Ok(true),
                Some(Event::Message(message)) => incoming_batch.message(message),
                Some(Event::Subscribe(topic)) => incoming_batch.subscribed(&topic),
                Some(Event::Cancel(topic)) => incoming_batch.cancelled(&topic),
                Some(Event::Authenticate(_) | Event::Introduced(_) | Event::Ready(_) | Event::Pong(_)) => {}
            }
        }
        Ok(false)
    }

    /// Reads what the peer sent before the write failed: messages, and perhaps the reason. Returns
    /// the reason why the connection ends.
    #[cold]
    pub(super) fn read_after_write_error(&mut self, context: &mut Context<'_>, error: Error) -> Error {
        if !error.is_io() {
            return error;
        }
        loop {
            let taken = self.decode(context).and_then(|()| self.receive(context));
            match taken {
                Ok(0) => return error,
                Ok(_) => {}
                // A second I/O error adds nothing; the error of the write is the clearer one.
                Err(reason) if reason.is_io() => return error,
                Err(reason) => return reason,
            }
        }
    }
}
