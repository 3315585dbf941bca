//! The traffic in each combination of the matrix, for any program at the other end.

use std::fmt::Debug;

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{self, Receives, Sends};
use onward_zmtp::{Socket, SubSocket, XsubSocket};
use tokio::task::block_in_place;
use tokio::time::{Duration, interval};

use super::field::Field;
use super::shapes::{digest, digests, enveloped, shapes, topical, topical_digests};
use crate::socket::support::events::{peers, within};
use crate::zmtp::peer::{Others, Peer};

/// Sends every shape behind an envelope, and checks that each comes back.
pub(super) async fn come_back<T: Sends + Receives>(others: Option<Others>, kind: &str, envelope: &[&'static str]) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut socket, _peer) = field.meet::<T>(&mut others, kind).await;
        if !envelope.is_empty() {
            // A ROUTER cannot address the peer before it is connected.
            peers(1, || socket.statistics()).await;
        }
        for shape in shapes().into_iter().map(|shape| enveloped(envelope, shape)) {
            within(socket.send(shape.clone())).await.unwrap();
            assert!(within(socket.recv()).await.unwrap() == shape, "{kind} {field:?}: {}", digest(&shape));
        }
    }
}

/// Sends a request of every shape, and checks that the reply is the same.
pub(super) async fn be_answered(others: Option<Others>, kind: &str) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut req, _peer) = field.meet::<kind::Req>(&mut others, kind).await;
        for shape in shapes() {
            within(req.send(shape.clone())).await.unwrap();
            assert!(within(req.recv()).await.unwrap() == shape, "{kind} {field:?}: {}", digest(&shape));
        }
    }
}

/// Replies to a request of every shape with itself.
pub(super) async fn reply(others: Option<Others>, kind: &str) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut rep, peer) = field.meet::<kind::Rep>(&mut others, kind).await;
        for shape in shapes() {
            let request = within(rep.recv()).await.unwrap();
            assert!(request == shape, "{kind} {field:?}: {}", digest(&request));
            rep.send(request).await.unwrap();
        }
        assert_eq!(block_in_place(|| peer.line()), "done", "{kind} {field:?}");
    }
}

/// Sends every message back, with the envelope of its shape.
pub(super) async fn send_back<T: Sends + Receives>(others: Option<Others>, kind: &str) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut socket, peer) = field.meet::<T>(&mut others, kind).await;
        all_back(&mut socket, peer, (kind, field)).await;
    }
}

/// Sends every message back, for a ROUTER that must be greeted first.
pub(super) async fn greet_and_send_back(others: Option<Others>, kind: &str) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut router, peer) = field.meet::<kind::Router>(&mut others, kind).await;
        peers(1, || router.statistics()).await;
        router.send(Message::from_iter(["theirs", "hello"])).await.unwrap();
        all_back(&mut router, peer, (kind, field)).await;
    }
}

async fn all_back<T: Sends + Receives>(socket: &mut Socket<T>, peer: &Peer, place: impl Debug) {
    for shape in shapes() {
        let request = within(socket.recv()).await.unwrap();
        assert!(request.frames().ends_with(shape.frames()), "{place:?}: {}", digest(&request));
        socket.send(request).await.unwrap();
    }
    assert_eq!(block_in_place(|| peer.line()), "done", "{place:?}");
}

/// Sends every shape to a peer that prints what arrived.
pub(super) async fn push(others: Option<Others>) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut push, peer) = field.meet::<kind::Push>(&mut others, "digest-pull").await;
        for (shape, digest) in shapes().into_iter().zip(digests()) {
            within(push.send(shape)).await.unwrap();
            assert_eq!(block_in_place(|| peer.line()), *digest, "{field:?}");
        }
    }
}

/// Receives every shape.
pub(super) async fn pull(others: Option<Others>) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut pull, _peer) = field.meet::<kind::Pull>(&mut others, "send-push").await;
        for shape in shapes() {
            assert!(within(pull.recv()).await.unwrap() == shape, "{field:?}: {}", digest(&shape));
        }
    }
}

/// Publishes until the first message arrives, because a publisher does not know when a subscription
/// does. Then publishes every shape.
pub(super) async fn publish<T: Sends>(others: Option<Others>, kind: &str) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut publisher, peer) = field.meet::<T>(&mut others, kind).await;
        let ping = topical(Message::from("ping"));
        within(async {
            while peer.try_line().is_none() {
                publisher.send(ping.clone()).await.unwrap();
                publisher.send("nobody wants this").await.unwrap();
                tokio::task::yield_now().await;
            }
        })
        .await;
        let is_ping = digest(&ping);
        for (shape, digest) in shapes().into_iter().map(topical).zip(topical_digests()) {
            within(publisher.send(shape)).await.unwrap();
            let arrived = block_in_place(|| std::iter::repeat_with(|| peer.line()).find(|line| *line != is_ping));
            assert_eq!(arrived.as_ref(), Some(digest), "{kind} {field:?}");
        }
    }
}

/// Lets the other end publish until the first message arrives, then every shape.
pub(super) async fn receive_published<T: Receives>(
    others: Option<Others>,
    kind: &str,
    subscribe: impl AsyncFn(&mut Socket<T>),
) {
    let Some(mut others) = others else { return };
    for field in Field::all(&others) {
        let (mut subscriber, peer) = field.meet::<T>(&mut others, kind).await;
        subscribe(&mut subscriber).await;
        let ping = topical(Message::from("ping"));
        assert_eq!(first_received(&mut subscriber, peer).await, ping);
        peer.write_line("go");
        for shape in shapes().into_iter().map(topical) {
            let mut arrived = within(subscriber.recv()).await.unwrap();
            while arrived == ping {
                arrived = within(subscriber.recv()).await.unwrap();
            }
            assert!(arrived == shape, "{kind} {field:?}: {}", digest(&shape));
        }
    }
}

/// Subscribes as a SUB does.
pub(super) async fn subscribe(sub: &mut SubSocket) {
    sub.subscribe("shape").unwrap();
}

/// Subscribes as only an XSUB does.
pub(super) async fn subscribe_by_message(xsub: &mut XsubSocket) {
    xsub.send(&b"\x01shape"[..]).await.unwrap();
}

async fn first_received<T: Receives>(subscriber: &mut Socket<T>, peer: &mut Peer) -> Message {
    let mut ticks = interval(Duration::from_millis(1));
    within(async {
        loop {
            tokio::select! {
                message = subscriber.recv() => return message.unwrap(),
                _ = ticks.tick() => peer.write_line("ping"),
            }
        }
    })
    .await
}
