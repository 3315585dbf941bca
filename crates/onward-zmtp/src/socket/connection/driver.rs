//! The driver of an established connection: it reads, writes and keeps time.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use bytes::Buf as _;
use tokio::io::AsyncWrite as _;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::CancellationToken;

use super::batch_write;
use super::cancellation::CancellationFlag;
use super::idle_shrink::IdleShrink;
use super::incoming_batch::IncomingBatch;
use super::pipe::{Pipe, REPORT_AFTER_MESSAGES};
use super::queue_items::Outgoing;
use super::transport::Stream;
use crate::protocol::{Connection, Event, Message};
use crate::socket::bounds::{SHARED_TURN_BYTES, TURN_BYTES};
use crate::socket::error::{Error, Result};
use crate::socket::queue::items::{QueueItem as _, Taken};
use crate::socket::shared::Shared;

/// The mover of messages between the queues of a peer and its stream. It works in batches, in both
/// directions, in one task.
///
/// It stops reading while the queue to the program is full, which slows down the peer. It stops
/// taking from the program's queue while its write buffer is full, which slows down the program.
pub(super) struct Driver {
    stream: Stream,
    connection: Connection,
    shared: Arc<Shared>,
    pipe: Arc<Pipe>,
    /// Items taken from the queue and not encoded yet.
    unsent: Taken<Outgoing>,
    incoming_batch: IncomingBatch,
    /// The time of the last receipt; kept only if `is_timed`.
    received_at: Instant,
    /// True if a deadline depends on the time of the last receipt.
    is_timed: bool,
    /// True if there was no room for received messages at the last check.
    is_stalled: bool,
    /// True if everything received so far is decoded.
    is_decoded: bool,
    waits: Waits,
    timer: Pin<Box<Sleep>>,
    /// The time at which the timer fires; `None` if it is not set.
    armed: Option<Instant>,
    idle_shrink: IdleShrink,
    uncertain: Uncertain,
    /// True if the connection has failed and nothing more must be written.
    is_over: bool,
}

/// A driver that its own task and the writer of [`DirectWriter`] use in turn.
pub(super) struct SharedDriver(Mutex<Driver>);

/// A writer that bypasses the driver's task if nothing is to be written first. The reply to a
/// message that came alone need not wait for that task to run.
pub(super) struct DirectWriter(Weak<SharedDriver>);

impl DirectWriter {
    /// Takes and writes the message, or leaves it for the caller to queue. Never waits.
    pub(super) fn write(&self, message: &mut Message) -> bool {
        let Some(driver) = self.0.upgrade() else { return false };
        // If the driver is locked, the holder also writes what is queued.
        driver.0.try_lock().is_ok_and(|mut driver| driver.write_directly(message))
    }
}

impl SharedDriver {
    pub(super) fn new(driver: Driver) -> Self {
        Self(Mutex::new(driver))
    }

    pub(super) fn direct_writer(self: &Arc<Self>) -> DirectWriter {
        DirectWriter(Arc::downgrade(self))
    }

    fn driver(&self) -> MutexGuard<'_, Driver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the connection until it ends. Returns the reason, or `None` if it was stopped.
    pub(super) async fn run(&self, stop: &CancellationToken) -> Option<Error> {
        let mut stop = CancellationFlag::new(stop);
        poll_fn(|context| if stop.poll(context) { Poll::Ready(None) } else { self.driver().poll(context).map(Some) })
            .await
    }

    /// Sends what is queued, then shuts the connection down, at the latest at the deadline.
    pub(super) async fn finish(&self, deadline: Option<Instant>) {
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
    pub(super) async fn flush_and_shut_down(&self, deadline: Instant) {
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
    pub(super) fn take_unsent(&self) -> (VecDeque<Outgoing>, usize) {
        let mut driver = self.driver();
        driver.is_over = true;
        (mem::take(&mut driver.unsent.items.list), driver.uncertain.messages())
    }
}

impl Driver {
    pub(super) fn new(stream: Stream, connection: Connection, shared: Arc<Shared>, pipe: Arc<Pipe>) -> Self {
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
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Error> {
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

    /// Writes a message from the program's own task, if it is the next to be written. The driver's
    /// task writes what the stream does not take at once.
    fn write_directly(&mut self, message: &mut Message) -> bool {
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

    /// Returns the number of bytes that a turn may move. It is lower if there are other peers,
    /// which may be waiting for a processor.
    fn turn_bytes(&self) -> usize {
        if self.pipe.incoming.is_shared() { SHARED_TURN_BYTES } else { TURN_BYTES }
    }

    /// Writes one batch. Returns the number of bytes taken, which is zero if there is nothing to
    /// write or the stream must wait.
    fn send(&mut self, context: &mut Context<'_>) -> Result<usize> {
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

    /// Reads what the peer sent before the write failed: messages, and perhaps the reason. Returns
    /// the reason why the connection ends.
    #[cold]
    fn read_after_write_error(&mut self, context: &mut Context<'_>, error: Error) -> Error {
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

    /// Writes everything that is encoded.
    fn poll_write_all(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
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

    /// Reads once if there is room. Returns the number of bytes read.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<usize> {
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
    fn decode(&mut self, context: &mut Context<'_>) -> Result<()> {
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

    /// Does what is due. The timer is set again only if it would fire too late, which saves a reset
    /// in most turns.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Result<bool> {
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

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
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

/// The events that this turn has found not to be ready. Each of them wakes the task for another
/// turn, so polling it again in the same turn is useless.
#[derive(Debug, Default)]
struct Waits {
    for_messages: bool,
    for_bytes: bool,
}

/// The messages that are in the write buffer or partly written, so that it is unknown whether they
/// arrive.
#[derive(Debug, Default)]
struct Uncertain {
    /// The batches: the position in the whole output at which the last message of each ends, and
    /// its number of messages.
    batches: VecDeque<(u64, usize)>,
}

impl Uncertain {
    fn encoded(&mut self, messages: usize, end: u64) {
        if messages > 0 {
            self.batches.push_back((end, messages));
        }
    }

    fn written(&mut self, total: u64) {
        while self.batches.front().is_some_and(|(end, _)| *end <= total) {
            self.batches.pop_front();
        }
    }

    fn messages(&self) -> usize {
        self.batches.iter().map(|(_, messages)| messages).sum()
    }
}

/// Reschedules the task behind the I/O events of the runtime. After a plain wake-up the runtime
/// would check for events only once in dozens of turns. Peers that send little would then wait for
/// one that sends much.
fn yield_behind_io(context: &mut Context<'_>) {
    let again = pin!(yield_now()).poll(context);
    debug_assert!(again.is_pending(), "to yield takes another poll");
}

/// The size of the buffer for reads that are discarded.
const DISCARD_BYTES: usize = 16 * 1024;

#[cold]
fn write_failed(error: io::Error) -> Error {
    Error::io("writing to the peer failed", error)
}
