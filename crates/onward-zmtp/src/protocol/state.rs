//! The phases of a connection: greeting, handshake, traffic, failure. The input is separate.

use std::sync::Arc;
use std::time::Instant;

use super::error::{Error, Result};
use super::event::{Event, Peer};
use super::greeting::{self, GREETING_BYTES};
use super::mechanism::local_side::LocalSide;
use super::mechanism::{Entropy, Finished, Negotiation, Step};
use super::options::Options;
use super::traffic::Traffic;
use super::wire::command;
use super::wire::input::{FrameLimits, Input};
use super::wire::output::Output;

/// The largest excess of a handshake command over the metadata in it, in bytes. CURVE's `INITIATE`
/// exceeds it by 257. PLAIN's `HELLO`, which has no metadata, has up to 518.
const HANDSHAKE_OVERHEAD_BYTES: usize = 518;

/// The state of a connection without its input, so that a frame can be handled while it is still in
/// the input.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Arc<Options>,
    pub(crate) output: Output,
    phase: Phase,
    /// Set if the caller decides about the peer before the peer may send anything.
    was_accepted: bool,
    handshake_by: Option<Instant>,
    pub(crate) failure: Option<Error>,
}

#[derive(Debug)]
enum Phase {
    /// Waits for the rest of the peer's greeting.
    Greeting(Entropy),
    /// Exchanges commands of the mechanism.
    Handshake(Box<Handshake>),
    /// Exchanges messages.
    Traffic(Box<Traffic>),
}

#[derive(Debug)]
struct Handshake {
    negotiation: Negotiation,
    version: (u8, u8),
    /// Set while a decision about the peer is pending.
    awaits_decision: bool,
    /// The result that the caller is deciding about, or that its decision led to.
    finished: Option<Box<Finished>>,
    /// Set after the peer was introduced.
    is_introduced: bool,
}

impl Handshake {
    fn new(negotiation: Negotiation, version: (u8, u8)) -> Self {
        Self { negotiation, version, awaits_decision: false, finished: None, is_introduced: false }
    }

    /// Requests the decision whether the known peer may learn the local metadata and send.
    fn introduce(&mut self, finished: Box<Finished>) -> Result<Event> {
        let peer = finished.peer(self.version)?;
        (self.awaits_decision, self.is_introduced, self.finished) = (true, true, Some(finished));
        Ok(Event::Introduced(Box::new(peer)))
    }
}

impl Finished {
    fn peer(&self, version: (u8, u8)) -> Result<Peer> {
        let (metadata, client_key) = (self.metadata.clone(), self.client_key);
        let (socket_type, identity) = (metadata.socket_type()?, metadata.identity()?);
        Ok(Peer { socket_type, identity, version, client_key, metadata })
    }
}

/// The result of decoding the input.
pub(crate) enum Progress {
    Event(Event),
    /// Something was decoded that is no event.
    Decoded,
    /// Bytes are missing.
    Wait,
}

impl State {
    pub(crate) fn new(options: Arc<Options>, entropy: Entropy, now: Instant, was_accepted: bool) -> Self {
        let mut output = Output::new(options.gather_bytes);
        greeting::write(options.security.name(), options.security.is_server(), &mut output);
        let handshake_by = now.checked_add(options.handshake_timeout);
        Self { options, output, phase: Phase::Greeting(entropy), was_accepted, handshake_by, failure: None }
    }

    /// Returns whether nothing may be decoded for now.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        match &self.phase {
            Phase::Traffic(traffic) => traffic.is_stalled(&self.output),
            Phase::Handshake(handshake) => handshake.awaits_decision,
            Phase::Greeting(_) => false,
        }
    }

    /// Returns the largest frame that may be decoded now as a whole message by a mere copy. Returns
    /// `None` if no frame may.
    #[inline]
    pub(crate) fn short_message_limit(&self) -> Option<usize> {
        match &self.phase {
            Phase::Traffic(traffic) if self.failure.is_none() && !traffic.is_stalled(&self.output) => {
                traffic.short_message_limit(&self.options)
            }
            _ => None,
        }
    }

    /// Decodes the next part of the input.
    #[inline]
    pub(crate) fn decode(&mut self, input: &mut Input, now: Instant) -> Result<Progress> {
        match &mut self.phase {
            Phase::Traffic(traffic) => {
                let Some(frame) = input.next_frame(traffic.frame_limits(&self.options))? else {
                    return Ok(Progress::Wait);
                };
                let event = traffic.frame(frame, &self.options, &mut self.output)?;
                Ok(event.map_or(Progress::Decoded, Progress::Event))
            }
            Phase::Handshake(_) => self.handshake(input, now),
            Phase::Greeting(_) => self.greeting(input),
        }
    }

    fn greeting(&mut self, input: &mut Input) -> Result<Progress> {
        let security = &self.options.security;
        let Some(version) = greeting::read(input.peek(), security.name(), security.is_server())? else {
            return Ok(Progress::Wait);
        };
        input.consume(GREETING_BYTES);
        if let Phase::Greeting(entropy) = &self.phase {
            let local = LocalSide { options: &self.options, was_accepted: self.was_accepted };
            let negotiation = Negotiation::start(&local, entropy, &mut self.output)?;
            self.phase = Phase::Handshake(Box::new(Handshake::new(negotiation, version)));
        }
        Ok(Progress::Decoded)
    }

    fn handshake(&mut self, input: &mut Input, now: Instant) -> Result<Progress> {
        let Phase::Handshake(handshake) = &mut self.phase else { return Ok(Progress::Wait) };
        let local = LocalSide { options: &self.options, was_accepted: self.was_accepted };
        let step = match handshake.finished.take() {
            Some(finished) => Step::Finished(finished),
            None => match next_command(handshake, &local, input, &mut self.output)? {
                Some(step) => step,
                None => return Ok(Progress::Wait),
            },
        };
        match step {
            Step::Wait => Ok(Progress::Decoded),
            Step::Authenticate(credentials) => {
                handshake.awaits_decision = true;
                Ok(Progress::Event(Event::Authenticate(credentials)))
            }
            Step::Finished(finished) if self.was_accepted && !handshake.is_introduced => {
                handshake.introduce(finished).map(Progress::Event)
            }
            Step::Finished(finished) => {
                let version = handshake.version;
                self.establish(*finished, version, input, now).map(Progress::Event)
            }
        }
    }

    fn establish(&mut self, finished: Finished, version: (u8, u8), input: &mut Input, now: Instant) -> Result<Event> {
        let peer = finished.peer(version)?;
        // `READY` allows the peer to send messages, so it is written only after the decision.
        if let Some(ready) = &finished.ready {
            self.output.push_command("READY", ready);
        }
        let cipher = finished.cipher;
        // The peer may send at full speed from here on. Both buffers drop what the handshake left.
        input.grow();
        self.output.end_of_secrets();
        self.phase = Phase::Traffic(Box::new(Traffic::start(peer.clone(), cipher, &self.options, now)));
        Ok(Event::Ready(Box::new(peer)))
    }

    pub(crate) fn accept(&mut self) -> Result<()> {
        self.deciding()?.awaits_decision = false;
        let Phase::Handshake(handshake) = &mut self.phase else { return Ok(()) };
        if handshake.is_introduced {
            return Ok(());
        }
        let local = LocalSide { options: &self.options, was_accepted: self.was_accepted };
        let step = handshake.negotiation.accept(&local, &mut self.output)?;
        if let Step::Finished(finished) = step {
            handshake.finished = Some(finished);
        }
        Ok(())
    }

    pub(crate) fn refuse(&mut self, reason: &str) -> Result<()> {
        self.deciding()?;
        self.output.push_command("ERROR", &command::error_data(reason));
        self.failure = Some(Error::refused(format!("the peer was refused: {reason}")));
        Ok(())
    }

    fn deciding(&mut self) -> Result<&mut Handshake> {
        match &mut self.phase {
            Phase::Handshake(handshake) if handshake.awaits_decision => Ok(handshake),
            _ => Err(Error::misuse("there is no peer to decide about")),
        }
    }

    /// Returns the parts that send on an established connection.
    #[inline]
    pub(crate) fn established(&mut self) -> Result<(&mut Traffic, &mut Output)> {
        match &mut self.phase {
            Phase::Traffic(traffic) => Ok((traffic, &mut self.output)),
            _ => Err(Error::misuse("the handshake is not done; wait for `Event::Ready`")),
        }
    }

    /// Returns whether this is a client of CURVE that has sent `HELLO` and received no reply.
    pub(crate) fn awaits_welcome(&self) -> bool {
        match &self.phase {
            Phase::Handshake(handshake) => handshake.negotiation.awaits_welcome(),
            Phase::Greeting(_) | Phase::Traffic(_) => false,
        }
    }

    pub(crate) fn traffic(&self) -> Option<&Traffic> {
        match &self.phase {
            Phase::Traffic(traffic) => Some(traffic),
            Phase::Greeting(_) | Phase::Handshake(_) => None,
        }
    }

    pub(crate) fn note_received(&mut self, now: Instant) {
        if let Phase::Traffic(traffic) = &mut self.phase {
            traffic.timers.note_received(now);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match &self.phase {
            _ if self.failure.is_some() => None,
            Phase::Traffic(traffic) => traffic.timers.next(),
            Phase::Greeting(_) | Phase::Handshake(_) => self.handshake_by,
        }
    }

    pub(crate) fn timeout(&mut self, now: Instant) -> Result<()> {
        match &mut self.phase {
            Phase::Traffic(traffic) => traffic.timeout(&self.options, now, &mut self.output),
            _ if self.handshake_by.is_some_and(|by| by <= now) => {
                Err(Error::timeout("the peer did not complete the handshake in time"))
            }
            _ => Ok(()),
        }
    }

    /// Ends the connection. A peer that does not fit gets the reason as an `ERROR`, because
    /// otherwise it would only see a broken connection. That is a peer of an incompatible type in
    /// the handshake, and one that exceeds the local limits after it.
    #[cold]
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        match &mut self.phase {
            Phase::Handshake(_) if error.is_incompatible() => {
                self.output.push_command("ERROR", &command::error_data(&error.to_string()));
            }
            Phase::Traffic(traffic) if let Some(reason) = error.for_peer() => {
                // A failure to encrypt only costs the peer the reason.
                let _ = traffic.push_command("ERROR", &command::error_data(reason), &mut self.output);
            }
            _ => {}
        }
        self.failure = Some(error.clone());
        error
    }
}

/// Returns the step that the next command leads to, or `None` while bytes of it are missing.
fn next_command(
    handshake: &mut Handshake,
    local: &LocalSide<'_>,
    input: &mut Input,
    output: &mut Output,
) -> Result<Option<Step>> {
    let bytes = local.options.limits.metadata_bytes.saturating_add(HANDSHAKE_OVERHEAD_BYTES);
    let Some(frame) = input.next_frame(FrameLimits { message: bytes, command: bytes, share_from: usize::MAX })? else {
        return Ok(None);
    };
    if !frame.command {
        return Err(Error::malformed("the peer sent a message before the handshake was done"));
    }
    let (name, data) = command::split_in_handshake(frame.body.as_slice())?;
    handshake.negotiation.command(name, data, local, output).map(Some)
}
