//! Tests against pitfalls known from other implementations.

use std::sync::Arc;
use std::time::Duration;

use onward_zmtp::protocol::{Connection, Event, Limits, Options, Security, SocketType};

use super::allocations::{Counted, counted};
use super::link::{
    Seen, after, command, connection, drain, error, exchange, feed, feed_at, frame, greeting, introduced, introduction,
    keys, mechanisms, metadata, null, start,
};

/// The bytes that a peer may cost before it is refused.
const REFUSED: i64 = 2048;
/// The allocations that it may cost.
const REFUSED_CALLS: u64 = 24;

#[test]
fn a_peer_that_sends_its_handshake_slowly_is_given_up_in_time() {
    let options = Options::new(SocketType::Pull).handshake_timeout(Duration::from_secs(30));
    let mut pull = connection(options, 1);
    for (second, octet) in introduction(1, "PUSH").into_iter().enumerate().take(30) {
        let now = after(second as u64 * 1000);
        assert_eq!(feed_at(&mut pull, &[octet], now), []);
        pull.handle_timeout(now).unwrap();
    }
    assert!(pull.handle_timeout(after(30_000)).unwrap_err().is_timeout());
}

#[test]
fn a_silent_connection_costs_little_memory() {
    let options = Arc::new(Options::new(SocketType::Pull));
    let counted = counted(|| {
        let entropy = super::link::entropy(1);
        let mut pull = Connection::new(options, entropy, start());
        feed(&mut pull, &greeting(1, "NULL", false)[..63]);
        pull
    });
    assert!(counted.live < 2048, "{} bytes", counted.live);
}

/// Returns a server with fixed entropy that has received all this and must decide about its client.
fn undecided(options: Arc<Options>, said: &[Vec<u8>]) -> Connection {
    let mut server = Connection::accepted(options, super::link::entropy(2), start());
    let decides = said.iter().any(|bytes| {
        assert_eq!(server.receive(bytes), bytes.len());
        let event = server.poll_event(start()).unwrap();
        drain(&mut server);
        matches!(event, Some(Event::Authenticate(_)))
    });
    assert!(decides, "nobody asks");
    server
}

/// Returns all messages of a client until such a server must decide about it.
pub(crate) fn said_until_decision(client: Security, options: &Arc<Options>) -> Vec<Vec<u8>> {
    let mut client = connection(Options::new(SocketType::Push).security(client), 1);
    let mut server = Connection::accepted(options.clone(), super::link::entropy(2), start());
    let mut said = Vec::new();
    loop {
        said.push(drain(&mut client));
        assert!(server.receive(&said[said.len() - 1]) > 0, "the client has no more to say");
        if matches!(server.poll_event(start()).unwrap(), Some(Event::Authenticate(_))) {
            return said;
        }
        feed(&mut client, &drain(&mut server));
    }
}

#[test]
fn a_refused_peer_costs_little_memory_until_then_over_every_mechanism() {
    for (name, client, server) in mechanisms().into_iter().skip(1) {
        let options = Arc::new(Options::new(SocketType::Pull).security(server));
        let said = said_until_decision(client, &options);
        let counted = counted(|| {
            let mut server = undecided(options, &said);
            server.refuse("400").unwrap();
            assert!(server.poll_event(start()).unwrap_err().is_refused());
            server
        });
        assert!(counted.peak < REFUSED, "{name}: {} bytes at most", counted.peak);
    }
}

/// Returns bad greetings and `HELLO`s. The first is refused only for the content of its box.
pub(crate) fn false_hellos(said: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (greeting, hello) = (&said[0][..], &said[1][..]);
    let changed = |at: usize| {
        let mut hello = hello.to_vec();
        hello[at] ^= 0x40;
        hello
    };
    let [tag, key, version, padding] = [hello.len() - 1, 82, 8, 10].map(changed);
    let long = [&[6][..], &8192_u64.to_be_bytes(), b"\x05HELLO", &[7; 8186]].concat();
    let hellos = [tag, key, version, padding, command("HELLO", &[7; 20]), command("HELLO", &[7; 240]), long];
    let twice = [greeting, hello, hello].concat();
    hellos.iter().map(|hello| [greeting, hello].concat()).chain([twice]).collect()
}

/// Counts the allocations for a peer that sends these bytes until it is refused, and the memory
/// that is left.
fn refused(options: &Arc<Options>, said: &[u8]) -> Counted<()> {
    counted(|| {
        let mut server = Connection::accepted(options.clone(), super::link::entropy(2), start());
        let mut rest = said;
        while server.poll_event(start()).is_ok() {
            assert!(!rest.is_empty(), "nobody is refused");
            rest = &rest[server.receive(rest)..];
            drain(&mut server);
        }
    })
}

#[test]
#[cfg_attr(miri, ignore = "keys, which take it minutes")]
fn a_false_hello_costs_hardly_more_memory_than_it_is_and_few_allocations_and_leaves_nothing() {
    let (_, client, server) = mechanisms().remove(2);
    let options = Arc::new(Options::new(SocketType::Pull).security(server));
    for said in false_hellos(&said_until_decision(client, &options)) {
        let Counted { calls, peak, live, .. } = refused(&options, &said);
        assert!(peak < REFUSED + said.len() as i64, "{peak} bytes for {} of theirs", said.len());
        assert!(calls <= REFUSED_CALLS, "{calls} allocations");
        assert_eq!(live, 0);
    }
}

#[test]
fn a_port_scanner_is_refused_at_its_first_octet() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"\x01\x00", b"\x00", b"SSH-2.0"] {
        let mut pull = null(SocketType::Pull);
        assert!(error(&feed(&mut pull, &bytes[..1])).is_version());
    }
}

/// Beats: old-protocols
#[test]
fn there_is_no_fallback_to_older_protocols() {
    let version_1 = b"\xFF\0\0\0\0\0\0\0\x01\x01";
    let version_2 = b"\xFF\0\0\0\0\0\0\0\x01\x7F\x01";
    for bytes in [&version_1[..], version_2] {
        assert!(error(&feed(&mut null(SocketType::Pull), bytes)).is_version());
    }
}

#[test]
fn the_mechanism_must_match_exactly() {
    for theirs in ["NULL", "PLAIN", "CURVE", "NUL", "NULLX", "null", "GSSAPI", ""] {
        for (ours, _, server) in mechanisms() {
            let mut pull = connection(Options::new(SocketType::Pull).security(server), 1);
            let seen = feed(&mut pull, &greeting(1, theirs, false));
            if theirs == ours {
                assert_eq!(seen, []);
            } else {
                assert!(error(&seen).is_mechanism(), "{ours} took {theirs}");
            }
        }
    }
}

#[test]
fn a_name_of_a_mechanism_with_something_behind_it_does_not_match() {
    let mut bytes = greeting(1, "NULL", false);
    bytes[20] = b'X';
    assert!(error(&feed(&mut null(SocketType::Pull), &bytes)).is_mechanism());
}

/// Beats: weaker-mechanism
#[test]
#[cfg_attr(miri, ignore = "keys, which take it minutes")]
fn null_is_not_accepted_where_curve_is_wanted() {
    let security = Security::CurveServer { keys: keys(9) };
    let mut pull = connection(Options::new(SocketType::Pull).security(security), 1);
    assert!(error(&feed(&mut pull, &introduction(1, "PUSH"))).is_mechanism());
    assert!(pull.peer().is_none());
}

#[test]
fn two_servers_or_two_clients_refuse_each_other() {
    for (_, client, server) in mechanisms().into_iter().skip(1) {
        for security in [client, server] {
            let options = || Options::new(SocketType::Pair).security(security.clone());
            let (mut one, mut other) = (connection(options(), 1), connection(options(), 2));
            assert!(error(&exchange(&mut one, &mut other).0).is_mechanism());
        }
    }
}

#[test]
fn a_peer_that_is_not_accepted_cannot_get_a_message_through() {
    let mut server = connection(Options::new(SocketType::Pull).security(Security::PlainServer), 1);
    let hello = [greeting(1, "PLAIN", false), command("HELLO", b"\x01u\x01p")].concat();
    let initiate = command("INITIATE", &metadata(&[("Socket-Type", b"PUSH")]));
    let bytes = [hello, initiate, frame(0, b"sneaked in")].concat();
    assert_eq!(server.receive(&bytes), bytes.len());
    assert!(matches!(server.poll_event(start()), Ok(Some(Event::Authenticate(_)))));
    assert!(matches!(server.poll_event(start()), Ok(None)));
    server.refuse("400").unwrap();
    assert!(server.poll_event(start()).unwrap_err().is_refused());
    assert!(server.peer().is_none());
}

#[test]
fn metadata_that_is_too_large_is_refused_over_every_mechanism() {
    for (name, client, server) in mechanisms() {
        let big = Options::new(SocketType::Push).security(client).property("X-Big", vec![0; 3000]).unwrap();
        let mut limits = Limits::default();
        limits.metadata_bytes = 1000;
        let options = Options::new(SocketType::Pull).security(server).limits(limits);
        let (mut push, mut pull) = (connection(big, 1), connection(options, 2));
        let (_, seen) = exchange(&mut push, &mut pull);
        assert!(error(&seen).is_limit(), "{name}: {seen:?}");
    }
}

#[test]
fn metadata_that_lies_about_its_lengths_is_refused() {
    let whole = metadata(&[("Socket-Type", b"PUSH"), ("X-More", b"value")]);
    for length in (1..whole.len()).filter(|length| *length != metadata(&[("Socket-Type", b"PUSH")]).len()) {
        let bytes = [greeting(1, "NULL", false), command("READY", &whole[..length])].concat();
        assert!(error(&feed(&mut null(SocketType::Pull), &bytes)).is_malformed(), "{length} bytes were accepted");
    }
    let mut endless = whole;
    endless[12..16].fill(0xFF);
    let bytes = [greeting(1, "NULL", false), command("READY", &endless)].concat();
    assert!(error(&feed(&mut null(SocketType::Pull), &bytes)).is_malformed());
}

#[test]
fn metadata_without_a_socket_type_or_with_two_is_refused() {
    let twice = metadata(&[("Socket-Type", b"PUSH"), ("socket-type", b"PULL")]);
    for metadata in [metadata(&[("X-Only", b"this")]), twice] {
        let bytes = [greeting(1, "NULL", false), command("READY", &metadata)].concat();
        assert!(error(&feed(&mut null(SocketType::Pull), &bytes)).is_malformed());
    }
}

#[test]
fn an_identity_that_is_too_long_is_refused() {
    let metadata = metadata(&[("Socket-Type", b"DEALER"), ("Identity", &[b'x'; 256])]);
    let body = [&b"\x05READY"[..], &metadata].concat();
    let header = [&[6][..], &(body.len() as u64).to_be_bytes()].concat();
    let bytes = [greeting(1, "NULL", false), header, body].concat();
    assert!(error(&feed(&mut null(SocketType::Router), &bytes)).is_malformed());
}

#[test]
fn a_command_that_is_too_short_for_what_it_says_is_an_error_and_no_panic() {
    let wrong: [&[u8]; 8] =
        [b"", b"\x00", b"\x04", b"\x04PIN", b"\xFFPING", b"\x04PING", b"\x04PING\x00", b"\x05ERROR\x05no"];
    for body in wrong {
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        assert!(error(&feed(&mut pull, &frame(4, body))).is_malformed(), "{body:?}");
    }
}

#[test]
fn a_hello_that_is_cut_anywhere_is_an_error_and_no_panic() {
    let whole = b"\x03ali\x02pw";
    for length in 0..whole.len() {
        let mut server = connection(Options::new(SocketType::Pull).security(Security::PlainServer), 1);
        let bytes = [greeting(1, "PLAIN", false), command("HELLO", &whole[..length])].concat();
        assert!(error(&feed(&mut server, &bytes)).is_malformed(), "{length} bytes");
    }
}

#[test]
fn a_flood_of_pings_is_not_answered_beyond_what_the_peer_reads() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let flood = command("PING", b"\x00\x00sixteen octets!!").repeat(1000);
    let mut bytes = &flood[..];
    let mut replies = 0;
    while !bytes.is_empty() {
        let taken = pull.receive(bytes);
        bytes = &bytes[taken..];
        assert!(matches!(pull.poll_event(start()), Ok(None)));
        if taken == 0 {
            assert!(!pull.wants_read());
            let answered = drain(&mut pull);
            assert!(answered.len() < 5000, "{} bytes of answers waited", answered.len());
            replies += answered.len();
        }
    }
    loop {
        assert!(matches!(pull.poll_event(start()), Ok(None)));
        match drain(&mut pull).len() {
            0 => break,
            more => replies += more,
        }
    }
    assert_eq!(replies, command("PONG", b"sixteen octets!!").len() * 1000);
}

#[test]
fn a_peer_of_a_fixed_side_cannot_send_error_to_a_server() {
    let mut server = connection(Options::new(SocketType::Pull).security(Security::PlainServer), 1);
    let seen = feed(&mut server, &[greeting(1, "PLAIN", false), command("ERROR", b"\x02no")].concat());
    assert!(error(&seen).is_malformed());
}

/// libzmq had this fault (its advisory GHSA-wfr2): the parts received so far stayed in memory.
#[test]
fn an_unfinished_message_of_a_disconnected_peer_leaves_no_memory() {
    let parts: Vec<u8> = (0..100).flat_map(|_| frame(1, &[7; 200])).collect();
    let unfinished = counted(|| {
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        feed(&mut pull, &parts);
        pull.end_of_stream();
    });
    assert!(unfinished.peak > 20_000, "{} bytes are no parts", unfinished.peak);
    assert_eq!(unfinished.live, 0);
}

#[test]
fn an_unfinished_message_of_a_disconnected_peer_is_never_seen() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert_eq!(feed(&mut pull, &[frame(1, b"a"), frame(1, b"b")].concat()), [] as [Seen; 0]);
    assert!(pull.end_of_stream().is_disconnected());
    assert!(matches!(pull.poll_event(start()), Err(error) if error.is_disconnected()));
}
