//! The driver of an established connection: it reads, writes and keeps time, in turns.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};

use super::uncertain::Uncertain;
use crate::protocol::Connection;
use crate::socket::bounds::{SHARED_TURN_BYTES, TURN_BYTES};
use crate::socket::connection::idle_shrink::IdleShrink;
use crate::socket::connection::incoming_batch::IncomingBatch;
use crate::socket::connection::pipe::Pipe;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::connection::transport::Stream;
use crate::socket::error::{Error, Result};
use crate::socket::queue::items::Taken;
use crate::socket::shared::Shared;

/// The mover of messages between the queues of a peer and its stream. It works in batches, in both
/// directions, in one task.
///
/// It stops reading while the queue to the program is full, which slows down the peer. It stops
/// taking from the program's queue while its write buffer is full, which slows down the program.
pub(in crate::socket::connection) struct Driver {
    pub(super) stream: Stream,
    pub(super) connection: Connection,
    pub(super) shared: Arc<Shared>,
    pub(super) pipe: Arc<Pipe>,
    /// Items taken from the queue and not encoded yet.
    pub(super) unsent: Taken<Outgoing>,
    pub(super) incoming_batch: IncomingBatch,
    /// The time of the last receipt; kept only if `is_timed`.
    pub(super) received_at: Instant,
    /// True if a deadline depends on the time of the last receipt.
    pub(super) is_timed: bool,
    /// True if there was no room for received messages at the last check.
    pub(super) is_stalled: bool,
    /// True if everything received so far is decoded.
    pub(super) is_decoded: bool,
    pub(super) waits: Waits,
    pub(super) timer: Pin<Box<Sleep>>,
    /// The time at which the timer fires; `None` if it is not set.
    pub(super) armed: Option<Instant>,
    pub(super) idle_shrink: IdleShrink,
    pub(super) uncertain: Uncertain,
    /// True if the connection has failed and nothing more must be written.
    pub(super) is_over: bool,
}

impl Driver {
    pub(in crate::socket::connection) fn new(
        stream: Stream,
        connection: Connection,
        shared: Arc<Shared>,
        pipe: Arc<Pipe>,
    ) -> Self {
        let now = Instant::now();
        Self {
            stream,
            connection,
            incoming_batch: IncomingBatch::new(shared.clone(), pipe.clone()),
            shared,
            pipe,
            unsent: Taken::nothing(),
            received_at: now,
            is_timed: false,
            is_stalled: false,
            is_decoded: false,
            waits: Waits::default(),
            timer: Box::pin(sleep_until(now)),
            armed: None,
            idle_shrink: IdleShrink::default(),
            uncertain: Uncertain::default(),
            is_over: false,
        }
    }

    /// Runs one turn. The received messages are delivered at once at its end: a program that is
    /// woken for each read does little else.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        let outcome = self.turn(context);
        self.incoming_batch.flush();
        match outcome {
            Ok(true) if self.pipe.incoming.is_shared() => yield_behind_io(context),
            Ok(true) => context.waker().wake_by_ref(),
            Ok(false) => {}
            Err(error) => {
                self.is_over = true;
                return Poll::Ready(error);
            }
        }
        Poll::Pending
    }

    /// Does all work that is ready, up to a limit, so that other tasks of the runtime can run.
    /// Returns true if there is more.
    fn turn(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let mut moved = 0;
        self.waits = Waits::default();
        while moved < self.turn_bytes() {
            // Decoding comes before writing, because some of what it decodes causes replies of the
            // protocol.
            self.decode(context)?;
            let sent = self.send(context).map_err(|error| self.read_after_write_error(context, error))?;
            let step = sent + self.receive(context)?;
            if step == 0 && !self.poll_timer(context)? {
                // The delivery shows how much memory the queue takes.
                self.incoming_batch.flush();
                if self.idle_shrink.poll_idle(self.can_shrink(), context) {
                    self.shrink_idle();
                }
                return Ok(false);
            }
            self.idle_shrink.on_traffic();
            moved += step;
        }
        Ok(true)
    }

    /// Returns the number of bytes that a turn may move. It is lower if there are other peers,
    /// which may be waiting for a processor.
    fn turn_bytes(&self) -> usize {
        if self.pipe.incoming.is_shared() { SHARED_TURN_BYTES } else { TURN_BYTES }
    }

    /// Returns true if the connection has memory that only a busy one needs.
    fn can_shrink(&self) -> bool {
        self.connection.can_shrink()
            || self.incoming_batch.can_shrink()
            || self.pipe.incoming.can_shrink()
            || self.pipe.outgoing.can_shrink()
    }

    #[cold]
    fn shrink_idle(&mut self) {
        self.connection.shrink_idle();
        self.incoming_batch.shrink_idle();
        self.unsent.items.shrink_idle();
        self.pipe.incoming.shrink_idle();
        self.pipe.outgoing.shrink_idle();
    }

    /// Does what is due. The timer is set again only if it would fire too late, which saves a reset
    /// in most turns.
    pub(super) fn poll_timer(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(due) = self.connection.next_timeout() else { return Ok(false) };
        if !self.is_timed {
            return Ok(self.start_timing());
        }
        let due = Instant::from_std(due);
        if self.armed.is_none_or(|armed| armed > due) {
            self.timer.as_mut().reset(due);
            self.armed = Some(due);
        }
        if self.timer.as_mut().poll(context).is_pending() {
            return Ok(false);
        }
        self.armed = None;
        let now = Instant::now().into_std();
        if self.is_stalled {
            // This side does not read, so the replies of the peer may be on the way.
            self.connection.excuse_silence(now);
        }
        self.connection.handle_timeout(now)?;
        Ok(true)
    }

    /// Starts to track the time of the last receipt. Until a deadline depends on it, reading the
    /// clock for each small message would cost more than decoding it.
    #[cold]
    fn start_timing(&mut self) -> bool {
        self.is_timed = true;
        self.received_at = Instant::now();
        self.connection.excuse_silence(self.received_at.into_std());
        true
    }
}

/// The events that this turn has found not to be ready. Each of them wakes the task for another
/// turn, so polling it again in the same turn is useless.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub(super) for_messages: bool,
    pub(super) for_bytes: bool,
}

/// Reschedules the task behind the I/O events of the runtime. After a plain wake-up the runtime
/// would check for events only once in dozens of turns. Peers that send little would then wait for
/// one that sends much.
fn yield_behind_io(context: &mut Context<'_>) {
    let again = pin!(yield_now()).poll(context);
    debug_assert!(again.is_pending(), "to yield takes another poll");
}
