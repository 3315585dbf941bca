//! One connection, from the first octet to the last.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};

use super::bounds::TOPIC_BYTES;
use super::error::{Error, Result};
use super::event::{Event, Peer};
use super::mechanism::Entropy;
use super::message::Message;
use super::options::Options;
use super::state::{Progress, State};
use super::subscriptions::Subscriptions;
use super::wire::input::Input;
#[cfg(feature = "tokio")]
use super::wire::message_run::MessageRun;
use super::wire::output::Output;

/// The state of one connection, on either side. It does no I/O and reads no clock.
///
/// The loop around it:
///
/// 1. Read from the stream into [`read_buf`](Self::read_buf), or pass received bytes to
///    [`receive`](Self::receive).
/// 2. Take events from [`poll_event`](Self::poll_event) until there is none.
/// 3. Add messages with [`send`](Self::send) while [`output`](Self::output) is not full.
/// 4. Write what is in [`output`](Self::output).
/// 5. At [`next_timeout`](Self::next_timeout), if nothing happened before, call
///    [`handle_timeout`](Self::handle_timeout).
///
/// After an error the connection is over. Write the rest of the output if that can be done at once,
/// because it may hold the reason for the peer. Then close the stream.
#[derive(Debug)]
pub struct Connection {
    input: Input,
    /// Separate from `input`, so that a frame can be handled while it is still in there.
    state: State,
}

impl Connection {
    /// Returns a connection on a stream that was just opened, by either side. Its greeting is in
    /// the output already.
    ///
    /// `entropy` must be new for each connection. The time for the handshake begins `now`.
    #[must_use]
    pub fn new(options: Arc<Options>, entropy: Entropy, now: Instant) -> Self {
        Self { input: Input::new(), state: State::new(options, entropy, now, false) }
    }

    /// Returns a connection on a stream that the peer opened. It reports [the
    /// peer](Event::Introduced) before it sends `READY`. A peer that cannot be accepted (its
    /// identity is taken, or there are too many peers) is therefore rejected before it has sent
    /// anything.
    ///
    /// At most one end of a stream may be made with this function: with the mechanism NULL, each
    /// would wait for the other's `READY`.
    #[must_use]
    pub fn accepted(options: Arc<Options>, entropy: Entropy, now: Instant) -> Self {
        Self { input: Input::new(), state: State::new(options, entropy, now, true) }
    }

    /// Returns the buffer for received bytes. It has no room while it is full of bytes that wait
    /// for [`poll_event`](Self::poll_event).
    ///
    /// For the rest of a large frame, the buffer is the frame's own memory, so that the frame is
    /// not copied again.
    pub fn read_buf(&mut self) -> impl BufMut + '_ {
        self.input.read_buf()
    }

    /// Releases the memory that only a busy connection needs. Call it when there is nothing to be
    /// read or written. The call costs almost nothing when there is no such memory.
    #[inline]
    pub fn shrink_idle(&mut self) {
        self.input.shrink_idle();
        self.state.output.shrink_idle();
    }

    /// Returns whether [`shrink_idle`](Self::shrink_idle) would release memory.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn can_shrink(&self) -> bool {
        self.input.can_shrink() || self.state.output.can_shrink()
    }

    /// Takes received bytes from the front of a slice and returns how many. It serves streams that
    /// cannot read into [`read_buf`](Self::read_buf). If it takes fewer than all, call
    /// [`poll_event`](Self::poll_event) before the rest fits.
    #[must_use = "bytes that were not taken must be passed again"]
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut buffer = self.input.read_buf();
        let count = bytes.len().min(buffer.remaining_mut());
        buffer.put_slice(&bytes[..count]);
        count
    }

    /// Returns whether to read from the stream. It is `false` while a decision about the peer is
    /// pending, while too many replies wait to be written, and after an error.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.state.failure.is_none() && !self.state.is_waiting()
    }

    /// Returns the next event in the received bytes. Returns `None` if the connection must receive
    /// more, write more or get a decision first. `now` is the time at which the bytes were
    /// received.
    ///
    /// # Errors
    ///
    /// Returns the fault of the peer. Every later call returns the same error.
    #[inline]
    pub fn poll_event(&mut self, now: Instant) -> Result<Option<Event>> {
        self.check()?;
        self.note_arrival(now);
        // Decoding shortens the input, so the next arrival is compared with the new length.
        let outcome = self.decode(now);
        self.input.mark_seen();
        outcome.map_err(|error| self.state.fail(error))
    }

    /// Passes consecutive messages of one short frame (up to 255 bytes) to `take` until it returns
    /// `false`. It stops before anything else, which it leaves to [`poll_event`](Self::poll_event).
    /// `poll_event` would return these messages too, but many of them cost only a fraction here.
    /// `now` is the time at which the bytes were received.
    #[inline]
    pub fn take_short_messages(&mut self, now: Instant, mut take: impl FnMut(Message) -> bool) {
        let Some(longest) = self.state.short_message_limit() else { return };
        self.note_arrival(now);
        self.input.take_short_messages(longest, |body| take(Message::from(Bytes::copy_from_slice(body))));
        self.input.mark_seen();
    }

    /// Returns whether [`take_short_run`](Self::take_short_run) may find any message. It costs
    /// almost nothing.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn may_have_short_run(&self) -> bool {
        self.input.may_have_short_run()
    }

    /// Adds consecutive messages of one short frame to a run. It stops when the run has no room,
    /// after `messages` messages, or once their payloads reach `bytes` bytes.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn take_short_run(&mut self, now: Instant, run: &mut MessageRun, messages: usize, bytes: usize) {
        let Some(longest) = self.state.short_message_limit() else { return };
        self.note_arrival(now);
        self.input.take_short_run(longest, run, messages, bytes);
        self.input.mark_seen();
    }

    /// Returns whether all received bytes are decoded.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn is_all_decoded(&self) -> bool {
        self.input.is_empty()
    }

    fn check(&self) -> Result<()> {
        self.state.failure.clone().map_or(Ok(()), Err)
    }

    #[inline]
    fn note_arrival(&mut self, now: Instant) {
        if self.input.has_grown() {
            self.state.note_received(now);
            self.input.mark_seen();
        }
    }

    #[inline]
    fn decode(&mut self, now: Instant) -> Result<Option<Event>> {
        while !self.state.is_waiting() {
            match self.state.decode(&mut self.input, now)? {
                Progress::Event(event) => return Ok(Some(event)),
                Progress::Decoded => {}
                Progress::Wait => break,
            }
        }
        Ok(None)
    }

    /// Accepts the peer of [`Event::Authenticate`] or [`Event::Introduced`].
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if no decision is pending, or the error that ended
    /// the connection.
    pub fn accept(&mut self) -> Result<()> {
        self.check()?;
        self.state.accept()
    }

    /// Refuses the peer of [`Event::Authenticate`] or [`Event::Introduced`] for good. The peer
    /// receives `reason`: up to 255 bytes, by convention a status code such as `400`. Include no
    /// more than the peer may know. The connection is then over, with [`Error::is_refused`].
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if no decision is pending, or the error that ended
    /// the connection.
    pub fn refuse(&mut self, reason: &str) -> Result<()> {
        self.check()?;
        self.state.refuse(reason)
    }

    /// Adds a message to the output. Small frames are copied, large ones are referred to. With
    /// CURVE all frames are encrypted now.
    ///
    /// The output has no limit of its own. Add messages only while it is not
    /// [full](Output::is_full).
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if the handshake is not done or the message has no
    /// frame, or the error that ended the connection.
    #[inline]
    pub fn send(&mut self, message: Message) -> Result<()> {
        self.check_message(&message)?;
        let (traffic, output) = self.state.established()?;
        traffic.send(&message, output)
    }

    /// Adds a message to the output and takes the payloads that are not copied now.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn send_taking(&mut self, message: &mut Message) -> Result<()> {
        self.check_message(message)?;
        let (traffic, output) = self.state.established()?;
        traffic.send_taking(message, output)
    }

    #[inline]
    fn check_message(&self, message: &Message) -> Result<()> {
        self.check()?;
        if message.is_empty() {
            return Err(Error::misuse("a message needs a frame, even if it is an empty one"));
        }
        Ok(())
    }

    /// Adds a run of encoded messages to the output. Afterwards only the memory of the run is of
    /// use.
    #[cfg(feature = "tokio")]
    pub(crate) fn send_run(&mut self, run: &mut MessageRun) -> Result<()> {
        self.check()?;
        let (traffic, output) = self.state.established()?;
        traffic.send_run(run, output)
    }

    /// Adds a subscription to the output, in the form that the peer's version of ZMTP knows.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if the handshake is not done, if this is no SUB or
    /// XSUB socket, or if the topic is longer than [`TOPIC_BYTES`]. Otherwise returns the error
    /// that ended the connection.
    pub fn subscribe(&mut self, topic: &[u8]) -> Result<()> {
        self.subscription(topic, true)
    }

    /// Adds the end of one subscription to the output, in the form that the peer's version of ZMTP
    /// knows.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`subscribe`](Self::subscribe).
    pub fn cancel(&mut self, topic: &[u8]) -> Result<()> {
        self.subscription(topic, false)
    }

    fn subscription(&mut self, topic: &[u8], is_new: bool) -> Result<()> {
        self.check()?;
        let socket_type = self.state.options.socket_type;
        if !socket_type.subscribes() {
            return Err(Error::misuse(format!("a {socket_type} socket does not subscribe")));
        }
        if topic.len() > TOPIC_BYTES {
            return Err(Error::misuse(format!("a topic has at most {TOPIC_BYTES} bytes, not {}", topic.len())));
        }
        let (traffic, output) = self.state.established()?;
        traffic.send_subscription(topic, is_new, output)
    }

    /// Returns the bytes to be written to the stream.
    pub fn output(&mut self) -> &mut Output {
        &mut self.state.output
    }

    /// Returns whether anything is to be written.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.state.output.has_remaining()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) if nothing happens before.
    /// Returns `None` if there is nothing to wait for. Every other call may change the time.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.state.next_timeout()
    }

    /// Does what is due: ends a handshake that takes too long, sends a `PING` to a silent peer,
    /// ends the connection to a dead one. A call that is too early does nothing.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_timeout`]) if the time is up, or the error that ended the
    /// connection before.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<()> {
        self.check()?;
        self.note_arrival(now);
        self.state.timeout(now).map_err(|error| self.state.fail(error))
    }

    /// Restarts the silence of the peer at `now`, as if bytes had arrived. Call it when the loop
    /// has not read for a while, so that bytes of the peer may be unread.
    pub fn excuse_silence(&mut self, now: Instant) {
        self.state.note_received(now);
    }

    /// Ends the connection because the peer closed the stream, and returns the reason. Take all
    /// events first.
    pub fn end_of_stream(&mut self) -> Error {
        if let Some(failure) = &self.state.failure {
            return failure.clone();
        }
        let is_partial = !self.input.is_empty();
        if self.state.awaits_welcome() && !is_partial {
            return self.state.fail(Error::unanswered());
        }
        let text = match self.state.traffic() {
            None => "the peer closed the connection before the handshake was done",
            Some(traffic) if traffic.is_incomplete() || is_partial => {
                "the peer closed the connection in the middle of a message, which is dropped"
            }
            Some(_) => "the peer closed the connection",
        };
        self.state.fail(Error::disconnected(text))
    }

    /// Returns the peer, once the handshake is done.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        self.state.traffic().map(|traffic| &traffic.peer)
    }

    /// Returns the peer's subscriptions, once the handshake is done. They are empty unless this is
    /// a PUB or XPUB socket.
    #[must_use]
    pub fn subscriptions(&self) -> Option<&Subscriptions> {
        self.state.traffic().map(|traffic| &traffic.subscriptions)
    }
}
