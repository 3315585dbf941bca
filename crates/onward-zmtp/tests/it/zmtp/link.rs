//! Connections without streams: two that are linked, or one with a peer of hand-made bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use onward_zmtp::protocol::{
    Connection, Credentials, Entropy, Error, Event, KeyPair, Message, Options, Password, Peer, SecretKey, Security,
    SocketType,
};

/// Returns a fixed instant. Only differences to it matter.
pub(crate) fn start() -> Instant {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "an Instant cannot be made otherwise; nothing reads the clock again")]
    *START.get_or_init(Instant::now)
}

pub(crate) fn after(milliseconds: u64) -> Instant {
    start() + Duration::from_millis(milliseconds)
}

/// Returns the same octets for the same number.
pub(crate) fn entropy(seed: u8) -> Entropy {
    Entropy::from_octets(std::array::from_fn(|index| (index as u8).wrapping_mul(31) ^ seed))
}

pub(crate) fn keys(seed: u8) -> KeyPair {
    KeyPair::from(SecretKey::from_bytes([seed; 32]))
}

pub(crate) fn connection(options: Options, seed: u8) -> Connection {
    Connection::new(Arc::new(options), entropy(seed), start())
}

/// Returns a connection for a stream that the peer opened.
pub(crate) fn accepted(options: Options, seed: u8) -> Connection {
    Connection::accepted(Arc::new(options), entropy(seed), start())
}

pub(crate) fn null(socket_type: SocketType) -> Connection {
    connection(Options::new(socket_type), 1)
}

/// Returns the two sides of each mechanism. Miri omits the last, whose keys take it minutes.
pub(crate) fn mechanisms() -> Vec<(&'static str, Security, Security)> {
    let password = Password::new("open sesame").unwrap();
    let plain = Security::PlainClient { username: "ali".into(), password };
    let mut mechanisms = vec![("NULL", Security::Null, Security::Null), ("PLAIN", plain, Security::PlainServer)];
    if !cfg!(miri) {
        let curve = Security::CurveClient { server: keys(9).public(), keys: keys(7) };
        mechanisms.push(("CURVE", curve, Security::CurveServer { keys: keys(9) }));
    }
    mechanisms
}

/// The comparable part of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Plain(Bytes),
    Curve(String),
    Introduced(SocketType, Option<Bytes>),
    Ready(SocketType, Option<Bytes>),
    Message(Vec<Bytes>),
    Subscribe(Bytes),
    Cancel(Bytes),
    Pong(Bytes),
    Error(Error),
}

impl From<Event> for Seen {
    fn from(event: Event) -> Self {
        match event {
            Event::Authenticate(Credentials::Plain { username, .. }) => Self::Plain(username),
            Event::Authenticate(Credentials::Curve { key }) => Self::Curve(key.to_string()),
            Event::Introduced(peer) => Self::Introduced(peer.socket_type(), identity(&peer)),
            Event::Ready(peer) => Self::Ready(peer.socket_type(), identity(&peer)),
            Event::Message(message) => Self::Message(message.into_iter().collect()),
            Event::Subscribe(topic) => Self::Subscribe(topic),
            Event::Cancel(topic) => Self::Cancel(topic),
            Event::Pong(context) => Self::Pong(context),
            other => panic!("an event that the tests do not know: {other:?}"),
        }
    }
}

fn identity(peer: &Peer) -> Option<Bytes> {
    peer.identity().map(|identity| identity.as_bytes().clone())
}

/// Returns all bytes of the output and empties it.
pub(crate) fn drain(connection: &mut Connection) -> Vec<u8> {
    let output = connection.output();
    let count = output.remaining();
    output.copy_to_bytes(count).to_vec()
}

/// Feeds the bytes, takes all events, and accepts every peer that asks.
pub(crate) fn feed(connection: &mut Connection, bytes: &[u8]) -> Vec<Seen> {
    feed_at(connection, bytes, start())
}

pub(crate) fn feed_at(connection: &mut Connection, mut bytes: &[u8], now: Instant) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        let taken = connection.receive(bytes);
        bytes = &bytes[taken..];
        let before = seen.len();
        if !poll_all(connection, now, &mut seen) || (bytes.is_empty() || (taken == 0 && seen.len() == before)) {
            return seen;
        }
    }
}

/// Polls all events. Returns true if the connection has not ended.
fn poll_all(connection: &mut Connection, now: Instant, seen: &mut Vec<Seen>) -> bool {
    loop {
        match connection.poll_event(now) {
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

/// Carries bytes back and forth until neither side has any.
pub(crate) fn exchange(one: &mut Connection, other: &mut Connection) -> (Vec<Seen>, Vec<Seen>) {
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    loop {
        let (to_other, to_one) = (drain(one), drain(other));
        if to_other.is_empty() && to_one.is_empty() {
            return (of_one, of_other);
        }
        of_other.extend(feed(other, &to_other));
        of_one.extend(feed(one, &to_one));
    }
}

/// Returns two connections whose handshake is done.
pub(crate) fn pair(one: Options, other: Options) -> (Connection, Connection) {
    let (mut one, mut other) = (connection(one, 1), connection(other, 2));
    exchange(&mut one, &mut other);
    assert!(one.peer().is_some() && other.peer().is_some(), "the handshake is not done");
    (one, other)
}

pub(crate) fn message(frames: &[&[u8]]) -> Message {
    frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect()
}

/// Returns a greeting, built by hand.
pub(crate) fn greeting(minor: u8, mechanism: &str, as_server: bool) -> Vec<u8> {
    let mut greeting = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, minor];
    greeting.extend_from_slice(mechanism.as_bytes());
    greeting.resize(32, 0);
    greeting.push(u8::from(as_server));
    greeting.resize(64, 0);
    greeting
}

/// Returns a short frame, built by hand.
pub(crate) fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![flags, u8::try_from(body.len()).expect("a short frame")];
    frame.extend_from_slice(body);
    frame
}

/// Returns a command in a short frame, built by hand.
pub(crate) fn command(name: &str, data: &[u8]) -> Vec<u8> {
    frame(4, &[&[name.len() as u8], name.as_bytes(), data].concat())
}

/// Returns metadata, built by hand.
pub(crate) fn metadata(properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut metadata = Vec::new();
    for (name, value) in properties {
        metadata.push(name.len() as u8);
        metadata.extend_from_slice(name.as_bytes());
        metadata.extend_from_slice(&(value.len() as u32).to_be_bytes());
        metadata.extend_from_slice(value);
    }
    metadata
}

/// Returns all bytes of a peer of this type before its first message, with NULL.
pub(crate) fn introduction(minor: u8, socket_type: &str) -> Vec<u8> {
    let ready = command("READY", &metadata(&[("Socket-Type", socket_type.as_bytes())]));
    [greeting(minor, "NULL", false), ready].concat()
}

/// Returns the bytes of a peer of ZMTP 3.1 with an identity before its first message, with NULL.
pub(crate) fn named_introduction(socket_type: &str, identity: &[u8]) -> Vec<u8> {
    let properties = metadata(&[("Socket-Type", socket_type.as_bytes()), ("Identity", identity)]);
    [greeting(1, "NULL", false), command("READY", &properties)].concat()
}

/// Returns a connection whose peer of hand-made bytes (ZMTP 3.1, NULL) has done the handshake. The
/// connection's own handshake bytes are drained.
pub(crate) fn introduced(options: Options, peer: &str) -> Connection {
    introduced_to(options, peer, 1)
}

pub(crate) fn introduced_to(options: Options, peer: &str, minor: u8) -> Connection {
    let mut connection = connection(options, 1);
    let seen = feed(&mut connection, &introduction(minor, peer));
    assert!(matches!(seen[..], [Seen::Ready(..)]), "{seen:?}");
    drain(&mut connection);
    connection
}

/// Returns the error, which must be the last event.
pub(crate) fn error(seen: &[Seen]) -> &Error {
    match seen.last() {
        Some(Seen::Error(error)) => error,
        other => panic!("no error, but {other:?}"),
    }
}
