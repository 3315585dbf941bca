//! Tests of heartbeats.

use std::time::Duration;

use bytes::Bytes;
use onward_zmtp::protocol::{Heartbeat, Options, SocketType};

use super::link::{
    Seen, after, command, drain, exchange, feed, feed_at, frame, introduced, introduced_to, mechanisms, pair,
};

fn every_second() -> Heartbeat {
    Heartbeat::every(Duration::from_secs(1))
}

fn asks(heartbeat: Heartbeat) -> Options {
    Options::new(SocketType::Pull).heartbeat(heartbeat)
}

/// Shows: M2
#[test]
fn a_ping_says_time_to_live_and_context() {
    let heartbeat = every_second().ttl(Duration::from_millis(2590)).context("abc").unwrap();
    let mut pull = introduced(asks(heartbeat), "PUSH");
    assert_eq!(pull.next_timeout(), Some(after(1000)));
    pull.handle_timeout(after(999)).unwrap();
    assert!(!pull.wants_write());
    pull.handle_timeout(after(1000)).unwrap();
    assert_eq!(drain(&mut pull), command("PING", b"\x00\x19abc"));
}

/// Shows: M2
#[test]
fn a_peer_that_does_not_reply_is_given_up() {
    let mut pull = introduced(asks(every_second().timeout(Duration::from_millis(300))), "PUSH");
    pull.handle_timeout(after(1000)).unwrap();
    assert_eq!(pull.next_timeout(), Some(after(1300)));
    assert!(pull.handle_timeout(after(1300)).unwrap_err().is_timeout());
}

/// Shows: M2
#[test]
fn anything_that_comes_is_a_sign_of_life() {
    for bytes in [command("PONG", b""), frame(0, b"message"), frame(0, b"part of one")[..4].to_vec()] {
        let mut pull = introduced(asks(every_second().timeout(Duration::from_millis(300))), "PUSH");
        pull.handle_timeout(after(1000)).unwrap();
        feed_at(&mut pull, &bytes, after(1200));
        pull.handle_timeout(after(1300)).unwrap();
    }
}

/// Shows: M2
#[test]
fn what_has_come_but_was_not_looked_at_is_a_sign_of_life() {
    let mut pull = introduced(asks(every_second().timeout(Duration::from_millis(300))), "PUSH");
    pull.handle_timeout(after(1000)).unwrap();
    assert_eq!(pull.receive(&frame(0, b"m")), 3);
    pull.handle_timeout(after(1300)).unwrap();
}

/// Shows: M2
#[test]
fn pings_without_a_reply_do_not_pile_up() {
    let mut pull = introduced(asks(every_second().timeout(Duration::from_secs(60))), "PUSH");
    for second in 1..20 {
        pull.handle_timeout(after(second * 1000)).unwrap();
    }
    assert_eq!(drain(&mut pull), command("PING", b"\x00\x00"));
}

/// Shows: M2
#[test]
fn a_peer_that_is_silent_for_longer_than_its_time_to_live_is_given_up() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert_eq!(pull.next_timeout(), None);
    feed(&mut pull, &command("PING", b"\x00\x0f"));
    assert_eq!(pull.next_timeout(), Some(after(1500)));
    feed_at(&mut pull, &frame(0, b"m"), after(1000));
    pull.handle_timeout(after(2499)).unwrap();
    assert!(pull.handle_timeout(after(2500)).unwrap_err().is_timeout());
}

/// Shows: M2
#[test]
fn a_time_to_live_of_zero_means_for_ever() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    feed(&mut pull, &command("PING", b"\x00\x0f"));
    feed(&mut pull, &command("PING", b"\x00\x00"));
    assert_eq!(pull.next_timeout(), None);
}

/// Shows: M2
#[test]
fn a_context_of_16_octets_comes_back_and_a_longer_one_is_refused() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    feed(&mut pull, &command("PING", b"\x00\x000123456789abcdef"));
    assert_eq!(drain(&mut pull), command("PONG", b"0123456789abcdef"));
    let seen = feed(&mut pull, &command("PING", b"\x00\x000123456789abcdefg"));
    assert!(matches!(&seen[..], [Seen::Error(error)] if error.is_malformed()));
    assert!(every_second().context("0123456789abcdefg").unwrap_err().is_misuse());
}

/// Shows: M2
#[test]
fn a_peer_of_version_3_0_is_accepted_only_if_the_option_is_set() {
    let mut quiet = introduced_to(asks(every_second()), "PUSH", 0);
    assert_eq!(quiet.next_timeout(), None);
    feed(&mut quiet, &command("PING", b"\x00\x00x"));
    assert_eq!(drain(&mut quiet), command("PONG", b"x"));
    let asking = introduced_to(asks(every_second().ping_version_3_0()), "PUSH", 0);
    assert_eq!(asking.next_timeout(), Some(after(1000)));
}

/// Shows: M2
#[test]
fn a_ping_comes_back_with_its_context_over_every_mechanism() {
    for (name, client, server) in mechanisms() {
        let push = Options::new(SocketType::Push).security(client).heartbeat(every_second().context("c").unwrap());
        let (mut push, mut pull) = pair(push, Options::new(SocketType::Pull).security(server));
        push.handle_timeout(after(1000)).unwrap();
        assert_eq!(exchange(&mut push, &mut pull).0, [Seen::Pong(Bytes::from("c"))], "{name}");
    }
}

/// Shows: M2
#[test]
fn a_time_to_live_beyond_the_longest_is_cut() {
    let mut pull = introduced(asks(every_second().ttl(Duration::from_secs(1_000_000))), "PUSH");
    pull.handle_timeout(after(1000)).unwrap();
    assert_eq!(drain(&mut pull), command("PING", b"\xFF\xFF"));
}

/// Rounded to zero, it would mean no limit.
///
/// Shows: M2
#[test]
fn a_time_to_live_of_less_than_a_tenth_of_a_second_is_a_tenth() {
    let mut pull = introduced(asks(every_second().ttl(Duration::from_millis(1))), "PUSH");
    pull.handle_timeout(after(1000)).unwrap();
    assert_eq!(drain(&mut pull), command("PING", b"\x00\x01"));
}
