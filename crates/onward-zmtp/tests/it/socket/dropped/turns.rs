//! Requests, replies and proxies that wait, are woken, and are then dropped.

use futures_util::FutureExt;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Proxy, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket};
use tokio::task::yield_now;

use super::sends::{inproc, narrow};
use super::waiting::Waiting;
use crate::socket::support::events::{peers, until, within};

/// Shows: M5
#[tokio::test]
async fn a_request_that_waits_for_a_peer_and_is_dropped_when_one_comes_is_still_to_be_asked() {
    let mut req = ReqSocket::new();
    let endpoint = req.bind(&inproc()).await.unwrap();
    let waiting = Waiting::on(req.send("dropped"));
    let mut rep = RepSocket::new();
    rep.connect(&endpoint).unwrap();
    waiting.woken_and_dropped().await;
    assert!(within(req.recv()).await.unwrap_err().is_state());
    within(req.send("asked")).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["asked"]);
    rep.send("reply").await.unwrap();
    assert_eq!(within(req.recv()).await.unwrap().frames(), ["reply"]);
    assert!(rep.recv().now_or_never().is_none());
}

/// Shows: M5
#[tokio::test]
async fn a_request_to_a_full_peer_that_is_dropped_when_there_is_room_is_still_to_be_asked() {
    let mut req = ReqSocket::with_options(narrow().correlate());
    let mut router = RouterSocket::with_options(narrow());
    router.connect(req.bind(&inproc()).await.unwrap()).unwrap();
    peers(1, || req.statistics()).await;
    let mut asked = 0;
    until(|| {
        while req.send(asked.to_string()).now_or_never().is_some() {
            asked += 1;
        }
        router.statistics().incoming.messages == 1
    })
    .await;
    let waiting = Waiting::on(req.send("dropped"));
    let request = async |router: &mut RouterSocket| within(router.recv()).await.unwrap().frames()[3].clone();
    assert_eq!(request(&mut router).await, "0");
    waiting.woken_and_dropped().await;
    let asking = async { within(req.send("last")).await.unwrap() };
    let expecting = async {
        for number in 1..asked {
            assert_eq!(request(&mut router).await, number.to_string());
        }
        assert_eq!(request(&mut router).await, "last");
    };
    tokio::join!(asking, expecting);
    assert!(router.try_recv().is_none());
}

/// Replies to the next request of a DEALER with `number`, or to an earlier request that is still
/// open.
fn reply(rep: &mut RepSocket, number: u32) -> bool {
    let _ = rep.recv().now_or_never();
    rep.send(number.to_string()).now_or_never().is_some_and(|sent| sent.is_ok())
}

/// Shows: M5
#[tokio::test]
async fn a_reply_to_a_full_peer_that_is_dropped_when_there_is_room_is_still_to_be_given() {
    let mut rep = RepSocket::with_options(narrow());
    let mut dealer = DealerSocket::with_options(
        SocketOptions::new().receive_high_water_mark(onward_zmtp::socket::HighWaterMark::messages(1)),
    );
    dealer.connect(rep.bind(&inproc()).await.unwrap()).unwrap();
    for _ in 0..10 {
        dealer.send(Message::from_iter(["", "request"])).await.unwrap();
    }
    let mut given = 0;
    until(|| {
        while reply(&mut rep, given) {
            given += 1;
        }
        // A request is open when only the full queue to the peer is in the way.
        let is_at_hand = rep.recv().now_or_never().is_some_and(|received| received.is_err());
        is_at_hand && dealer.statistics().incoming.messages == 1
    })
    .await;
    let waiting = Waiting::on(rep.send("dropped"));
    let received = async |dealer: &mut DealerSocket| within(dealer.recv()).await.unwrap().frames()[1].clone();
    assert_eq!(received(&mut dealer).await, "0");
    waiting.woken_and_dropped().await;
    assert!(within(rep.recv()).await.unwrap_err().is_state());
    let giving = async { within(rep.send("given")).await.unwrap() };
    let hearing = async {
        for number in 1..given {
            assert_eq!(received(&mut dealer).await, number.to_string());
        }
        assert_eq!(received(&mut dealer).await, "given");
    };
    tokio::join!(giving, hearing);
    assert!(dealer.try_recv().is_none());
}

/// Each poll of the proxy takes messages, and holds one for which there is no room.
///
/// Shows: M5
#[tokio::test]
async fn a_proxy_that_is_dropped_whenever_it_is_woken_and_run_again_loses_nothing() {
    const MESSAGES: u32 = 200;
    let (mut front, mut back) = (PullSocket::with_options(narrow()), PushSocket::with_options(narrow()));
    let (mut push, mut pull) = (PushSocket::with_options(narrow()), PullSocket::with_options(narrow()));
    push.connect(front.bind(&inproc()).await.unwrap()).unwrap();
    pull.connect(back.bind(&inproc()).await.unwrap()).unwrap();
    peers(1, || back.statistics()).await;
    let mut proxy = Proxy::new(&mut front, &mut back);
    let (mut sent, mut received) = (0, 0);
    within(async {
        while received < MESSAGES {
            let waiting = Waiting::on(proxy.run());
            until(|| {
                while sent < MESSAGES && push.try_send(sent.to_string()).is_ok() {
                    sent += 1;
                }
                if let Some(message) = pull.try_recv() {
                    assert_eq!(message.frames(), [received.to_string()]);
                    received += 1;
                }
                waiting.is_woken() || received == MESSAGES
            })
            .await;
            // The proxy may wake itself, so other tasks get a turn.
            yield_now().await;
        }
    })
    .await;
    assert!(pull.try_recv().is_none());
}
