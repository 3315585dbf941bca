//! Tests of the unread backlog of ended connections.

use std::collections::HashMap;
use std::time::Duration;

use onward_zmtp::PullSocket;
use onward_zmtp::socket::{Endpoint, HighWaterMark, Reconnect, SocketOptions};

use crate::socket::support::events::{peers, until, within};
use crate::socket::support::raw::{Raw, accept, listen};
use crate::zmtp::link::frame;

/// The high-water mark: the number of messages that may be unread.
const HIGH_WATER_MARK: usize = 10;
/// The most that a connection can leave: one that has reached the high-water mark is not read to
/// its end.
const LEFT: usize = HIGH_WATER_MARK - 1;
/// The number of connections that each leave as much and end.
const CONNECTIONS: u8 = 20;

async fn pull(high_water_mark: HighWaterMark) -> (PullSocket, Endpoint) {
    let pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(high_water_mark));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    (pull, endpoint)
}

/// Runs connections one after the other, of which two leave more than the high-water mark. The rest
/// must wait, so their end is not noticed yet.
async fn come_and_go_all(pull: &PullSocket, endpoint: &Endpoint, count: usize, size: usize) {
    for connection in 0..CONNECTIONS {
        come_and_go(endpoint, connection, count, size).await;
        if connection < 2 {
            let unread = count * usize::from(connection + 1);
            until(|| pull.statistics().peers == 0 && pull.statistics().incoming.messages == unread).await;
        }
    }
    peers(usize::from(CONNECTIONS) - 2, || pull.statistics()).await;
}

/// Runs a connection that sends `count` messages of `size` bytes and ends. Each begins with the
/// numbers of the connection and of the message.
async fn come_and_go(endpoint: &Endpoint, connection: u8, count: usize, size: usize) {
    let mut raw = Raw::introduced(endpoint, "PUSH").await;
    raw.write(&messages(connection, count, size)).await;
}

fn messages(connection: u8, count: usize, size: usize) -> Vec<u8> {
    let body = |number: usize| [&[connection, number as u8][..], &vec![0; size - 2]].concat();
    (0..count).flat_map(|number| frame_of(&body(number))).collect()
}

fn frame_of(body: &[u8]) -> Vec<u8> {
    if body.len() < 256 { frame(0, body) } else { [&[2][..], &(body.len() as u64).to_be_bytes(), body].concat() }
}

/// Receives `count` messages. All messages of each connection must come, in their order.
async fn receive_all(pull: &mut PullSocket, count: usize) {
    let mut next: HashMap<u8, u8> = HashMap::new();
    for _ in 0..count {
        let message = within(pull.recv()).await.unwrap();
        let (connection, number) = (message.frames()[0][0], message.frames()[0][1]);
        let expected = next.entry(connection).or_default();
        assert_eq!(number, *expected, "of connection {connection}");
        *expected += 1;
    }
    assert!(pull.try_recv().is_none());
}

/// Shows: M3
#[tokio::test]
async fn all_that_connections_leave_unread_is_as_much_as_one_peer_may_and_the_rest_comes_later() {
    let (mut pull, endpoint) = pull(HighWaterMark::messages(HIGH_WATER_MARK)).await;
    come_and_go_all(&pull, &endpoint, LEFT, 2).await;
    assert_eq!(pull.statistics().incoming.messages, 2 * LEFT);
    receive_all(&mut pull, usize::from(CONNECTIONS) * LEFT).await;
    peers(0, || pull.statistics()).await;
    assert_eq!(pull.statistics().incoming.messages, 0);
}

/// Shows: M3
#[tokio::test]
async fn the_high_water_mark_in_bytes_holds_for_what_connections_leave_unread_too() {
    let (mut pull, endpoint) = pull(HighWaterMark { messages: 1000, bytes: 100_000 }).await;
    come_and_go_all(&pull, &endpoint, 3, 30_000).await;
    assert_eq!(pull.statistics().incoming.bytes, 2 * 90_000);
    receive_all(&mut pull, usize::from(CONNECTIONS) * 3).await;
}

/// Shows: M3
#[tokio::test]
async fn those_who_stay_connected_are_read_whatever_others_leave() {
    let (mut pull, endpoint) = pull(HighWaterMark::messages(HIGH_WATER_MARK)).await;
    let mut stays = Raw::introduced(&endpoint, "PUSH").await;
    stays.write(&frame(0, b"here")).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["here"]);
    assert!(pull.try_recv().is_none());
    for connection in 0..2 {
        come_and_go(&endpoint, connection, LEFT, 2).await;
        let unread = LEFT * usize::from(connection + 1);
        until(|| pull.statistics().peers == 1 && pull.statistics().incoming.messages == unread).await;
    }
    come_and_go(&endpoint, 2, LEFT, 2).await;
    peers(2, || pull.statistics()).await;
    stays.write(&frame(0, b"still here")).await;
    until(|| pull.statistics().incoming.messages == 2 * LEFT + 1).await;
    within(async { while pull.recv().await.unwrap().frames() != ["still here"] {} }).await;
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_comes_back_more_often_than_it_is_read_loses_nothing_and_keeps_its_order() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let options =
        SocketOptions::new().reconnect(reconnect).receive_high_water_mark(HighWaterMark::messages(HIGH_WATER_MARK));
    let mut pull = PullSocket::with_options(options);
    let (listener, endpoint) = listen().await;
    pull.connect(&endpoint).unwrap();
    let peer = tokio::spawn(async move {
        for connection in 0..CONNECTIONS {
            let mut raw = accept(&listener, "PUSH").await;
            raw.write(&messages(connection, LEFT, 2)).await;
        }
    });
    until(|| pull.statistics().incoming.messages == 2 * LEFT).await;
    for expected in 0..usize::from(CONNECTIONS) * LEFT {
        let message = within(pull.recv()).await.unwrap();
        assert_eq!(message.frames()[0], vec![(expected / LEFT) as u8, (expected % LEFT) as u8]);
    }
    within(peer).await.unwrap();
}
