//! Tests of many peers that share one high-water mark.

use onward_zmtp::socket::bounds::READ_AHEAD_MESSAGES;
use onward_zmtp::{PullSocket, PushSocket};

use crate::socket::support::events::{peers, until, within};

/// The number of peers. A high-water mark of 1000 messages divided by it is less than the minimum
/// for each.
const PEERS: usize = 20;
/// The number of messages of each peer, which is more than its share.
const EACH: usize = 500;

async fn connected() -> (PullSocket, Vec<PushSocket>) {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let pushes: Vec<_> = std::iter::repeat_with(PushSocket::new).take(PEERS).collect();
    for (index, push) in pushes.iter().enumerate() {
        push.connect(&endpoint).unwrap();
        peers(index + 1, || pull.statistics()).await;
    }
    (pull, pushes)
}

/// Shows: M5
#[tokio::test]
async fn each_of_many_peers_is_read_ahead_no_further_than_its_quota_and_nothing_is_lost() {
    let (mut pull, mut pushes) = connected().await;
    for push in &mut pushes {
        for _ in 0..EACH {
            within(push.send("x")).await.unwrap();
        }
    }
    // With a larger share, the count would exceed this number.
    until(|| pull.statistics().incoming.messages == PEERS * READ_AHEAD_MESSAGES).await;
    for _ in 0..PEERS * EACH {
        within(pull.recv()).await.unwrap();
    }
    assert!(pull.try_recv().is_none());
}

/// Shows: M5
#[tokio::test]
async fn a_lone_peer_is_read_ahead_further_without_a_receiver() {
    let (pull, mut pushes) = connected().await;
    let mut last = pushes.pop().unwrap();
    for _ in 0..EACH {
        within(last.send("x")).await.unwrap();
    }
    until(|| pull.statistics().incoming.messages == READ_AHEAD_MESSAGES).await;
    drop(pushes);
    until(|| pull.statistics().incoming.messages == EACH).await;
}
