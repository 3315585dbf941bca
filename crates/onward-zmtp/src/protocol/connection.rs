//! One connection, from the first octet to the last.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};

use super::error::{Error, Result};
use super::event::{Event, Peer};
use super::input::Input;
use super::limits::TOPIC_BYTES;
use super::mechanism::Entropy;
use super::message::Message;
use super::options::Options;
use super::output::Output;
#[cfg(feature = "tokio")]
use super::run::Run;
use super::state::{Progress, State};
use super::subscriptions::Subscriptions;

/// The state of one connection, either side. It does no I/O and reads no clock.
///
/// The loop around it:
///
/// 1. read from the stream into [`read_buf`](Self::read_buf) (or hand it received bytes with
///    [`receive`](Self::receive));
/// 2. take events from [`poll_event`](Self::poll_event) until there is none;
/// 3. add messages with [`send`](Self::send) while [`output`](Self::output) is not full;
/// 4. write what is in [`output`](Self::output);
/// 5. at [`next_timeout`](Self::next_timeout), if nothing happened before, call
///    [`handle_timeout`](Self::handle_timeout).
///
/// After an error the connection is over: write what is left in the output if that can be done at
/// once (it may tell the peer the reason), then close the stream.
#[derive(Debug)]
pub struct Connection {
    input: Input,
    /// Apart from `input`, so that a frame can be handled while it is still in there.
    state: State,
}

impl Connection {
    /// A connection on a stream that has just been opened, by either side. Its greeting is in the
    /// output already.
    ///
    /// `entropy` must be new for each connection. The time for the handshake begins `now`.
    #[must_use]
    pub fn new(options: Arc<Options>, entropy: Entropy, now: Instant) -> Self {
        Self { input: Input::new(), state: State::new(options, entropy, now, false) }
    }

    /// The same on a stream that the peer opened. It tells [who the peer is](Event::Introduced)
    /// before it says `READY`, so that a peer that cannot be had (its identity is taken, there are
    /// too many) is sent away before it has sent anything.
    ///
    /// Of two connections that talk to each other one only may be such a one: with the mechanism
    /// NULL each would wait for the other's `READY`.
    #[must_use]
    pub fn accepted(options: Arc<Options>, entropy: Entropy, now: Instant) -> Self {
        Self { input: Input::new(), state: State::new(options, entropy, now, true) }
    }

    /// Where received bytes go. It has no room while what was received before waits for
    /// [`poll_event`](Self::poll_event).
    ///
    /// For the rest of a large frame it is that frame's own memory, so that it is copied no
    /// further.
    pub fn read_buf(&mut self) -> impl BufMut + '_ {
        self.input.read_buf()
    }

    /// There is nothing to be read or written for now: gives memory back that only a busy
    /// connection needs. It costs hardly anything when there is none.
    #[inline]
    pub fn rest(&mut self) {
        self.input.rest();
        self.state.output.rest();
    }

    /// Whether there is memory that [`rest`](Self::rest) would give back.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn has_memory_to_spare(&self) -> bool {
        self.input.has_memory_to_spare() || self.state.output.has_memory_to_spare()
    }

    /// Takes received bytes from the front of a slice and answers how many: for streams that cannot
    /// read into [`read_buf`](Self::read_buf). Fewer than all means that
    /// [`poll_event`](Self::poll_event) must be called before the others fit.
    #[must_use = "what was not taken must be handed in again"]
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut buffer = self.input.read_buf();
        let count = bytes.len().min(buffer.remaining_mut());
        buffer.put_slice(&bytes[..count]);
        count
    }

    /// Whether it is of use to read from the stream. Not while a peer waits for the decision about
    /// it, nor while too many answers wait to be written, nor after an error.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.state.failure.is_none() && !self.state.is_waiting()
    }

    /// The next event in what was received, or `None` if more must be received, decided or written
    /// first. `now` is when it was received.
    ///
    /// # Errors
    ///
    /// What the peer did wrong. From then on the answer is the same.
    #[inline]
    pub fn poll_event(&mut self, now: Instant) -> Result<Option<Event>> {
        self.check()?;
        self.note_arrival(now);
        let outcome = self.decode(now);
        self.input.mark();
        outcome.map_err(|error| self.state.fail(error))
    }

    /// Gives `take` the messages of one short frame (up to 255 bytes) that come next, for as long
    /// as it answers that it wants more. What comes next and is something else is left to
    /// [`poll_event`](Self::poll_event), which would give these messages, too: many of them cost a
    /// fraction here. `now` is as there.
    #[inline]
    pub fn take_short_messages(&mut self, now: Instant, mut take: impl FnMut(Message) -> bool) {
        let Some(longest) = self.state.short_messages() else { return };
        self.note_arrival(now);
        self.input.take_short_messages(longest, |body| take(Message::from(Bytes::copy_from_slice(body))));
        self.input.mark();
    }

    /// Whether [`take_short_run`](Self::take_short_run) may find any. Hardly costs anything.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn may_have_short_run(&self) -> bool {
        self.input.may_have_short_run()
    }

    /// The same, but adds them to a run, for as long as there is room in it, there are at most so
    /// many and their payloads before the last one are fewer bytes.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn take_short_run(&mut self, now: Instant, run: &mut Run, messages: usize, bytes: usize) {
        let Some(longest) = self.state.short_messages() else { return };
        self.note_arrival(now);
        self.input.take_short_run(longest, run, messages, bytes);
        self.input.mark();
    }

    /// Whether nothing that was received is left to be decoded.
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
            self.state.heard(now);
            self.input.mark();
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

    /// The peer of [`Event::Authenticate`] or [`Event::Introduced`] may connect.
    ///
    /// # Errors
    ///
    /// If there is no such peer ([`Error::is_misuse`]), or if the connection is over.
    pub fn accept(&mut self) -> Result<()> {
        self.check()?;
        self.state.accept()
    }

    /// The peer of [`Event::Authenticate`] or [`Event::Introduced`] may not connect, and shall not
    /// come back. `reason` is told to it: up to 255 bytes, by convention a status code like `400`.
    /// Say no more than it may know. From now on the connection is over, with
    /// [`Error::is_refused`].
    ///
    /// # Errors
    ///
    /// If there is no such peer ([`Error::is_misuse`]), or if the connection is over.
    pub fn refuse(&mut self, reason: &str) -> Result<()> {
        self.check()?;
        self.state.refuse(reason)
    }

    /// Adds a message to the output. Small frames are copied, large ones referred to; with CURVE
    /// all are encrypted now.
    ///
    /// Nothing limits the output but the caller: add while it is not [full](Output::is_full).
    ///
    /// # Errors
    ///
    /// If the handshake is not done or the message has no frame ([`Error::is_misuse`]), or if the
    /// connection is over.
    #[inline]
    pub fn send(&mut self, message: Message) -> Result<()> {
        self.check_message(&message)?;
        let (traffic, output) = self.state.established()?;
        traffic.send(&message, output)
    }

    /// The same of a message that stays where it is, without its payload if that is not copied now.
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

    /// The same of many that are encoded already. Of the run only its memory is of use then.
    #[cfg(feature = "tokio")]
    pub(crate) fn send_run(&mut self, run: &mut Run) -> Result<()> {
        self.check()?;
        let (traffic, output) = self.state.established()?;
        traffic.send_run(run, output)
    }

    /// Adds a subscription to the output, in the form that the peer's version knows.
    ///
    /// # Errors
    ///
    /// If the handshake is not done, this is no SUB or XSUB socket, or the topic is longer than
    /// [`TOPIC_BYTES`] ([`Error::is_misuse`]), or if the connection is over.
    pub fn subscribe(&mut self, topic: &[u8]) -> Result<()> {
        self.subscription(topic, true)
    }

    /// Adds the end of one subscription to the output, in the form that the peer's version knows.
    ///
    /// # Errors
    ///
    /// As those of [`subscribe`](Self::subscribe).
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

    /// What is to be written to the stream.
    pub fn output(&mut self) -> &mut Output {
        &mut self.state.output
    }

    /// Whether anything is to be written.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.state.output.has_remaining()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing happens before; `None` if
    /// there is nothing to wait for. It may be another moment after every other call.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.state.next_timeout()
    }

    /// Does what is due: ends a handshake that takes too long, asks a silent peer for signs of
    /// life, gives up a dead one. To call it too early does nothing.
    ///
    /// # Errors
    ///
    /// If the time is over ([`Error::is_timeout`]), or if the connection was over before.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<()> {
        self.check()?;
        self.note_arrival(now);
        self.state.timeout(now).map_err(|error| self.state.fail(error))
    }

    /// Counts the time until `now` as if something had come: for a loop that has not read for a
    /// while, so that the peer could not be heard.
    pub fn excuse_silence(&mut self, now: Instant) {
        self.state.heard(now);
    }

    /// The peer closed the stream: why the connection is over. Take all events first.
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

    /// Who is at the other end, once the handshake is done.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        self.state.traffic().map(|traffic| &traffic.peer)
    }

    /// What the peer is subscribed to, once the handshake is done. Empty unless this is a PUB or
    /// XPUB socket.
    #[must_use]
    pub fn subscriptions(&self) -> Option<&Subscriptions> {
        self.state.traffic().map(|traffic| &traffic.subscriptions)
    }
}
