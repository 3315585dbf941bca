//! Tests of the pairs of socket types that may connect.

use onward_zmtp::protocol::{Options, SocketType};

use super::link::{Seen, connection, exchange, mechanisms};

/// The pairs of RFC 37 and of the drafts, each once.
const PAIRS: [(&str, &str); 18] = [
    ("REQ", "REP"),
    ("REQ", "ROUTER"),
    ("REP", "DEALER"),
    ("DEALER", "DEALER"),
    ("DEALER", "ROUTER"),
    ("ROUTER", "ROUTER"),
    ("PUB", "SUB"),
    ("PUB", "XSUB"),
    ("XPUB", "SUB"),
    ("XPUB", "XSUB"),
    ("PUSH", "PULL"),
    ("PAIR", "PAIR"),
    ("CLIENT", "SERVER"),
    ("RADIO", "DISH"),
    ("SCATTER", "GATHER"),
    ("PEER", "PEER"),
    ("CHANNEL", "CHANNEL"),
    ("PULL", "PUSH"),
];

fn is_listed(one: SocketType, other: SocketType) -> bool {
    let names = (one.name(), other.name());
    PAIRS.iter().any(|pair| *pair == names || *pair == (names.1, names.0))
}

/// Shows: M2
#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn every_pair_of_socket_types_connects_or_is_refused_as_the_rfc_says() {
    for one in SocketType::ALL {
        for other in SocketType::ALL {
            let (mut first, mut second) = (connection(Options::new(one), 1), connection(Options::new(other), 2));
            let (seen, _) = exchange(&mut first, &mut second);
            match &seen[..] {
                [Seen::Ready(peer, _)] if is_listed(one, other) => assert_eq!(*peer, other),
                [Seen::Error(error), ..] if !is_listed(one, other) => assert!(error.is_incompatible(), "{error}"),
                seen => panic!("{one} and {other}: {seen:?}"),
            }
        }
    }
}

#[test]
fn a_server_of_every_mechanism_reports_an_incompatible_client_to_it() {
    for (name, client, server) in mechanisms().into_iter().skip(1) {
        let mut push = connection(Options::new(SocketType::Push).security(client), 1);
        let mut publisher = connection(Options::new(SocketType::Pub).security(server), 2);
        let (at_push, at_publisher) = exchange(&mut push, &mut publisher);
        assert!(matches!(at_push.last(), Some(Seen::Error(error)) if error.is_peer_error()), "{name}: {at_push:?}");
        assert!(matches!(at_publisher.last(), Some(Seen::Error(error)) if error.is_incompatible()), "{name}");
    }
}

#[test]
fn each_type_has_a_name_that_leads_back_to_it() {
    for socket_type in SocketType::ALL {
        assert_eq!(SocketType::from_name(socket_type.name().as_bytes()), Some(socket_type));
    }
    assert_eq!(SocketType::from_name(b"dealer"), None);
}
