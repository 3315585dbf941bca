//! What the fuzz targets share: a connection is given the same bytes whole and in pieces, and must see the same.

pub mod targets;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Buf;
use onward_zmtp::protocol::{
    Connection, Entropy, Event, Heartbeat, KeyPair, Limits, Message, Options, Password, SecretKey, Security, SocketType,
};

/// How much may ever wait to be written for what was received, beyond as many bytes again: answers are bounded.
const ANSWERS: usize = 64 * 1024;

/// What can be compared of an event.
#[derive(Debug, PartialEq)]
enum Seen {
    Message(Message),
    Other(String),
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

/// A socket with small limits, so that they are reached.
pub fn options(socket_type: SocketType, security: Security) -> Options {
    let mut limits = Limits::default();
    limits.frame_bytes = 100_000;
    limits.message_bytes = 200_000;
    limits.message_parts = 8;
    limits.topics = 4;
    limits.topic_bytes = 40;
    limits.metadata_properties = 6;
    let heartbeat = Heartbeat::every(Duration::from_secs(1));
    Options::new(socket_type).security(security).limits(limits).heartbeat(heartbeat)
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

/// Hands all of it in, accepts whoever asks, and answers whether the connection goes on.
fn feed(connection: &mut Connection, mut bytes: &[u8], seen: &mut Vec<Seen>) -> bool {
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        let before = seen.len();
        loop {
            match connection.poll_event(moment()) {
                Ok(None) => break,
                Ok(Some(Event::Message(message))) => seen.push(Seen::Message(message)),
                Ok(Some(event)) => {
                    seen.push(Seen::Other(format!("{event:?}")));
                    if matches!(event, Event::Authenticate(_) | Event::Introduced(_)) {
                        connection.accept().unwrap();
                    }
                }
                Err(error) => {
                    seen.push(Seen::Other(format!("{error:?}")));
                    return false;
                }
            }
        }
        if bytes.is_empty() && connection.wants_read() {
            return true;
        }
        let written = drain(connection).len();
        assert!(written <= ANSWERS, "{written} bytes of answers");
        assert!(taken > 0 || written > 0 || seen.len() > before, "nothing goes on any more");
    }
}

fn in_pieces(mut connection: Connection, mut bytes: &[u8], cuts: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut cuts = cuts.iter().cycle();
    loop {
        let length = cuts.next().map_or(bytes.len(), |cut| usize::from(*cut) + 1).min(bytes.len());
        if !feed(&mut connection, &bytes[..length], &mut seen) || length == bytes.len() {
            seen.push(Seen::Other(format!("{:?}", connection.end_of_stream())));
            return seen;
        }
        bytes = &bytes[length..];
    }
}

/// The bytes whole and in pieces must come to the same.
pub fn compare(new: impl Fn() -> Connection, bytes: &[u8], cuts: &[u8]) {
    assert_eq!(in_pieces(new(), bytes, &[]), in_pieces(new(), bytes, cuts));
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

/// Splits off up to four lengths of pieces.
pub fn cuts(data: &[u8]) -> (&[u8], &[u8]) {
    let (count, rest) = octet(data);
    rest.split_at(usize::from(count % 5).min(rest.len()))
}

/// Changes octets of `bytes` as `data` says, three octets for each change; what is left goes to the end.
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
