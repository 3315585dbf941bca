//! The shared code of the fuzz targets. A connection gets the same bytes whole and in pieces. Both
//! must give the same events and replies, with bounded memory.

// A handshake is reachable only through a socket, so its source is included a second time.
#[allow(dead_code, reason = "the sockets use what the targets do not")]
#[path = "../../src/socket/socks/handshake.rs"]
mod handshake;
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

/// The bound on the bytes that may ever wait to be written.
const UNWRITTEN_BYTES: usize = 64 * 1024;

/// The comparable part of an event. Formatting text takes most of the time, so the frequent events
/// are not compared as text.
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

/// The outcome of a connection: its events and its output.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    seen: Vec<Seen>,
    written: Vec<u8>,
}

/// The manner in which a connection gets its bytes and is asked for events.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// The lengths of the pieces, less one, repeated in a cycle. All bytes are one piece if there
    /// are none.
    pub cuts: &'a [u8],
    /// The number of short messages that are taken at once before everything else is taken one by
    /// one.
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

/// Returns one side of a mechanism. Five numbers give all of them.
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

/// Returns small limits, so that inputs reach them.
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

/// Returns the options of a socket with small limits.
pub fn options(socket_type: SocketType, security: Security) -> Options {
    let heartbeat = Heartbeat::every(Duration::from_secs(1));
    Options::new(socket_type).security(security).limits(limits()).heartbeat(heartbeat)
}

/// Returns a connection with fixed entropy, so that runs are reproducible.
pub fn connection(options: &Arc<Options>, seed: u8) -> Connection {
    Connection::new(options.clone(), entropy(seed), moment())
}

/// Returns such a connection on a stream that the peer opened.
pub fn accepted(options: &Arc<Options>, seed: u8) -> Connection {
    Connection::accepted(options.clone(), entropy(seed), moment())
}

fn entropy(seed: u8) -> Entropy {
    Entropy::from_octets(std::array::from_fn(|index| (index as u8).wrapping_mul(31) ^ seed))
}

/// Returns a valid greeting.
pub fn greeting(minor: u8, mechanism: &str, as_server: bool) -> Vec<u8> {
    let mut greeting = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, minor];
    greeting.extend_from_slice(mechanism.as_bytes());
    greeting.resize(32, 0);
    greeting.push(u8::from(as_server));
    greeting.resize(64, 0);
    greeting
}

/// Takes all bytes that are to be written.
pub fn drain(connection: &mut Connection) -> Vec<u8> {
    let count = connection.output().remaining();
    connection.output().copy_to_bytes(count).to_vec()
}

/// Passes all bytes to the connection and takes the events. Returns whether the connection
/// continues.
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

/// Takes all events and accepts every peer. Returns whether the connection continues.
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

/// Takes the bytes that are to be written, and returns their number.
fn write(connection: &mut Connection, written: &mut Vec<u8>) -> usize {
    let bytes = drain(connection);
    assert!(bytes.len() <= UNWRITTEN_BYTES, "{} bytes of replies", bytes.len());
    written.extend_from_slice(&bytes);
    bytes.len()
}

/// Splits the bytes into pieces of these lengths, less one, repeated in a cycle.
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

/// Checks that the bytes in this manner have the same outcome as whole and one by one. Also checks
/// that the connection keeps no more memory than it needs.
pub fn compare_manner(new: impl Fn() -> Connection, bytes: &[u8], manner: Manner<'_>) {
    assert_eq!(outcome(new(), bytes, Manner::default()), outcome(new(), bytes, manner));
    memory::check(new, bytes, manner);
}

/// Checks that the bytes have the same outcome whole and in pieces.
pub fn compare(new: impl Fn() -> Connection, bytes: &[u8], cuts: &[u8]) {
    compare_manner(new, bytes, Manner { cuts, wanted: 0 });
}

/// Checks the same of a connection that this side opened, and of one that the peer opened.
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

/// Changes octets of `bytes` according to `data`, three octets for each change. The rest of `data`
/// is appended.
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
