//! What the fuzz targets share: a connection is given the same bytes whole and in pieces, must see
//! and answer the same, and keep no more than it may.

#[cfg(feature = "tokio")]
#[allow(dead_code, reason = "the sockets use what the targets do not")]
mod inside;
mod memory;
#[cfg(feature = "tokio")]
mod runs;
pub mod targets;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Buf;
use onward_zmtp::protocol::{
    Connection, Entropy, Error, Event, Heartbeat, KeyPair, Limits, Message, Options, Password, Peer, SecretKey,
    Security, SocketType,
};

/// How much may ever wait to be written for what was received, beyond as many bytes again: answers
/// are bounded.
const ANSWERS: usize = 64 * 1024;

/// What can be compared of an event. Text is what takes longest to make, so that what is frequent
/// is none.
#[derive(Debug, PartialEq)]
enum Seen {
    Message(Message),
    Introduced(Box<Peer>),
    Ready(Box<Peer>),
    Error(Error),
    Other(String),
}

impl From<Event> for Seen {
    fn from(event: Event) -> Self {
        match event {
            Event::Message(message) => Self::Message(message),
            Event::Introduced(peer) => Self::Introduced(peer),
            Event::Ready(peer) => Self::Ready(peer),
            event => Self::Other(format!("{event:?}")),
        }
    }
}

/// All that a connection comes to: what is seen of it, and what it has to say.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    seen: Vec<Seen>,
    written: Vec<u8>,
}

/// How a connection is given its bytes, and asked for what came of them.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// How long the pieces are, less one, again and again; all of it is one piece if there are
    /// none.
    pub cuts: &'a [u8],
    /// How many short messages are taken at once before everything else is taken one by one.
    pub wanted: usize,
}

#[expect(clippy::disallowed_methods, reason = "an Instant cannot be made otherwise; nothing reads the clock again")]
pub fn moment() -> Instant {
    static MOMENT: OnceLock<Instant> = OnceLock::new();
    *MOMENT.get_or_init(Instant::now)
}

fn keys(seed: u8) -> KeyPair {
    KeyPair::from(SecretKey::from_bytes([seed; 32]))
}

/// Both sides of each mechanism.
pub fn security(number: u8) -> Security {
    static CURVE: OnceLock<[Security; 2]> = OnceLock::new();
    let curve = CURVE.get_or_init(|| {
        let client = Security::CurveClient { server: keys(9).public(), keys: keys(7) };
        [client, Security::CurveServer { keys: keys(9) }]
    });
    match number % 5 {
        0 => Security::Null,
        1 => Security::PlainClient { username: "ali".into(), password: Password::new("open sesame").unwrap() },
        2 => Security::PlainServer,
        3 => curve[0].clone(),
        _ => curve[1].clone(),
    }
}

/// Small ones, so that they are reached.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.frame_bytes = 100_000;
    limits.message_bytes = 200_000;
    limits.message_parts = 8;
    limits.topics = 4;
    limits.topic_bytes = 40;
    limits.metadata_properties = 6;
    limits.metadata_bytes = 600;
    limits
}

/// A socket with small limits.
pub fn options(socket_type: SocketType, security: Security) -> Options {
    let heartbeat = Heartbeat::every(Duration::from_secs(1));
    Options::new(socket_type).security(security).limits(limits()).heartbeat(heartbeat)
}

/// A connection that comes out the same each time.
pub fn connection(options: &Arc<Options>, seed: u8) -> Connection {
    Connection::new(options.clone(), entropy(seed), moment())
}

/// The same of a stream that the peer opened.
pub fn accepted(options: &Arc<Options>, seed: u8) -> Connection {
    Connection::accepted(options.clone(), entropy(seed), moment())
}

fn entropy(seed: u8) -> Entropy {
    Entropy::from_octets(std::array::from_fn(|index| (index as u8).wrapping_mul(31) ^ seed))
}

/// A greeting as it should be.
pub fn greeting(minor: u8, mechanism: &str, as_server: bool) -> Vec<u8> {
    let mut greeting = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, minor];
    greeting.extend_from_slice(mechanism.as_bytes());
    greeting.resize(32, 0);
    greeting.push(u8::from(as_server));
    greeting.resize(64, 0);
    greeting
}

/// All that is to be written.
pub fn drain(connection: &mut Connection) -> Vec<u8> {
    let count = connection.output().remaining();
    connection.output().copy_to_bytes(count).to_vec()
}

/// Hands all of it in, takes what comes of it, and answers whether the connection goes on.
fn feed(connection: &mut Connection, mut bytes: &[u8], wanted: usize, outcome: &mut Outcome) -> bool {
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        let before = outcome.seen.len();
        if !take_events(connection, wanted, &mut outcome.seen) {
            return false;
        }
        if bytes.is_empty() && connection.wants_read() {
            return true;
        }
        let written = write(connection, &mut outcome.written);
        assert!(taken > 0 || written > 0 || outcome.seen.len() > before, "nothing goes on any more");
    }
}

/// Takes all there is, accepts whoever asks, and answers whether the connection goes on.
fn take_events(connection: &mut Connection, wanted: usize, seen: &mut Vec<Seen>) -> bool {
    loop {
        take_short_messages(connection, wanted, seen);
        match connection.poll_event(moment()) {
            Ok(None) => return true,
            Ok(Some(event)) => {
                let asks = matches!(event, Event::Authenticate(_) | Event::Introduced(_));
                seen.push(event.into());
                if asks {
                    connection.accept().unwrap();
                }
            }
            Err(error) => {
                seen.push(Seen::Error(error));
                return false;
            }
        }
    }
}

fn take_short_messages(connection: &mut Connection, wanted: usize, seen: &mut Vec<Seen>) {
    if wanted == 0 {
        return;
    }
    let all = seen.len() + wanted;
    connection.take_short_messages(moment(), |message| {
        seen.push(Seen::Message(message));
        seen.len() < all
    });
    assert!(seen.len() <= all, "more than was wanted");
}

/// Takes what is to be written, and answers how many bytes that were.
fn write(connection: &mut Connection, written: &mut Vec<u8>) -> usize {
    let bytes = drain(connection);
    assert!(bytes.len() <= ANSWERS, "{} bytes of answers", bytes.len());
    written.extend_from_slice(&bytes);
    bytes.len()
}

/// The bytes cut to these lengths, less one, again and again.
fn pieces<'a>(mut bytes: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut cuts = cuts.iter().cycle();
    std::iter::from_fn(move || {
        let length = cuts.next().map_or(bytes.len(), |cut| usize::from(*cut) + 1).min(bytes.len());
        let piece;
        (piece, bytes) = bytes.split_at(length);
        (!piece.is_empty()).then_some(piece)
    })
}

fn outcome(mut connection: Connection, bytes: &[u8], manner: Manner<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    for piece in pieces(bytes, manner.cuts) {
        if !feed(&mut connection, piece, manner.wanted, &mut outcome) {
            break;
        }
    }
    outcome.seen.push(Seen::Error(connection.end_of_stream()));
    write(&mut connection, &mut outcome.written);
    outcome
}

/// The bytes whole, with everything taken one by one, and in this manner must come to the same,
/// with no more memory than there is a use for.
pub fn compare_manner(new: impl Fn() -> Connection, bytes: &[u8], manner: Manner<'_>) {
    assert_eq!(outcome(new(), bytes, Manner::default()), outcome(new(), bytes, manner));
    memory::check(new, bytes, manner);
}

/// The bytes whole and in pieces must come to the same.
pub fn compare(new: impl Fn() -> Connection, bytes: &[u8], cuts: &[u8]) {
    compare_manner(new, bytes, Manner { cuts, wanted: 0 });
}

/// The same of a connection whichever side has opened it.
pub fn compare_either_side(options: &Arc<Options>, bytes: &[u8], cuts: &[u8]) {
    compare(|| connection(options, 1), bytes, cuts);
    compare(|| accepted(options, 1), bytes, cuts);
}

/// Splits off the first octet, or 0.
pub fn octet(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// Splits off up to fifteen lengths of pieces.
pub fn cuts(data: &[u8]) -> (&[u8], &[u8]) {
    let (count, rest) = octet(data);
    rest.split_at(usize::from(count % 16).min(rest.len()))
}

/// Changes octets of `bytes` as `data` says, three octets for each change; what is left goes to the
/// end.
pub fn damage(mut bytes: Vec<u8>, data: &[u8]) -> Vec<u8> {
    let (count, mut data) = octet(data);
    for _ in 0..count % 4 {
        let Some((change, rest)) = data.split_first_chunk::<3>() else { break };
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len().max(1);
        if let Some(octet) = bytes.get_mut(at) {
            *octet ^= change[2];
        }
        data = rest;
    }
    bytes.extend_from_slice(data);
    bytes
}
