//! Tests that the same bytes cause the same events in pieces of any length.

use std::sync::LazyLock;

use onward_zmtp::protocol::{Connection, Event, Limits, Options, SocketType};
use proptest::prelude::*;

use super::link::{Seen, feed, frame, introduced, introduced_to, mechanisms, start};
use super::transcript::Transcript;

static TRANSCRIPTS: LazyLock<Vec<Transcript>> = LazyLock::new(|| {
    mechanisms().into_iter().map(|(name, client, server)| Transcript::record(name, client, server)).collect()
});

/// The greatest number of frames, and of octets of anything. Miri takes some thousand times as long
/// for each step.
const FRAMES: usize = if cfg!(miri) { 8 } else { 60 };
const OCTETS: usize = if cfg!(miri) { 60 } else { 400 };

/// Returns all events when the bytes come in pieces of these lengths, repeated.
fn in_pieces(connection: &mut Connection, mut bytes: &[u8], lengths: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while !bytes.is_empty() && !matches!(seen.last(), Some(Seen::Error(_))) {
        let length = lengths.next().map_or(bytes.len(), |length| *length).clamp(1, bytes.len());
        seen.extend(feed(connection, &bytes[..length]));
        bytes = &bytes[length..];
    }
    seen
}

/// Returns each side of each conversation: the receiving connection and the bytes that it is sent.
fn sides() -> impl Iterator<Item = (&'static str, Connection, &'static [u8])> {
    TRANSCRIPTS.iter().flat_map(|transcript| {
        let to_server = (transcript.name, transcript.new_server(), &transcript.by_client[..]);
        [to_server, (transcript.name, transcript.new_client(), &transcript.by_server[..])]
    })
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    let length = prop_oneof![1_usize..20, 1_usize..600, 1_usize..20_000, Just(usize::MAX)];
    proptest::collection::vec(length, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    /// Shows: M2
    #[test]
    fn a_conversation_in_any_pieces_is_the_same_conversation(lengths in pieces()) {
        for (name, mut cut, bytes) in sides() {
            let seen = in_pieces(&mut cut, bytes, &lengths);
            let (_, mut whole, _) = sides().find(|(other, _, said)| *other == name && std::ptr::eq(*said, bytes)).unwrap();
            prop_assert_eq!(&seen, &in_pieces(&mut whole, bytes, &[]), "{}", name);
            prop_assert!(!matches!(seen.last(), Some(Seen::Error(_))));
        }
    }

    /// Shows: M2
    #[test]
    fn a_damaged_conversation_in_any_pieces_ends_the_same(lengths in pieces(), at in 0_usize..2000, xor in 1_u8..=255) {
        for ((name, mut cut, bytes), (_, mut whole, _)) in sides().zip(sides()) {
            let mut bytes = bytes.to_vec();
            let at = at % bytes.len();
            bytes[at] ^= xor;
            prop_assert_eq!(in_pieces(&mut cut, &bytes, &lengths), in_pieces(&mut whole, &bytes, &[]), "{}", name);
        }
    }

    /// Shows: M2
    #[test]
    fn anything_after_the_handshake_in_any_pieces_comes_to_the_same(
        bytes in proptest::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..OCTETS),
        lengths in pieces(),
        minor in 0_u8..2,
    ) {
        let new = || introduced_to(Options::new(SocketType::Xpub), "XSUB", minor);
        prop_assert_eq!(in_pieces(&mut new(), &bytes, &lengths), in_pieces(&mut new(), &bytes, &[]));
    }
}

/// Returns all events when short messages are taken `wanted` at a time and everything else one by
/// one.
fn taken(connection: &mut Connection, mut bytes: &[u8], lengths: &[usize], wanted: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while !bytes.is_empty() && !matches!(seen.last(), Some(Seen::Error(_))) {
        let length = lengths.next().map_or(bytes.len(), |length| *length).clamp(1, bytes.len());
        let count = connection.receive(&bytes[..length]);
        bytes = &bytes[count..];
        let mut before = usize::MAX;
        while before != seen.len() && !matches!(seen.last(), Some(Seen::Error(_))) {
            before = seen.len();
            connection.take_short_messages(start(), |message| {
                seen.push(Event::Message(message).into());
                seen.len() - before < wanted
            });
            // Everything but short messages comes from here; so do messages that are still
            // incomplete.
            seen.extend(feed(connection, &[]));
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]

    /// Shows: M2
    #[test]
    fn short_messages_that_are_taken_at_once_are_those_that_come_one_by_one(
        frames in proptest::collection::vec((prop_oneof![9 => Just(0_u8), 1 => 0_u8..6], 0_usize..120), 0..FRAMES),
        lengths in pieces(),
        wanted in 1_usize..10,
        socket_type in prop_oneof![3 => Just(SocketType::Pull), 1 => Just(SocketType::Xpub)],
    ) {
        let frames = frames.iter().enumerate();
        let bytes: Vec<u8> = frames.flat_map(|(at, (flags, length))| frame(*flags, &vec![at as u8; *length])).collect();
        let peer = if socket_type == SocketType::Pull { "PUSH" } else { "XSUB" };
        let mut limits = Limits::default();
        limits.frame_bytes = 100;
        let new = || introduced(Options::new(socket_type).limits(limits), peer);
        prop_assert_eq!(taken(&mut new(), &bytes, &lengths, wanted), in_pieces(&mut new(), &bytes, &[]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn octet_by_octet_comes_to_the_same() {
    for ((name, mut cut, bytes), (_, mut whole, _)) in sides().zip(sides()) {
        assert_eq!(in_pieces(&mut cut, bytes, &[1]), in_pieces(&mut whole, bytes, &[]), "{name}");
    }
}

#[test]
fn bytes_read_in_place_come_to_the_same_as_bytes_handed_in() {
    use bytes::BufMut;
    let bytes = [vec![2, 0, 0, 0, 0, 0, 3, 0, 0], vec![9; 3 * 65536], vec![0, 1, 7]].concat();
    let mut rest = &bytes[..];
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let mut buffer = pull.read_buf();
        let count = buffer.remaining_mut().min(rest.len());
        assert!(count > 0, "no room");
        buffer.put_slice(&rest[..count]);
        drop(buffer);
        rest = &rest[count..];
        seen.extend(feed(&mut pull, &[]));
    }
    let mut other = introduced(Options::new(SocketType::Pull), "PUSH");
    assert_eq!(seen, feed(&mut other, &bytes));
    assert_eq!(seen.len(), 2);
}
