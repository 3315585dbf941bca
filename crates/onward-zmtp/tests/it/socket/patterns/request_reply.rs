//! REQ and REP.

use std::iter;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use onward_zmtp::protocol::{Identity, Limits, Message};
use onward_zmtp::socket::{Endpoint, SocketOptions};
use onward_zmtp::{DealerSocket, RepSocket, ReqSocket, RouterSocket};
use tokio::time::Instant;

use crate::socket::support::events::{peers, within};

async fn rep() -> (RepSocket, Endpoint) {
    let rep = RepSocket::new();
    let endpoint = rep.bind("tcp://127.0.0.1:*").await.unwrap();
    (rep, endpoint)
}

/// Shows: M3
#[tokio::test]
async fn a_request_is_answered() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    for round in ["one", "two"] {
        within(req.send(round)).await.unwrap();
        assert_eq!(within(rep.recv()).await.unwrap().frames(), [round]);
        within(rep.send(Message::from_iter(["re", round]))).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames(), ["re", round]);
    }
}

/// Shows: M3
#[tokio::test]
async fn request_and_reply_take_turns() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    assert!(req.recv().await.unwrap_err().is_state());
    assert!(rep.send("unasked").await.unwrap_err().is_state());
    within(req.send("request")).await.unwrap();
    assert!(req.send("another").await.unwrap_err().is_state());
    within(rep.recv()).await.unwrap();
    assert!(rep.recv().await.unwrap_err().is_state());
}

/// Shows: M3
#[tokio::test]
async fn requests_go_to_the_peers_in_turn() {
    let (mut one, first) = rep().await;
    let (mut two, second) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&first).unwrap();
    peers(1, || req.statistics()).await;
    req.connect(&second).unwrap();
    peers(2, || req.statistics()).await;
    for _ in 0..2 {
        for rep in [&mut one, &mut two] {
            within(req.send("request")).await.unwrap();
            within(rep.recv()).await.unwrap();
            within(rep.send("reply")).await.unwrap();
            within(req.recv()).await.unwrap();
        }
    }
}

/// Shows: M3
#[tokio::test]
async fn a_request_whose_peer_is_gone_can_be_asked_again() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    within(req.send("request")).await.unwrap();
    within(rep.recv()).await.unwrap();
    drop(rep);
    assert!(within(req.recv()).await.unwrap_err().is_gone());
    let mut rep = RepSocket::new();
    within(async {
        while rep.bind(&endpoint).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    within(req.send("again")).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["again"]);
}

/// Shows: M3
#[tokio::test]
async fn a_late_reply_is_not_taken_for_the_reply_to_another_request() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut req = ReqSocket::with_options(SocketOptions::new().correlate());
    req.connect(&endpoint).unwrap();
    within(req.send("first")).await.unwrap();
    let mut first = within(router.recv()).await.unwrap();
    within(req.send("second")).await.unwrap();
    let second = within(router.recv()).await.unwrap();
    first.push("late");
    router.send(first).await.unwrap();
    router.send(second).await.unwrap();
    assert_eq!(within(req.recv()).await.unwrap().frames(), ["second"]);
    assert_eq!(req.statistics().discarded, 1);
}

/// Shows: M3
#[tokio::test]
async fn an_envelope_of_many_frames_comes_back_as_it_was() {
    let (mut rep, endpoint) = rep().await;
    let mut dealer = DealerSocket::new();
    dealer.connect(&endpoint).unwrap();
    dealer.send(Message::from_iter(["a", "b", "", "request"])).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["request"]);
    rep.send("reply").await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["a", "b", "", "reply"]);
}

/// A search for the end of the envelope that moves every frame at each step takes minutes here.
///
/// Shows: M3
#[tokio::test]
async fn an_envelope_of_200_000_frames_takes_time_in_their_number() {
    let mut limits = Limits::default();
    limits.message_parts = 300_000;
    let options = SocketOptions::new().limits(limits);
    let (mut rep, mut dealer) = (RepSocket::with_options(options.clone()), DealerSocket::with_options(options));
    dealer.connect(rep.bind("inproc://many-frames").await.unwrap()).unwrap();
    let frames = iter::repeat_n("hop", 200_000).chain(["", "request"]);
    within(dealer.send(Message::from_iter(frames))).await.unwrap();
    let began = Instant::now();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["request"]);
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    within(rep.send("reply")).await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap().len(), 200_002);
}

#[tokio::test]
async fn a_request_without_an_envelope_is_discarded() {
    let (mut rep, endpoint) = rep().await;
    let mut dealer = DealerSocket::new();
    dealer.connect(&endpoint).unwrap();
    dealer.send("no envelope").await.unwrap();
    dealer.send(Message::from_iter(["", "request"])).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["request"]);
    assert_eq!(rep.statistics().discarded, 1);
}

#[tokio::test]
async fn a_reply_to_a_peer_that_is_gone_is_dropped_and_counted() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    within(req.send("request")).await.unwrap();
    within(rep.recv()).await.unwrap();
    drop(req);
    peers(0, || rep.statistics()).await;
    rep.send("reply").await.unwrap();
    assert_eq!(rep.statistics().dropped, 1);
}

/// Shows: M5
#[tokio::test]
async fn a_cancelled_wait_for_a_reply_can_be_resumed() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    within(req.send("request")).await.unwrap();
    let hurry = Duration::from_millis(5);
    assert!(tokio::time::timeout(hurry, req.recv()).await.is_err());
    within(rep.recv()).await.unwrap();
    rep.send("reply").await.unwrap();
    assert_eq!(within(req.recv()).await.unwrap().frames(), ["reply"]);
}

#[tokio::test]
async fn a_reply_may_have_empty_frames() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    within(req.send(Bytes::new())).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap(), Message::from(""));
    rep.send(Message::from_iter(["", ""])).await.unwrap();
    assert_eq!(within(req.recv()).await.unwrap().len(), 2);
}

/// libzmq queues the request for the next peer, which may never connect.
///
/// Shows: M3
#[tokio::test]
async fn a_request_waits_for_a_peer() {
    let mut req = ReqSocket::new();
    req.connect("tcp://127.0.0.1:1").unwrap();
    assert!(req.send("too early").now_or_never().is_none());
    assert_eq!(req.statistics().outgoing.messages, 0);
    let (mut rep, endpoint) = rep().await;
    req.connect(&endpoint).unwrap();
    within(req.send("in time")).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["in time"]);
}

/// Shows: M3
#[tokio::test]
async fn a_request_comes_with_the_peer_that_sent_it() {
    let (mut rep, endpoint) = rep().await;
    let mut req = ReqSocket::with_options(SocketOptions::new().identity(Identity::new("client").unwrap()));
    req.connect(&endpoint).unwrap();
    for round in ["one", "two"] {
        within(req.send(round)).await.unwrap();
        let (request, peer) = within(rep.recv_with_peer()).await.unwrap();
        assert_eq!(request.frames(), [round]);
        assert_eq!(peer.identity(), Some(&Identity::new("client").unwrap()));
        assert!(within(rep.recv_with_peer()).await.unwrap_err().is_state());
        within(rep.send("reply")).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames(), ["reply"]);
    }
}
