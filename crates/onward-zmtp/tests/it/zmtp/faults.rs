//! Tests against faults seen in other implementations.

use std::time::Duration;

use bytes::Bytes;
use onward_zmtp::protocol::bounds::IDLE_READ_BUFFER_BYTES;
use onward_zmtp::protocol::{Limits, Options, SocketType};

use super::allocations::counted;
use super::link::{
    Seen, after, command, connection, drain, error, feed, frame, greeting, introduced, introduced_to, null,
};

/// Returns the header of a frame with this length.
fn announces(flags: u8, length: u64) -> Vec<u8> {
    [&[flags | 2][..], &length.to_be_bytes()].concat()
}

#[test]
fn a_length_of_2_to_the_62_ends_the_connection_and_not_the_process() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let counted = counted(|| feed(&mut pull, &announces(0, 1 << 62)));
    assert!(error(&counted.result).is_limit());
    assert!(counted.peak < IDLE_READ_BUFFER_BYTES as i64 + 4096, "{} bytes were allocated", counted.peak);
}

#[test]
fn a_length_of_2_to_the_62_before_ready_ends_the_connection_and_not_the_process() {
    for flags in [0, 4] {
        let mut pull = null(SocketType::Pull);
        feed(&mut pull, &greeting(1, "NULL", false));
        let counted = counted(|| feed(&mut pull, &announces(flags, 1 << 62)));
        assert!(error(&counted.result).is_limit());
        assert!(counted.peak < 4096, "{} bytes were allocated", counted.peak);
    }
}

#[test]
fn a_length_that_the_protocol_does_not_know_is_malformed() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert!(error(&feed(&mut pull, &announces(0, 1 << 63))).is_malformed());
}

/// rzmq 0.5 overflowed by the nine octets of the header, libzmq before 4.3.1 by the length
/// (CVE-2019-6250).
#[test]
fn the_longest_length_that_the_protocol_knows_overflows_nothing() {
    let mut limits = Limits::default();
    (limits.frame_bytes, limits.message_bytes) = (usize::MAX, usize::MAX);
    for length in [i64::MAX as u64, i64::MAX as u64 - 8] {
        for before in [&b""[..], b"\x01\x05first"] {
            let mut pull = introduced(Options::new(SocketType::Pull).limits(limits), "PUSH");
            let bytes = [before, &announces(0, length), &[0; 1000]].concat();
            let counted = counted(|| feed(&mut pull, &bytes));
            assert_eq!(counted.result, []);
            assert!(counted.peak < 128 * 1024, "{} bytes were allocated", counted.peak);
        }
    }
}

/// Beats: announced-length
#[test]
fn a_length_of_8_gibibytes_reserves_nothing_even_where_it_is_allowed() {
    let mut limits = Limits::default();
    (limits.frame_bytes, limits.message_bytes) = (usize::MAX, usize::MAX);
    let mut pull = introduced(Options::new(SocketType::Pull).limits(limits), "PUSH");
    let counted = counted(|| feed(&mut pull, &[announces(0, 8 << 30), vec![0; 1000]].concat()));
    assert_eq!(counted.result, []);
    assert!(counted.peak < 128 * 1024, "{} bytes were allocated", counted.peak);
}

#[test]
fn memory_for_a_large_frame_grows_with_what_was_received() {
    let mut limits = Limits::default();
    (limits.frame_bytes, limits.message_bytes) = (usize::MAX, usize::MAX);
    let mut pull = introduced(Options::new(SocketType::Pull).limits(limits), "PUSH");
    feed(&mut pull, &announces(0, 8 << 30));
    let (mut received, mut live, chunk) = (0, 0, vec![0; 32 * 1024]);
    for _ in 0..64 {
        let counted = counted(|| feed(&mut pull, &chunk));
        received += chunk.len() as i64;
        live += counted.live;
        assert!(live <= 2 * received + 64 * 1024, "{live} bytes are held for {received}");
    }
}

/// Beats: silent-handshake
#[test]
fn a_silent_peer_is_given_up_when_the_time_for_the_handshake_is_over() {
    let options = Options::new(SocketType::Pull).handshake_timeout(Duration::from_secs(5));
    let mut pull = connection(options, 1);
    assert_eq!(pull.next_timeout(), Some(after(5000)));
    pull.handle_timeout(after(4999)).unwrap();
    assert!(pull.handle_timeout(after(5000)).unwrap_err().is_timeout());
    assert_eq!(pull.next_timeout(), None);
}

/// Beats: ping-is-an-error
#[test]
fn a_ping_is_answered_and_is_no_error() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert_eq!(feed(&mut pull, &command("PING", b"\x00\x00context")), []);
    assert_eq!(drain(&mut pull), command("PONG", b"context"));
}

#[test]
fn messages_between_heartbeats_of_a_3_0_peer_arrive() {
    let mut pull = introduced_to(Options::new(SocketType::Pull), "PUSH", 0);
    let bytes =
        [command("PING", b"\x00\x0a"), frame(0, b"one"), command("PING", b"\x00\x0a"), frame(0, b"two")].concat();
    let seen = feed(&mut pull, &bytes);
    assert_eq!(seen, [Seen::Message(vec![Bytes::from("one")]), Seen::Message(vec![Bytes::from("two")])]);
    assert_eq!(drain(&mut pull), command("PONG", b"").repeat(2));
}
