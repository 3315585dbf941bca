//! Tests of the bytes on the wire, written and read by hand.

use bytes::Bytes;
use onward_zmtp::protocol::{Identity, Options, Password, Security, SocketType};

use super::link::{
    Seen, command, connection, drain, error, feed, frame, greeting, introduced, introduction, message, metadata, null,
};

#[test]
fn our_greeting_is_the_one_of_version_3_1() {
    assert_eq!(drain(&mut null(SocketType::Push)), greeting(1, "NULL", false));
    let server = Options::new(SocketType::Pull).security(Security::PlainServer);
    assert_eq!(drain(&mut connection(server, 1)), greeting(1, "PLAIN", true));
}

#[test]
fn ready_has_socket_type_and_identity_and_own_properties() {
    let options = Options::new(SocketType::Req).identity(Identity::new("me").unwrap());
    let mut req = connection(options.property("X-Site", "north").unwrap(), 1);
    drain(&mut req);
    feed(&mut req, &greeting(1, "NULL", false));
    let expected = metadata(&[("Socket-Type", b"REQ"), ("Identity", b"me"), ("X-Site", b"north")]);
    assert_eq!(drain(&mut req), command("READY", &expected));
}

#[test]
fn a_socket_that_no_router_addresses_sends_no_identity() {
    let mut push = connection(Options::new(SocketType::Push).identity(Identity::new("me").unwrap()), 1);
    drain(&mut push);
    feed(&mut push, &greeting(1, "NULL", false));
    assert_eq!(drain(&mut push), command("READY", &metadata(&[("Socket-Type", b"PUSH")])));
}

#[test]
fn property_names_are_compared_without_regard_to_case() {
    let mut pull = null(SocketType::Pull);
    let ready = command("READY", &metadata(&[("sOCKET-tYPE", b"PUSH"), ("IDENTITY", b"p")]));
    let seen = feed(&mut pull, &[greeting(0, "NULL", false), ready].concat());
    assert_eq!(seen, [Seen::Ready(SocketType::Push, Some(Bytes::from("p")))]);
}

#[test]
fn the_padding_of_the_greeting_is_not_interpreted() {
    let mut pull = null(SocketType::Pull);
    let mut bytes = introduction(1, "PUSH");
    bytes[1..9].fill(0xAB);
    bytes[33..64].fill(0xCD);
    assert_eq!(feed(&mut pull, &bytes), [Seen::Ready(SocketType::Push, None)]);
}

#[test]
fn a_later_major_version_is_welcome() {
    let mut pull = null(SocketType::Pull);
    let mut bytes = introduction(0, "PUSH");
    bytes[10] = 4;
    assert_eq!(feed(&mut pull, &bytes), [Seen::Ready(SocketType::Push, None)]);
}

#[test]
fn plain_is_spoken_as_rfc_24_says_by_the_client() {
    let password = Password::new("pw").unwrap();
    let security = Security::PlainClient { username: "ali".into(), password };
    let mut client = connection(Options::new(SocketType::Push).security(security), 1);
    drain(&mut client);
    feed(&mut client, &greeting(1, "PLAIN", true));
    assert_eq!(drain(&mut client), command("HELLO", b"\x03ali\x02pw"));
    feed(&mut client, &command("WELCOME", b""));
    assert_eq!(drain(&mut client), command("INITIATE", &metadata(&[("Socket-Type", b"PUSH")])));
    let seen = feed(&mut client, &command("READY", &metadata(&[("Socket-Type", b"PULL")])));
    assert_eq!(seen, [Seen::Ready(SocketType::Pull, None)]);
}

#[test]
fn plain_is_spoken_as_rfc_24_says_by_the_server() {
    let mut server = connection(Options::new(SocketType::Pull).security(Security::PlainServer), 1);
    drain(&mut server);
    feed(&mut server, &greeting(1, "PLAIN", false));
    assert_eq!(feed(&mut server, &command("HELLO", b"\x03ali\x02pw")), [Seen::Plain(Bytes::from("ali"))]);
    assert_eq!(drain(&mut server), command("WELCOME", b""));
    let seen = feed(&mut server, &command("INITIATE", &metadata(&[("Socket-Type", b"PUSH")])));
    assert_eq!(seen, [Seen::Ready(SocketType::Push, None)]);
    assert_eq!(drain(&mut server), command("READY", &metadata(&[("Socket-Type", b"PULL")])));
}

#[test]
fn frames_up_to_255_bytes_have_a_short_length_and_longer_ones_a_long_one() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    push.send(message(&[&[1; 255]])).unwrap();
    assert_eq!(drain(&mut push), frame(0, &[1; 255]));
    push.send(message(&[&[1; 256]])).unwrap();
    let bytes = drain(&mut push);
    assert_eq!(bytes[..9], [2, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(bytes.len(), 9 + 256);
}

#[test]
fn all_frames_but_the_last_say_that_more_follow() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    push.send(message(&[b"a", b"b", b"c"])).unwrap();
    assert_eq!(drain(&mut push), [frame(1, b"a"), frame(1, b"b"), frame(0, b"c")].concat());
}

#[test]
fn a_short_body_in_a_long_frame_is_accepted() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let seen = feed(&mut pull, b"\x02\x00\x00\x00\x00\x00\x00\x00\x02hi");
    assert_eq!(seen, [Seen::Message(vec![Bytes::from("hi")])]);
}

#[test]
fn reserved_flags_are_refused() {
    for flags in [0x08, 0x10, 0x80] {
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        assert!(error(&feed(&mut pull, &frame(flags, b"x"))).is_malformed());
    }
}

#[test]
fn a_command_in_several_frames_is_refused() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert!(error(&feed(&mut pull, &frame(5, b"\x04PING"))).is_malformed());
}

#[test]
fn an_unknown_command_after_the_handshake_is_ignored() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let seen = feed(&mut pull, &[command("FUTURE", b"data"), frame(0, b"m")].concat());
    assert_eq!(seen, [Seen::Message(vec![Bytes::from("m")])]);
}

#[test]
fn an_unknown_command_during_the_handshake_is_an_error() {
    let mut pull = null(SocketType::Pull);
    let seen = feed(&mut pull, &[greeting(1, "NULL", false), command("FUTURE", b"")].concat());
    assert!(error(&seen).is_malformed());
}

#[test]
fn a_message_during_the_handshake_is_an_error() {
    let mut pull = null(SocketType::Pull);
    let seen = feed(&mut pull, &[greeting(1, "NULL", false), frame(0, b"early")].concat());
    assert!(error(&seen).is_malformed());
}

#[test]
fn the_reason_of_an_error_of_the_peer_is_shown_without_control_characters() {
    let mut push = null(SocketType::Push);
    let seen = feed(&mut push, &[greeting(1, "NULL", false), command("ERROR", b"\x07no\x1b[2J!")].concat());
    let error = error(&seen);
    assert!(error.is_peer_error());
    assert!(error.to_string().ends_with("no?[2J!"), "{error}");
}

#[test]
fn an_error_stays_the_reply() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let first = feed(&mut pull, &frame(0x80, b"x"));
    assert_eq!(feed(&mut pull, &frame(0, b"fine")), first);
    assert!(!pull.wants_read());
    assert_eq!(&pull.end_of_stream(), error(&first));
}

#[test]
fn a_stream_that_ends_within_a_message_is_distinguished_from_one_that_ends_between_two() {
    let mut between = introduced(Options::new(SocketType::Pull), "PUSH");
    let mut middle = introduced(Options::new(SocketType::Pull), "PUSH");
    feed(&mut middle, &frame(1, b"first of two"));
    let (between, middle) = (between.end_of_stream(), middle.end_of_stream());
    assert!(between.is_disconnected() && middle.is_disconnected());
    assert_ne!(between, middle);
}

#[test]
fn an_identity_is_1_to_255_octets_and_does_not_begin_with_zero() {
    assert!(Identity::new(vec![1; 255]).is_ok());
    for wrong in [vec![], vec![0, 1], vec![1; 256]] {
        assert!(Identity::new(wrong).unwrap_err().is_misuse());
    }
}

#[test]
fn a_property_of_the_protocol_cannot_be_set() {
    for name in ["socket-type", "Identity", "", "with space"] {
        assert!(Options::new(SocketType::Push).property(name, "x").unwrap_err().is_misuse(), "{name}");
    }
    let once = Options::new(SocketType::Push).property("X-A", "1").unwrap();
    assert!(once.property("x-a", "2").unwrap_err().is_misuse());
}

#[test]
fn a_server_that_does_not_say_that_it_is_one_is_accepted_as_libzmq_never_says_it() {
    let security = Security::PlainClient { username: "ali".into(), password: Password::new("pw").unwrap() };
    let mut client = connection(Options::new(SocketType::Push).security(security), 1);
    assert_eq!(feed(&mut client, &[greeting(1, "PLAIN", false), command("WELCOME", b"")].concat()), []);
}

#[test]
fn the_misspelt_error_of_libzmq_is_a_refusal() {
    let security = Security::PlainClient { username: "ali".into(), password: Password::new("pw").unwrap() };
    let mut client = connection(Options::new(SocketType::Push).security(security), 1);
    let seen = feed(&mut client, &[greeting(1, "PLAIN", false), frame(4, b"^RROR\x03400")].concat());
    assert!(error(&seen).is_peer_error());
}
