//! An established connection: decodes frames into events and encodes messages into frames.

use std::time::Instant;

use bytes::{Buf, Bytes};

use super::bounds::{SHARE_BYTES, UNWRITTEN_PONG_BYTES};
use super::error::{Error, Result};
use super::event::{Event, Peer};
use super::heartbeat::Timers;
use super::mechanism::{Cipher, INNER_COMMAND, Opened};
use super::message::Message;
use super::options::Options;
use super::subscriptions::Subscriptions;
use super::wire::assembler::Assembler;
use super::wire::command::{self, Ping};
use super::wire::frame::MORE;
use super::wire::input::{Body, Frame, FrameLimits};
#[cfg(feature = "tokio")]
use super::wire::message_run::MessageRun;
use super::wire::output::{Output, push_command_body};

/// The state of an established connection.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) peer: Peer,
    cipher: Option<Cipher>,
    assembler: Assembler,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) timers: Timers,
    /// The bytes of `PONG` replies that may still wait to be written.
    unwritten_pongs: usize,
    /// The value of [`Output::total_written`] once the last reply is written.
    pongs_written_at: u64,
}

impl Traffic {
    pub(crate) fn start(peer: Peer, cipher: Option<Cipher>, options: &Options, now: Instant) -> Self {
        Self {
            timers: Timers::start(options.heartbeat_for(&peer), now),
            peer,
            cipher,
            assembler: Assembler::default(),
            subscriptions: Subscriptions::default(),
            unwritten_pongs: 0,
            pongs_written_at: 0,
        }
    }

    /// Returns the largest size of the next frame.
    pub(crate) fn frame_limits(&self, options: &Options) -> FrameLimits {
        let overhead = if self.cipher.is_some() { Cipher::OVERHEAD } else { 0 };
        let message = self.assembler.room(&options.limits);
        // The frame of an encrypted command does not show that it is a command.
        let message = if overhead > 0 { message.max(options.limits.command_bytes) } else { message };
        let command = options.limits.command_bytes;
        FrameLimits {
            message: message.saturating_add(overhead),
            command: if overhead > 0 { message.saturating_add(overhead) } else { command },
            // Encrypted frames are decrypted into their own memory.
            share_from: if overhead > 0 { usize::MAX } else { SHARE_BYTES },
        }
    }

    /// Returns the largest frame that is a whole message and needs only a copy. Returns `None` if
    /// no frame is.
    #[inline]
    pub(crate) fn short_message_limit(&self, options: &Options) -> Option<usize> {
        let is_plain = self.cipher.is_none() && !self.is_incomplete() && !options.socket_type.has_subscribers();
        is_plain.then(|| self.assembler.room(&options.limits))
    }

    /// Returns whether decoding must stop until the waiting replies are written.
    pub(crate) fn is_stalled(&self, output: &Output) -> bool {
        self.unwritten_pongs >= UNWRITTEN_PONG_BYTES && output.total_written() < self.pongs_written_at
    }

    /// Returns whether the peer has sent only a part of a message.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.assembler.is_incomplete()
    }

    /// Handles a received frame.
    #[inline]
    pub(crate) fn frame(&mut self, frame: Frame<'_>, options: &Options, output: &mut Output) -> Result<Option<Event>> {
        if let Some(cipher) = &mut self.cipher {
            let Opened { more, command, payload } = cipher.open(frame.body)?;
            return if command {
                self.encrypted_command(&payload, options, output)
            } else {
                self.message_frame(payload, more, options)
            };
        }
        if frame.command {
            return self.command(frame.body.as_slice(), options, output);
        }
        let payload = match frame.body {
            Body::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Body::Shared(bytes) => bytes,
            Body::Owned(bytes) => Bytes::from(bytes),
        };
        self.message_frame(payload, frame.more, options)
    }

    #[inline]
    fn message_frame(&mut self, payload: Bytes, more: bool, options: &Options) -> Result<Option<Event>> {
        if payload.len() > options.limits.frame_bytes {
            return Err(Error::limit("a frame", payload.len() as u64, "bytes", options.limits.frame_bytes as u64));
        }
        let Some(message) = self.assembler.push(payload, more, &options.limits)? else { return Ok(None) };
        if options.socket_type.has_subscribers() {
            return self.subscriber_message(message, options);
        }
        Ok(Some(Event::Message(message)))
    }

    /// Handles a message from a subscriber. Peers of ZMTP 3.0 subscribe with messages: 1 or 0, then
    /// the topic.
    fn subscriber_message(&mut self, message: Message, options: &Options) -> Result<Option<Event>> {
        match message.frames() {
            [frame] if frame.first() == Some(&1) => self.subscribe(&frame[1..], options),
            [frame] if frame.first() == Some(&0) => Ok(self.cancel(&frame[1..])),
            _ => Ok(Some(Event::Message(message))),
        }
    }

    fn subscribe(&mut self, topic: &[u8], options: &Options) -> Result<Option<Event>> {
        let topic = Bytes::copy_from_slice(topic);
        self.subscriptions.subscribe(&topic, &options.limits)?;
        Ok(Some(Event::Subscribe(topic)))
    }

    fn cancel(&mut self, topic: &[u8]) -> Option<Event> {
        let topic = Bytes::copy_from_slice(topic);
        self.subscriptions.cancel(&topic).then_some(Event::Cancel(topic))
    }

    fn encrypted_command(&mut self, body: &[u8], options: &Options, output: &mut Output) -> Result<Option<Event>> {
        if body.len() > options.limits.command_bytes {
            return Err(Error::limit("a command", body.len() as u64, "bytes", options.limits.command_bytes as u64));
        }
        self.command(body, options, output)
    }

    /// Handles a command. Unknown commands are ignored, so that later versions of the protocol can
    /// add more.
    fn command(&mut self, body: &[u8], options: &Options, output: &mut Output) -> Result<Option<Event>> {
        let (name, data) = command::split(body)?;
        let has_subscribers = options.socket_type.has_subscribers();
        match name {
            b"PING" => self.ping(data, output).map(|()| None),
            b"PONG" => Ok(Some(Event::Pong(Bytes::copy_from_slice(data)))),
            b"SUBSCRIBE" if has_subscribers => self.subscribe(data, options),
            b"CANCEL" if has_subscribers => Ok(self.cancel(data)),
            b"ERROR" => Err(command::error_from_peer(data)),
            _ => Ok(None),
        }
    }

    fn ping(&mut self, data: &[u8], output: &mut Output) -> Result<()> {
        let ping = Ping::parse(data)?;
        self.timers.peer_ttl(ping.ttl);
        // All earlier replies are written, so none of them counts any more.
        if output.total_written() >= self.pongs_written_at {
            self.unwritten_pongs = 0;
        }
        let before = output.remaining();
        self.push_command("PONG", ping.context, output)?;
        self.unwritten_pongs += output.remaining() - before;
        self.pongs_written_at = output.total_written() + output.remaining() as u64;
        Ok(())
    }

    /// Does what is due: sends a `PING`, or returns an error if the peer was silent for too long.
    pub(crate) fn timeout(&mut self, options: &Options, now: Instant, output: &mut Output) -> Result<()> {
        let heartbeat = options.heartbeat.as_ref();
        if !self.timers.due(heartbeat, now)? {
            return Ok(());
        }
        let Some(heartbeat) = heartbeat else { return Ok(()) };
        let data = command::ping_data(heartbeat.ttl_in_tenths(), &heartbeat.context);
        self.push_command("PING", &data, output)
    }

    /// Writes a message.
    #[inline]
    pub(crate) fn send(&mut self, message: &Message, output: &mut Output) -> Result<()> {
        let mut left = message.len();
        for frame in message.frames() {
            left -= 1;
            match &mut self.cipher {
                None => output.push_frame(left > 0, frame),
                Some(cipher) => cipher.seal(if left > 0 { MORE } else { 0 }, &[frame], output)?,
            }
        }
        Ok(())
    }

    /// Writes a message and takes the payloads that are not copied now.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn send_taking(&mut self, message: &mut Message, output: &mut Output) -> Result<()> {
        if self.cipher.is_some() {
            return self.send(message, output);
        }
        let mut left = message.len();
        for frame in message.frames_mut() {
            left -= 1;
            output.push_frame_taking(left > 0, frame);
        }
        Ok(())
    }

    /// Writes a run of short messages. Afterwards only the memory of the run is of use.
    #[cfg(feature = "tokio")]
    pub(crate) fn send_run(&mut self, run: &mut MessageRun, output: &mut Output) -> Result<()> {
        let Some(cipher) = &mut self.cipher else {
            output.push_run(run);
            return Ok(());
        };
        run.payloads().try_for_each(|payload| cipher.seal(0, &[payload], output))
    }

    /// Writes a subscription or its cancellation, in the form that the peer's version of ZMTP
    /// knows.
    pub(crate) fn send_subscription(&mut self, topic: &[u8], is_new: bool, output: &mut Output) -> Result<()> {
        if self.peer.knows_3_1() {
            return self.push_command(if is_new { "SUBSCRIBE" } else { "CANCEL" }, topic, output);
        }
        let message = Bytes::from([&[u8::from(is_new)], topic].concat());
        self.send(&Message::from(message), output)
    }

    pub(crate) fn push_command(&mut self, name: &str, data: &[u8], output: &mut Output) -> Result<()> {
        let Some(cipher) = &mut self.cipher else {
            output.push_command(name, data);
            return Ok(());
        };
        let mut body = Vec::with_capacity(1 + name.len() + data.len());
        push_command_body(&mut body, name, data);
        cipher.seal(INNER_COMMAND, &[&body], output)
    }
}
