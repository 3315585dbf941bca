//! Sends that are dropped when room appears: their message is not sent, and all others are, once
//! and in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, SinkExt};
use onward_zmtp::protocol::{Identity, Message, SocketType};
use onward_zmtp::socket::kind::{Dealer, Pair, Pub, Pull, Push, Receives, Router, Sends, Sub, Xpub, Xsub};
use onward_zmtp::socket::{HighWaterMark, Overflow, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket, Socket};

use super::waiting::Waiting;
use crate::socket::support::events::{peers, until, within};

/// Returns options with a high-water mark of one message each way.
pub(super) fn narrow() -> SocketOptions {
    let one = HighWaterMark::messages(1);
    SocketOptions::new().send_high_water_mark(one).receive_high_water_mark(one)
}

/// Returns an endpoint within the process, where only the queues of the two sockets hold messages.
pub(super) fn inproc() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("inproc://dropped-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn numbered(number: u32) -> Message {
    Message::from_iter([number.to_string(), "second frame".into()])
}

/// A sender, a slow peer, and others that are not slow.
struct Site<T, R> {
    sender: Socket<T>,
    slow: Socket<R>,
    others: Vec<Socket<R>>,
    /// The frame before the number in a message.
    envelope: Option<&'static str>,
}

impl<T: Sends, R: Receives> Site<T, R> {
    async fn new(options: SocketOptions, others: usize) -> Self {
        let sender = Socket::with_options(options);
        let endpoint = sender.bind(&inproc()).await.unwrap();
        let slow = Socket::with_options(narrow());
        let others: Vec<_> = std::iter::repeat_with(Socket::new).take(others).collect();
        for socket in others.iter().chain([&slow]) {
            socket.connect(&endpoint).unwrap();
        }
        peers(others.len() + 1, || sender.statistics()).await;
        Self { sender, slow, others, envelope: None }
    }

    fn message(&self, number: u32) -> Message {
        self.envelope.into_iter().map(String::from).chain([number.to_string(), "second frame".into()]).collect()
    }

    /// Returns the number of copies that each of the others gets of `sent` messages.
    fn copies(sent: u32) -> usize {
        if matches!(T::TYPE, SocketType::Pub | SocketType::Xpub | SocketType::Xsub) { sent as usize } else { 0 }
    }

    /// Sends until the slow peer and the queue to it are full. Returns the number of messages.
    async fn fill(&mut self) -> u32 {
        let mut sent = 0;
        until(|| {
            while self.sender.try_send(self.message(sent)).is_ok() {
                sent += 1;
            }
            let is_elsewhere = |other: &Socket<R>| other.statistics().incoming.messages == Self::copies(sent);
            self.slow.statistics().incoming.messages == 1 && self.others.iter().all(is_elsewhere)
        })
        .await;
        sent
    }

    async fn a_send_that_is_dropped_sends_nothing(mut self) {
        let sent = self.fill().await;
        let (dropped, after) = (self.message(sent), [self.message(sent + 1), self.message(sent + 2)]);
        let waiting = Waiting::on(self.sender.send(dropped));
        assert_eq!(within(self.slow.recv()).await.unwrap(), numbered(0));
        waiting.woken_and_dropped().await;
        let numbers = (0..sent).chain([sent + 1, sent + 2]);
        let sending = async {
            for message in after {
                self.sender.send(message).await.unwrap();
            }
        };
        let receiving = async {
            for number in numbers.clone().skip(1) {
                assert_eq!(self.slow.recv().await.unwrap(), numbered(number));
            }
            for other in &mut self.others {
                for number in numbers.clone().take(Self::copies(sent + 2)) {
                    assert_eq!(other.recv().await.unwrap(), numbered(number));
                }
            }
        };
        within(async { tokio::join!(sending, receiving) }).await;
        assert!(self.others.iter_mut().chain([&mut self.slow]).all(|socket| socket.try_recv().is_none()));
    }
}

/// Shows: M5
#[tokio::test]
async fn a_push_that_is_dropped_when_there_is_room_sends_nothing() {
    Site::<Push, Pull>::new(narrow(), 0).await.a_send_that_is_dropped_sends_nothing().await;
}

/// Shows: M5
#[tokio::test]
async fn a_send_of_a_dealer_that_is_dropped_when_there_is_room_sends_nothing() {
    Site::<Dealer, Dealer>::new(narrow(), 0).await.a_send_that_is_dropped_sends_nothing().await;
}

/// Shows: M5
#[tokio::test]
async fn a_send_of_a_pair_that_is_dropped_when_there_is_room_sends_nothing() {
    Site::<Pair, Pair>::new(narrow(), 0).await.a_send_that_is_dropped_sends_nothing().await;
}

/// Shows: M5
#[tokio::test]
async fn a_router_whose_send_to_a_full_peer_is_dropped_sends_nothing() {
    let (sender, slow, other) = (
        Socket::<Router>::with_options(narrow()),
        Socket::<Dealer>::with_options(narrow().identity(Identity::new("slow").unwrap())),
        Socket::<Dealer>::new(),
    );
    let endpoint = sender.bind(&inproc()).await.unwrap();
    other.connect(&endpoint).unwrap();
    slow.connect(&endpoint).unwrap();
    peers(2, || sender.statistics()).await;
    Site { sender, slow, others: vec![other], envelope: Some("slow") }.a_send_that_is_dropped_sends_nothing().await;
}

/// Shows: M5
#[tokio::test]
async fn a_send_of_an_xsub_that_is_dropped_reaches_none_of_the_publishers() {
    let site = Site::<Xsub, Xpub>::new(narrow().overflow(Overflow::Wait), 2).await;
    site.a_send_that_is_dropped_sends_nothing().await;
}

/// Returns a publisher that waits for slow subscribers and knows all subscriptions.
async fn publisher<T: Sends>() -> Site<T, Sub> {
    let mut site = Site::<T, Sub>::new(narrow().overflow(Overflow::Wait), 2).await;
    let Site { sender, slow, others, .. } = &mut site;
    let mut subscribers: Vec<_> = others.iter_mut().chain([slow]).map(|socket| (socket, false)).collect();
    for (subscriber, _) in &subscribers {
        subscriber.subscribe("").unwrap();
    }
    until(|| {
        let _ = sender.try_send("does anybody hear?");
        subscribers.iter_mut().for_each(|(subscriber, received)| *received |= subscriber.try_recv().is_some());
        subscribers.iter().all(|(_, received)| *received)
    })
    .await;
    until(|| {
        let is_quiet = |subscriber: &mut Socket<Sub>| {
            subscriber.try_recv().is_none() && subscriber.statistics().incoming.messages == 0
        };
        subscribers.iter_mut().all(|(subscriber, _)| is_quiet(subscriber)) && sender.statistics().outgoing.messages == 0
    })
    .await;
    site
}

/// Shows: M5
#[tokio::test]
async fn a_publication_of_a_pub_that_is_dropped_reaches_none_of_the_subscribers() {
    publisher::<Pub>().await.a_send_that_is_dropped_sends_nothing().await;
}

/// Shows: M5
#[tokio::test]
async fn a_publication_of_an_xpub_that_is_dropped_reaches_none_of_the_subscribers() {
    publisher::<Xpub>().await.a_send_that_is_dropped_sends_nothing().await;
}

/// Returns a PUSH that cannot send, the PULL that does not receive, and the number of messages
/// between them.
async fn jam() -> (PushSocket, PullSocket, u32) {
    let mut site = Site::<Push, Pull>::new(narrow(), 0).await;
    let sent = site.fill().await;
    (site.sender, site.slow, sent)
}

async fn expect<R: Receives>(socket: &mut Socket<R>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert_eq!(within(socket.recv()).await.unwrap(), numbered(number));
    }
}

/// Shows: M5
#[tokio::test]
async fn of_a_list_whose_sending_is_dropped_when_there_is_room_what_was_not_sent_is_left() {
    let (mut push, mut pull, sent) = jam().await;
    let mut list: Vec<_> = (sent..sent + 3).map(numbered).collect();
    let mut waiting = Waiting::on(push.send_many(&mut list));
    for number in 0..2 {
        expect(&mut pull, [number]).await;
        waiting.woken().await;
        // The first of the list is sent the first time.
        if number == 0 {
            waiting.poll();
        }
    }
    drop(waiting);
    assert_eq!(list, [numbered(sent + 1), numbered(sent + 2)]);
    expect(&mut pull, 2..sent + 1).await;
    assert_eq!(push.statistics().outgoing.messages, 0);
    push.send(numbered(sent + 1)).await.unwrap();
    expect(&mut pull, [sent + 1]).await;
}

/// A message that a sink has accepted does not belong to a future: it is in the socket.
///
/// Shows: M5
#[tokio::test]
async fn what_a_sink_has_accepted_is_sent_once_though_its_flush_is_dropped_when_there_is_room() {
    let (mut push, mut pull, sent) = jam().await;
    SinkExt::feed(&mut push, numbered(sent)).await.unwrap();
    let waiting = Waiting::on(SinkExt::flush(&mut push));
    expect(&mut pull, [0]).await;
    waiting.woken_and_dropped().await;
    SinkExt::feed(&mut push, numbered(sent + 1)).await.unwrap();
    let flushing = async { SinkExt::flush(&mut push).await.unwrap() };
    tokio::join!(within(flushing), expect(&mut pull, 1..sent + 2));
    assert!(pull.try_recv().is_none());
}

/// Shows: M5
#[tokio::test]
async fn what_was_to_be_fed_to_a_sink_is_not_sent_when_that_is_dropped_when_there_is_room() {
    let (mut push, mut pull, sent) = jam().await;
    SinkExt::feed(&mut push, numbered(sent)).await.unwrap();
    let waiting = Waiting::on(SinkExt::feed(&mut push, numbered(sent + 1)));
    expect(&mut pull, [0]).await;
    waiting.woken_and_dropped().await;
    let sending = async { SinkExt::send(&mut push, numbered(sent + 2)).await.unwrap() };
    tokio::join!(within(sending), expect(&mut pull, (1..sent + 1).chain([sent + 2])));
    assert!(pull.try_recv().is_none());
}

/// A sender without a peer waits, too, if the option is set.
///
/// Shows: M5
#[tokio::test]
async fn a_send_that_waits_for_a_peer_and_is_dropped_when_one_comes_sends_nothing() {
    let mut push = PushSocket::with_options(SocketOptions::new().wait_for_peer());
    let endpoint = push.bind(&inproc()).await.unwrap();
    let waiting = Waiting::on(push.send(numbered(0)));
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    waiting.woken_and_dropped().await;
    assert!(push.send(numbered(1)).now_or_never().is_some());
    expect(&mut pull, [1]).await;
}

/// Only the last waiting task is woken when a peer connects, so a dropped future must not keep its
/// place.
///
/// Shows: M5
#[tokio::test]
async fn a_send_that_waits_for_a_peer_and_is_dropped_before_one_comes_leaves_the_wake_up_to_the_next() {
    let mut push = PushSocket::with_options(SocketOptions::new().wait_for_peer());
    let endpoint = push.bind(&inproc()).await.unwrap();
    drop(Waiting::on(push.send(numbered(0))));
    let waiting = Waiting::on(push.send(numbered(1)));
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    within(waiting.woken_and_finished()).await.unwrap();
    expect(&mut pull, [1]).await;
    assert!(pull.try_recv().is_none());
}
