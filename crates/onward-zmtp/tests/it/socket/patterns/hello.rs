//! The hello message, which every peer gets before all others.

use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::{HighWaterMark, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket, SubSocket, XpubSocket};

use crate::socket::support::events::{peers, within};

fn greets(message: impl Into<Message>) -> SocketOptions {
    SocketOptions::new().hello(message)
}

/// Shows: M3
#[tokio::test]
async fn every_peer_is_greeted_before_it_gets_anything_else() {
    for endpoint in ["tcp://127.0.0.1:*", "inproc://greets"] {
        let narrow = HighWaterMark::messages(1);
        let mut push = PushSocket::with_options(greets(Message::from_iter(["hello", ""])).send_high_water_mark(narrow));
        let endpoint = push.bind(endpoint).await.unwrap();
        for _ in 0..3 {
            let mut pull = PullSocket::new();
            pull.connect(&endpoint).unwrap();
            within(push.send("work")).await.unwrap();
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello", ""]);
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
            drop(pull);
            peers(0, || push.statistics()).await;
        }
    }
}

/// Shows: M3
#[tokio::test]
async fn a_greeting_comes_before_what_waited_for_the_peer() {
    let mut push = PushSocket::with_options(greets("hello"));
    push.connect("inproc://greets-late").unwrap();
    push.send("waited").await.unwrap();
    let mut pull = PullSocket::new();
    pull.bind("inproc://greets-late").await.unwrap();
    for expected in ["hello", "waited"] {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [expected]);
    }
}

/// The equivalent of libzmq's `ZMQ_PROBE_ROUTER`.
///
/// Shows: M3
#[tokio::test]
async fn a_router_learns_of_a_peer_that_greets_it() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let dealer = DealerSocket::with_options(greets("").identity(Identity::new("quiet").unwrap()));
    dealer.connect(&endpoint).unwrap();
    assert_eq!(within(router.recv()).await.unwrap().frames(), ["quiet", ""]);
}

/// The equivalent of libzmq's `ZMQ_XPUB_WELCOME_MSG`.
///
/// Shows: M3
#[tokio::test]
async fn a_subscriber_gets_the_greeting_of_its_topic() {
    let publisher = XpubSocket::with_options(greets("welcome to all"));
    let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut sub = SubSocket::new();
    sub.subscribe("welcome").unwrap();
    sub.connect(&endpoint).unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["welcome to all"]);
    let mut deaf = SubSocket::new();
    deaf.connect(&endpoint).unwrap();
    peers(2, || publisher.statistics()).await;
    assert!(deaf.try_recv().is_none());
}

/// Shows: M3
#[tokio::test]
async fn a_greeting_that_a_peer_did_not_get_goes_to_no_other() {
    let mut push = PushSocket::with_options(greets("hello"));
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    for _ in 0..5 {
        let pull = PullSocket::new();
        pull.connect(&endpoint).unwrap();
        peers(1, || push.statistics()).await;
        drop(pull);
        peers(0, || push.statistics()).await;
    }
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    within(push.send("work")).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello"]);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
    assert_eq!(push.statistics().outgoing.messages, 0);
}

/// Shows: M3
#[tokio::test]
async fn a_greeting_that_could_not_be_sent_is_refused_before_a_peer_is_greeted() {
    for hello in [Message::new(), Message::from_iter(std::iter::repeat_n("part", 1025))] {
        let push = PushSocket::with_options(greets(hello));
        push.connect("tcp://127.0.0.1:1").unwrap_err();
    }
}
