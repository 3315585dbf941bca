//! Tests of the limits on the memory that a peer can make a connection keep.

use onward_zmtp::protocol::{Limits, Options, SocketType};

use super::link::{Seen, command, error, feed, frame, introduced, mechanisms, message, pair};

fn limits(set: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

fn is_refused(limits: Limits, local: SocketType, peer: &str, allowed: &[u8], beyond: &[u8]) {
    let mut connection = introduced(Options::new(local).limits(limits), peer);
    let seen = feed(&mut connection, allowed);
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Error(_))), "what is allowed was refused: {seen:?}");
    assert!(error(&feed(&mut connection, beyond)).is_limit());
}

/// Shows: M2
#[test]
fn a_frame_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = limits(|limits| limits.frame_bytes = 10);
    is_refused(limits, SocketType::Pull, "PUSH", &frame(0, &[0; 10]), &frame(0, &[0; 11]));
}

/// Shows: M2
#[test]
fn a_message_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = limits(|limits| limits.message_bytes = 10);
    let halves = |last| [frame(1, &[0; 5]), frame(0, &vec![0; last])].concat();
    is_refused(limits, SocketType::Pull, "PUSH", &halves(5), &halves(6));
}

/// Shows: M2
#[test]
fn a_message_may_have_as_many_parts_as_the_limit_and_no_more() {
    let limits = limits(|limits| limits.message_parts = 3);
    let parts = |count: usize| [frame(1, b"").repeat(count - 1), frame(0, b"")].concat();
    is_refused(limits, SocketType::Pull, "PUSH", &parts(3), &parts(4));
}

/// Shows: M2
/// Beats: endless-message
#[test]
fn a_message_without_end_is_refused_before_it_ends() {
    let limits = limits(|limits| limits.message_parts = 100);
    is_refused(limits, SocketType::Pull, "PUSH", &frame(1, b"").repeat(100), &frame(1, b""));
}

/// Shows: M2
#[test]
fn a_command_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = limits(|limits| limits.command_bytes = 20);
    is_refused(limits, SocketType::Pull, "PUSH", &command("ANY", &[0; 16]), &command("ANY", &[0; 17]));
}

/// Shows: M2
#[test]
fn metadata_may_have_as_many_properties_as_the_limit_and_no_more() {
    for (count, is_allowed) in [(64, true), (65, false)] {
        let names: Vec<String> = (1..count).map(|number| format!("X{number}")).collect();
        let mut properties: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        properties.push(("Socket-Type", b"PUSH"));
        let body = [&b"\x05READY"[..], &super::link::metadata(&properties)].concat();
        let header = [&[6][..], &(body.len() as u64).to_be_bytes()].concat();
        let bytes = [super::link::greeting(1, "NULL", false), header, body].concat();
        let seen = feed(&mut super::link::null(SocketType::Pull), &bytes);
        match &seen[..] {
            [Seen::Ready(..)] => assert!(is_allowed),
            _ => assert!(error(&seen).is_limit() && !is_allowed, "{seen:?}"),
        }
    }
}

/// Shows: M2
/// Beats: endless-topics
#[test]
fn a_topic_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = limits(|limits| limits.topic_bytes = 4);
    is_refused(limits, SocketType::Pub, "SUB", &frame(0, b"\x01four"), &frame(0, b"\x01five!"));
    is_refused(limits, SocketType::Pub, "SUB", &command("SUBSCRIBE", b"four"), &command("SUBSCRIBE", b"five!"));
}

/// Shows: M2
#[test]
fn a_peer_may_have_as_many_topics_as_the_limit_and_no_more() {
    let limits = limits(|limits| limits.topics = 2);
    let allowed = [&b"\x01a"[..], b"\x01b", b"\x01a", b"\x00b", b"\x01c"].map(|body| frame(0, body)).concat();
    is_refused(limits, SocketType::Pub, "SUB", &allowed, &frame(0, b"\x01d"));
}

/// Shows: M2
#[test]
#[cfg_attr(miri, ignore = "keys, which take it minutes")]
fn the_limits_hold_for_what_is_inside_an_encrypted_frame() {
    let (_, client, server) = mechanisms()[2].clone();
    for (bytes, is_allowed) in [(10, true), (11, false)] {
        let limits = limits(|limits| (limits.frame_bytes, limits.command_bytes) = (10, 0));
        let pull = Options::new(SocketType::Pull).security(server.clone()).limits(limits);
        let (mut push, mut pull) = pair(Options::new(SocketType::Push).security(client.clone()), pull);
        push.send(message(&[&vec![0; bytes]])).unwrap();
        let (_, seen) = super::link::exchange(&mut push, &mut pull);
        match &seen[..] {
            [Seen::Message(_)] => assert!(is_allowed),
            _ => assert!(error(&seen).is_limit() && !is_allowed, "{seen:?}"),
        }
    }
}
