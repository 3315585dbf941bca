//! Tests that a server knows an accepted peer before that peer is allowed to send.

use bytes::Bytes;
use onward_zmtp::protocol::{Connection, Event, Identity, Options, SocketType};

use super::link::{Seen, accepted, connection, drain, error, exchange, feed, mechanisms, start};

/// Returns a DEALER and the ROUTER that it has connected to, for every mechanism.
fn everybody() -> impl Iterator<Item = (&'static str, Connection, Connection)> {
    mechanisms().into_iter().map(|(name, client, server)| {
        let dealer = Options::new(SocketType::Dealer).identity(Identity::new("worker-1").unwrap()).security(client);
        let router = Options::new(SocketType::Router).security(server);
        (name, connection(dealer, 1), accepted(router, 2))
    })
}

/// Carries bytes until the ROUTER knows the peer. Returns the events of the DEALER.
fn until_introduced(dealer: &mut Connection, router: &mut Connection) -> Vec<Seen> {
    let mut at_dealer = Vec::new();
    loop {
        let said = drain(dealer);
        assert_eq!(router.receive(&said), said.len());
        loop {
            match router.poll_event(start()).unwrap() {
                Some(Event::Introduced(_)) => {
                    at_dealer.extend(feed(dealer, &drain(router)));
                    return at_dealer;
                }
                Some(Event::Authenticate(_)) => router.accept().unwrap(),
                Some(other) => panic!("{other:?} before anybody was introduced"),
                None => break,
            }
        }
        at_dealer.extend(feed(dealer, &drain(router)));
    }
}

/// Shows: M2
#[test]
fn both_sides_learn_who_the_other_is_if_one_asks_first() {
    let identity = || Some(Bytes::from("worker-1"));
    for (name, mut dealer, mut router) in everybody() {
        let (at_dealer, at_router) = exchange(&mut dealer, &mut router);
        assert_eq!(at_dealer, [Seen::Ready(SocketType::Router, None)], "{name}");
        let expected = [Seen::Introduced(SocketType::Dealer, identity()), Seen::Ready(SocketType::Dealer, identity())];
        assert_eq!(at_router[at_router.len() - 2..], expected, "{name}");
    }
}

/// Shows: M2
#[test]
fn a_peer_that_is_not_accepted_yet_cannot_send() {
    for (name, mut dealer, mut router) in everybody() {
        assert_eq!(until_introduced(&mut dealer, &mut router), [], "{name}");
        assert!(dealer.send("hello".into()).unwrap_err().is_misuse(), "{name}");
        assert!(router.send("hello".into()).unwrap_err().is_misuse(), "{name}");
        router.accept().unwrap();
        assert!(matches!(feed(&mut router, &[])[..], [Seen::Ready(..)]), "{name}");
        assert_eq!(feed(&mut dealer, &drain(&mut router)), [Seen::Ready(SocketType::Router, None)], "{name}");
    }
}

/// Shows: M2
#[test]
fn a_refused_peer_gets_the_reason_and_nothing_else() {
    for (name, mut dealer, mut router) in everybody() {
        until_introduced(&mut dealer, &mut router);
        router.refuse("no room").unwrap();
        let seen = feed(&mut dealer, &drain(&mut router));
        assert!(error(&seen).is_peer_error(), "{name}: {seen:?}");
        assert!(error(&seen).to_string().contains("no room"), "{name}: {seen:?}");
    }
}
