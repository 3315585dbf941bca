//! Tests of subscriptions in both forms.

use bytes::Bytes;
use onward_zmtp::protocol::{Connection, Options, SocketType};

use super::link::{Seen, command, drain, exchange, feed, frame, introduced, introduced_to, mechanisms, message, pair};

fn publisher() -> Connection {
    introduced(Options::new(SocketType::Xpub), "SUB")
}

fn matches(publisher: &Connection, frame: &[u8]) -> bool {
    publisher.subscriptions().unwrap().matches(frame)
}

/// Shows: M2
#[test]
fn a_subscription_is_understood_as_command_and_as_message() {
    let topic = Bytes::from("news");
    let forms =
        [(command("SUBSCRIBE", b"news"), command("CANCEL", b"news")), (frame(0, b"\x01news"), frame(0, b"\x00news"))];
    for (subscribe, cancel) in forms {
        let mut publisher = publisher();
        assert_eq!(feed(&mut publisher, &subscribe), [Seen::Subscribe(topic.clone())]);
        assert!(matches(&publisher, b"news of today") && matches(&publisher, b"news"));
        assert!(!matches(&publisher, b"new") && !matches(&publisher, b"other"));
        assert_eq!(feed(&mut publisher, &cancel), [Seen::Cancel(topic.clone())]);
        assert!(!matches(&publisher, b"news"));
    }
}

/// Shows: M2
#[test]
fn a_subscriber_uses_the_form_that_the_peer_knows() {
    let mut new = introduced_to(Options::new(SocketType::Sub), "PUB", 1);
    new.subscribe(b"t").unwrap();
    new.cancel(b"t").unwrap();
    assert_eq!(drain(&mut new), [command("SUBSCRIBE", b"t"), command("CANCEL", b"t")].concat());
    let mut old = introduced_to(Options::new(SocketType::Sub), "PUB", 0);
    old.subscribe(b"t").unwrap();
    old.cancel(b"t").unwrap();
    assert_eq!(drain(&mut old), [frame(0, b"\x01t"), frame(0, b"\x00t")].concat());
}

/// Shows: M2
#[test]
fn two_subscriptions_need_two_cancellations() {
    let mut publisher = publisher();
    feed(&mut publisher, &frame(0, b"\x01a").repeat(2));
    feed(&mut publisher, &frame(0, b"\x00a"));
    assert!(matches(&publisher, b"a"));
    feed(&mut publisher, &frame(0, b"\x00a"));
    assert!(!matches(&publisher, b"a"));
    assert!(publisher.subscriptions().unwrap().is_empty());
}

/// Shows: M2
#[test]
fn a_cancellation_of_what_is_not_there_is_nothing() {
    let mut publisher = publisher();
    assert_eq!(feed(&mut publisher, &frame(0, b"\x00a")), []);
}

/// Shows: M2
#[test]
fn the_empty_topic_matches_everything() {
    let mut publisher = publisher();
    assert!(!matches(&publisher, b""));
    feed(&mut publisher, &command("SUBSCRIBE", b""));
    assert!(matches(&publisher, b"") && matches(&publisher, b"anything"));
}

/// Shows: M2
#[test]
fn other_messages_of_a_subscriber_are_messages() {
    let mut publisher = publisher();
    let bytes = [frame(0, b"\x02x"), frame(0, b""), frame(1, b"\x01x"), frame(0, b"y")].concat();
    let expected = [vec!["\x02x"], vec![""], vec!["\x01x", "y"]];
    let expected = expected.map(|frames| Seen::Message(frames.into_iter().map(Bytes::from).collect()));
    assert_eq!(feed(&mut publisher, &bytes), expected);
}

/// Shows: M2
#[test]
fn a_socket_without_subscribers_takes_the_old_form_for_a_message() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    assert_eq!(feed(&mut pull, &frame(0, b"\x01x")), [Seen::Message(vec![Bytes::from("\x01x")])]);
}

/// Shows: M2
#[test]
fn only_subscribers_subscribe() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    assert!(push.subscribe(b"t").unwrap_err().is_misuse());
    let mut sub = introduced(Options::new(SocketType::Sub), "PUB");
    assert!(sub.subscribe(&[0; 1025]).unwrap_err().is_misuse());
}

/// Shows: M2
#[test]
fn subscriptions_and_publications_travel_over_every_mechanism() {
    for (name, client, server) in mechanisms() {
        let sub = Options::new(SocketType::Sub).security(client);
        let (mut sub, mut publisher) = pair(sub, Options::new(SocketType::Pub).security(server));
        sub.subscribe(b"a").unwrap();
        assert_eq!(exchange(&mut sub, &mut publisher).1, [Seen::Subscribe(Bytes::from("a"))], "{name}");
        publisher.send(message(&[b"abc"])).unwrap();
        assert_eq!(exchange(&mut sub, &mut publisher).0, [Seen::Message(vec![Bytes::from("abc")])], "{name}");
        sub.cancel(b"a").unwrap();
        assert_eq!(exchange(&mut sub, &mut publisher).1, [Seen::Cancel(Bytes::from("a"))], "{name}");
    }
}
