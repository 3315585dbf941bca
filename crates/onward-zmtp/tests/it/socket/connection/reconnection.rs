//! Sockets of every type whose peer closes and is replaced, each in the role of the one that
//! connects.

use std::time::Duration;

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{
    Dealer, Kind, Pair, Pub, Pull, Push, Receives, Rep, Req, Router, Sends, Subscribes, Xpub,
};
use onward_zmtp::socket::{Reconnect, Socket, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket, XsubSocket};

use crate::socket::support::events::{connected, disconnected, until, within};

/// The number of times that the peer closes.
const ROUNDS: u32 = 3;

/// Connects a socket of the first type to one of the second and runs `talk`. Then replaces the
/// second, again and again. Does so over every transport of the system.
async fn comes_back<C: Kind, L: Kind>(talk: impl AsyncFn(&mut Socket<C>, &mut Socket<L>, Message)) {
    let directory = tempfile::tempdir().unwrap();
    let path = format!("ipc://{}", directory.path().join("listener").display());
    let name = format!("ipc://@{}", directory.path().display());
    for endpoint in ["tcp://127.0.0.1:*", &path, &name] {
        comes_back_over(endpoint, &talk).await;
    }
}

async fn comes_back_over<C: Kind, L: Kind>(
    endpoint: &str,
    talk: &impl AsyncFn(&mut Socket<C>, &mut Socket<L>, Message),
) {
    let mut listener = Socket::<L>::new();
    let endpoint = listener.bind(endpoint).await.unwrap();
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut connector = Socket::<C>::with_options(SocketOptions::new().reconnect(reconnect));
    let mut monitor = connector.monitor();
    connector.connect(&endpoint).unwrap();
    for round in 0..ROUNDS {
        connected(&mut monitor).await;
        within(talk(&mut connector, &mut listener, Message::from(format!("round {round}")))).await;
        drop(listener);
        disconnected(&mut monitor).await;
        listener = Socket::new();
        within(async {
            while listener.bind(&endpoint).await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

async fn one_way<S: Sends, R: Receives>(sender: &mut Socket<S>, receiver: &mut Socket<R>, message: Message) {
    sender.send(message.clone()).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), message);
}

async fn there_and_back(dealer: &mut Socket<Dealer>, router: &mut RouterSocket, message: Message) {
    dealer.send(message.clone()).await.unwrap();
    let request = router.recv().await.unwrap();
    router.send(request).await.unwrap();
    assert_eq!(dealer.recv().await.unwrap(), message);
}

async fn request_and_reply(req: &mut ReqSocket, rep: &mut RepSocket, message: Message) {
    req.send(message.clone()).await.unwrap();
    let request = rep.recv().await.unwrap();
    rep.send(request).await.unwrap();
    assert_eq!(req.recv().await.unwrap(), message);
}

/// Publishes the same message until it arrives, because a PUB is not notified of subscriptions.
async fn publication<S: Subscribes + Receives>(
    publisher: &mut Socket<Pub>,
    subscriber: &mut Socket<S>,
    message: Message,
) {
    subscriber.subscribe("round").unwrap();
    until(|| {
        publisher.try_send(message.clone()).unwrap();
        std::iter::from_fn(|| subscriber.try_recv()).any(|received| received == message)
    })
    .await;
}

async fn publication_to_who_is_seen<S: Subscribes + Receives>(
    publisher: &mut Socket<Xpub>,
    subscriber: &mut Socket<S>,
    message: Message,
) {
    subscriber.subscribe("round").unwrap();
    while publisher.recv().await.unwrap().frames() != ["\u{1}round"] {}
    one_way(publisher, subscriber, message).await;
}

/// Shows: M3
#[tokio::test]
async fn push_and_pull_find_their_peer_again() {
    comes_back(one_way::<Push, Pull>).await;
    comes_back(async |pull: &mut PullSocket, push: &mut PushSocket, message| one_way(push, pull, message).await).await;
}

/// Shows: M3
#[tokio::test]
async fn dealer_and_router_find_their_peer_again() {
    comes_back(there_and_back).await;
    comes_back(async |router: &mut Socket<Router>, dealer: &mut Socket<Dealer>, message| {
        there_and_back(dealer, router, message).await;
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn req_and_rep_find_their_peer_again() {
    comes_back(request_and_reply).await;
    comes_back(async |rep: &mut Socket<Rep>, req: &mut Socket<Req>, message| {
        request_and_reply(req, rep, message).await;
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn publishers_find_their_subscribers_again() {
    comes_back(async |publisher, subscriber: &mut SubSocket, message| {
        publication(publisher, subscriber, message).await
    })
    .await;
    comes_back(async |publisher, subscriber: &mut XsubSocket, message| {
        publication_to_who_is_seen(publisher, subscriber, message).await;
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn subscribers_find_their_publishers_again() {
    comes_back(async |subscriber: &mut SubSocket, publisher, message| {
        publication(publisher, subscriber, message).await
    })
    .await;
    comes_back(async |subscriber: &mut XsubSocket, publisher, message| {
        publication_to_who_is_seen(publisher, subscriber, message).await;
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn pair_finds_its_peer_again() {
    comes_back(async |one: &mut Socket<Pair>, other: &mut Socket<Pair>, message: Message| {
        one_way(one, other, message.clone()).await;
        one_way(other, one, message).await;
    })
    .await;
}
