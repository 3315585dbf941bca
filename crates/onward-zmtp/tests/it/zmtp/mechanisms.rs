//! Tests of two connections of this crate with each other.

use bytes::Bytes;
use onward_zmtp::protocol::{Event, Identity, Options, Password, Security, SocketType};

use super::link::{Seen, connection, drain, exchange, feed, keys, mechanisms, message, pair, start};

fn both(client: Security, server: Security) -> (Options, Options) {
    let dealer = Options::new(SocketType::Dealer).identity(Identity::new("worker-1").unwrap()).security(client);
    (dealer, Options::new(SocketType::Router).security(server))
}

/// Shows: M2
#[test]
fn both_sides_learn_who_the_other_is_over_every_mechanism() {
    for (name, client, server) in mechanisms() {
        let (dealer, router) = both(client, server);
        let (mut dealer, mut router) = (connection(dealer, 1), connection(router, 2));
        let (at_dealer, at_router) = exchange(&mut dealer, &mut router);
        assert_eq!(at_dealer.last(), Some(&Seen::Ready(SocketType::Router, None)), "{name}");
        let identity = Some(Bytes::from("worker-1"));
        assert_eq!(at_router.last(), Some(&Seen::Ready(SocketType::Dealer, identity)), "{name}");
    }
}

/// Shows: M2
#[test]
fn messages_of_every_shape_arrive_as_they_were_sent_over_every_mechanism() {
    let large = vec![7; 64 * 1024];
    let shapes: [&[&[u8]]; 7] =
        [&[b""], &[b"x"], &[&large[..255]], &[&large[..256]], &[&large], &[b"", b"a", &large, b""], &[b"end"]];
    for (name, client, server) in mechanisms() {
        let (dealer, router) = both(client, server);
        let (mut dealer, mut router) = pair(dealer, router);
        for shape in shapes {
            dealer.send(message(shape)).unwrap();
            router.send(message(shape)).unwrap();
        }
        let expected: Vec<Seen> =
            shapes.iter().map(|shape| Seen::Message(message(shape).into_iter().collect())).collect();
        let (at_dealer, at_router) = exchange(&mut dealer, &mut router);
        assert_eq!(at_dealer, expected, "{name}");
        assert_eq!(at_router, expected, "{name}");
    }
}

/// Shows: M2
#[test]
fn the_server_is_asked_about_credentials_before_anything_else() {
    for (name, client, server) in mechanisms().into_iter().skip(1) {
        let (dealer, router) = both(client, server);
        let (mut dealer, mut router) = (connection(dealer, 1), connection(router, 2));
        let (_, at_router) = exchange(&mut dealer, &mut router);
        let expected = match name {
            "PLAIN" => Seen::Plain(Bytes::from("ali")),
            _ => Seen::Curve(keys(7).public().to_string()),
        };
        assert_eq!(at_router[0], expected);
        assert_eq!(at_router.len(), 2);
    }
}

/// Shows: M2
#[test]
fn a_refused_client_gets_the_reason_and_no_further() {
    for (name, client, server) in mechanisms().into_iter().skip(1) {
        let (dealer, router) = both(client, server);
        let (mut dealer, mut router) = (connection(dealer, 1), connection(router, 2));
        loop {
            feed(&mut dealer, &drain(&mut router));
            let bytes = drain(&mut dealer);
            assert_eq!(router.receive(&bytes), bytes.len());
            if let Some(Event::Authenticate(_)) = router.poll_event(start()).unwrap() {
                break;
            }
        }
        assert!(!router.wants_read(), "{name}: it reads on while the peer is not accepted");
        router.refuse("400").unwrap();
        assert!(router.poll_event(start()).unwrap_err().is_refused(), "{name}");
        let seen = feed(&mut dealer, &drain(&mut router));
        assert!(
            matches!(&seen[..], [Seen::Error(error)] if error.is_peer_error() && error.to_string().contains("400"))
        );
    }
}

#[test]
fn a_message_before_the_handshake_is_done_is_refused_and_the_connection_stays() {
    let mut dealer = connection(Options::new(SocketType::Dealer), 1);
    assert!(dealer.send(message(&[b"early"])).unwrap_err().is_misuse());
    let mut router = connection(Options::new(SocketType::Router), 2);
    exchange(&mut dealer, &mut router);
    dealer.send(message(&[b"now"])).unwrap();
}

#[test]
fn a_message_without_a_frame_is_refused() {
    let (mut dealer, _router) = pair(Options::new(SocketType::Dealer), Options::new(SocketType::Router));
    assert!(dealer.send(message(&[])).unwrap_err().is_misuse());
}

#[test]
fn there_is_nothing_to_accept_without_a_request() {
    let (mut dealer, _router) = pair(Options::new(SocketType::Dealer), Options::new(SocketType::Router));
    assert!(dealer.accept().unwrap_err().is_misuse());
    assert!(dealer.refuse("400").unwrap_err().is_misuse());
}

#[test]
fn a_password_is_compared_as_a_whole() {
    let password = Password::new("open sesame").unwrap();
    assert!(password.is(b"open sesame"));
    assert!(!password.is(b"open sesam"));
    assert!(!password.is(b""));
}

/// Shows: M2
#[test]
fn secrets_are_in_no_debug_output() {
    let secret = keys(7).secret().to_z85().to_string();
    for (_, client, server) in mechanisms() {
        let (dealer, router) = both(client, server);
        let shown = format!("{dealer:?} {router:?}");
        let (dealer, router) = (connection(dealer, 1), connection(router, 2));
        let shown = format!("{shown} {dealer:?} {router:?}");
        assert!(!shown.contains("open sesame") && !shown.contains(&secret));
        assert!(!shown.contains("7, 7, 7, 7"), "{shown}");
    }
}
