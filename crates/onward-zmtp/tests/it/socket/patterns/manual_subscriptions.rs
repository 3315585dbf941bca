//! Publishers that decide on each subscription.

use onward_zmtp::socket::SocketOptions;
use onward_zmtp::{SubSocket, XpubSocket};

use crate::socket::support::events::{peers, within};

fn manual() -> XpubSocket {
    XpubSocket::with_options(SocketOptions::new().manual())
}

/// The equivalent of libzmq's `ZMQ_XPUB_MANUAL`.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_gets_the_topics_that_the_publisher_chose_for_it() {
    for endpoint in ["tcp://127.0.0.1:*", "inproc://chooses"] {
        let mut publisher = manual();
        let endpoint = publisher.bind(endpoint).await.unwrap();
        let (mut guest, mut member) = (SubSocket::new(), SubSocket::new());
        for sub in [&guest, &member] {
            sub.connect(&endpoint).unwrap();
            sub.subscribe("news").unwrap();
            peers(1, || sub.statistics()).await;
        }
        let mut topics = ["news/public", "news"].into_iter();
        let mut guests = Vec::new();
        for topic in &mut topics {
            let (message, peer) = within(publisher.recv_with_peer()).await.unwrap();
            assert_eq!(message.frames(), ["\u{1}news"]);
            assert!(publisher.subscribe_peer(&peer, topic).unwrap());
            guests.push(peer);
        }
        publisher.send("news/secret").await.unwrap();
        publisher.send("news/public").await.unwrap();
        let mut received = vec![within(guest.recv()).await.unwrap(), within(member.recv()).await.unwrap()];
        received.extend(
            within(async {
                tokio::select! { one = guest.recv() => one, other = member.recv() => other }
            })
            .await,
        );
        let secrets = received.iter().filter(|message| message.frames() == ["news/secret"]).count();
        assert_eq!((received.len(), secrets), (3, 1));
        assert!(publisher.cancel_peer(&guests[0], "news/public").unwrap());
        publisher.send("news/public").await.unwrap();
        within(async {
            tokio::select! { one = guest.recv() => one, other = member.recv() => other }
        })
        .await
        .unwrap();
        assert!(guest.try_recv().is_none() && member.try_recv().is_none());
    }
}

/// Shows: M3
#[tokio::test]
async fn every_subscription_and_cancellation_is_received_and_none_has_an_effect_by_itself() {
    let mut publisher = manual();
    let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut sub = SubSocket::new();
    sub.connect(&endpoint).unwrap();
    sub.subscribe("a").unwrap();
    sub.subscribe("b").unwrap();
    for _ in 0..2 {
        within(publisher.recv()).await.unwrap();
    }
    sub.cancel("b");
    let (message, peer) = within(publisher.recv_with_peer()).await.unwrap();
    assert_eq!(message.frames(), ["\0b"]);
    publisher.send("a").await.unwrap();
    publisher.subscribe_peer(&peer, "a").unwrap();
    publisher.send("a, too").await.unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["a, too"]);
    drop(sub);
    peers(0, || publisher.statistics()).await;
    assert!(!publisher.subscribe_peer(&peer, "a").unwrap());
    assert!(XpubSocket::new().subscribe_peer(&peer, "a").unwrap_err().is_misuse());
}
