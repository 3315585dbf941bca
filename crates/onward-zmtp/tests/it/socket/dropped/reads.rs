//! Reads that are dropped when a message is ready: the next read gets it, once.

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{
    Dealer, Kind, Pair, Pub, Pull, Push, Receives, Rep, Req, Router, Sends, Sub, Xpub, Xsub,
};
use onward_zmtp::{RepSocket, ReqSocket, Socket, SubSocket};

use super::sends::inproc;
use super::waiting::Waiting;
use crate::socket::support::events::{peers, within};

/// The number of times that a read is dropped.
const ROUNDS: u32 = 20;

/// A receiver and its peer. With a second, silent peer, messages take another path through the
/// receiver.
struct Site<R, S> {
    receiver: Socket<R>,
    giver: Socket<S>,
    _silent: Option<Socket<S>>,
}

impl<R: Kind, S: Kind> Site<R, S> {
    async fn new(endpoint: &str, has_second: bool) -> Self {
        let (receiver, giver, silent) = (Socket::<R>::new(), Socket::new(), has_second.then(Socket::new));
        let endpoint = receiver.bind(endpoint).await.unwrap();
        for socket in silent.iter().chain([&giver]) {
            socket.connect(&endpoint).unwrap();
        }
        peers(1 + usize::from(has_second), || receiver.statistics()).await;
        Self { receiver, giver, _silent: silent }
    }

    /// Returns sites over a stream and within the process, with one peer and up to `most`.
    async fn each(most: usize) -> Vec<Self> {
        let mut sites = Vec::new();
        for endpoint in ["tcp://127.0.0.1:*".into(), inproc()] {
            sites.push(Self::new(&endpoint, false).await);
        }
        if most > 1 {
            for endpoint in ["tcp://127.0.0.1:*".into(), inproc()] {
                sites.push(Self::new(&endpoint, true).await);
            }
        }
        sites
    }
}

/// Checks dropped reads. `give` sends the messages that `expected` describes, one each time.
async fn reads_that_are_dropped_take_nothing<R: Kind, S: Kind>(
    site: &mut Site<R, S>,
    recv: impl AsyncFn(&mut Socket<R>) -> Message,
    give: impl AsyncFn(&mut Socket<S>, u32),
    expected: impl Fn(u32) -> Message,
) {
    for round in 0..ROUNDS {
        let waiting = Waiting::on(recv(&mut site.receiver));
        give(&mut site.giver, round).await;
        waiting.woken_and_dropped().await;
        assert_eq!(within(recv(&mut site.receiver)).await, expected(round));
    }
}

fn numbered(number: u32) -> Message {
    Message::from_iter([number.to_string(), "second frame".into()])
}

async fn recv<R: Receives>(socket: &mut Socket<R>) -> Message {
    socket.recv().await.unwrap()
}

async fn send<S: Sends>(socket: &mut Socket<S>, number: u32) {
    socket.send(numbered(number)).await.unwrap();
}

/// Checks with one peer and up to `most`.
async fn check<R: Receives, S: Sends>(most: usize) {
    for mut site in Site::<R, S>::each(most).await {
        reads_that_are_dropped_take_nothing(&mut site, recv, send, numbered).await;
    }
}

/// Shows: M5
#[tokio::test]
async fn a_pull_that_is_dropped_when_there_is_a_message_takes_nothing() {
    check::<Pull, Push>(2).await;
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_a_dealer_that_is_dropped_when_there_is_a_message_takes_nothing() {
    check::<Dealer, Dealer>(2).await;
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_a_pair_that_is_dropped_when_there_is_a_message_takes_nothing() {
    check::<Pair, Pair>(1).await;
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_a_router_that_is_dropped_when_there_is_a_message_takes_nothing() {
    let without_identity = async |router: &mut Socket<Router>| {
        let mut message = recv(router).await;
        message.pop_front();
        message
    };
    for mut site in Site::<Router, Dealer>::each(2).await {
        reads_that_are_dropped_take_nothing(&mut site, without_identity, send, numbered).await;
    }
}

/// Subscribes, and waits until the publisher knows of it.
async fn subscribe<S: Sends>(sub: &mut SubSocket, publisher: &mut Socket<S>) {
    sub.subscribe("").unwrap();
    within(async {
        while sub.try_recv().is_none() {
            publisher.send("does anybody hear?").await.unwrap();
            tokio::task::yield_now().await;
        }
        publisher.send("enough").await.unwrap();
        while recv(sub).await.frames() != ["enough"] {}
    })
    .await;
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_a_sub_that_is_dropped_when_there_is_a_message_takes_nothing() {
    for mut site in Site::<Sub, Pub>::each(2).await {
        subscribe(&mut site.receiver, &mut site.giver).await;
        reads_that_are_dropped_take_nothing(&mut site, recv, send, numbered).await;
    }
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_an_xsub_that_is_dropped_when_there_is_a_message_takes_nothing() {
    for mut site in Site::<Xsub, Xpub>::each(2).await {
        site.receiver.subscribe("").unwrap();
        within(site.giver.recv()).await.unwrap();
        reads_that_are_dropped_take_nothing(&mut site, recv, send, numbered).await;
    }
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_an_xpub_that_is_dropped_when_there_is_a_subscription_takes_nothing() {
    let subscribe = async |sub: &mut SubSocket, topic: u32| sub.subscribe(topic.to_string()).unwrap();
    for mut site in Site::<Xpub, Sub>::each(2).await {
        reads_that_are_dropped_take_nothing(&mut site, recv, subscribe, |topic| format!("\x01{topic}").into()).await;
    }
}

/// Shows: M5
#[tokio::test]
async fn a_rep_that_is_dropped_when_there_is_a_request_has_taken_none() {
    // A REQ has one open request at a time; a DEALER can send all.
    let ask = async |dealer: &mut Socket<Dealer>, number: u32| {
        dealer.send(Message::from_iter([String::new(), number.to_string()])).await.unwrap();
    };
    let request = async |rep: &mut RepSocket| {
        let request = rep.recv().await.unwrap();
        rep.send("reply").await.unwrap();
        request
    };
    for mut site in Site::<Rep, Dealer>::each(2).await {
        reads_that_are_dropped_take_nothing(&mut site, request, ask, |number| number.to_string().into()).await;
        for _ in 0..ROUNDS {
            assert_eq!(recv(&mut site.giver).await.frames(), ["", "reply"]);
        }
    }
}

/// Shows: M5
#[tokio::test]
async fn a_req_that_is_dropped_when_there_is_a_reply_has_it_still_to_come() {
    for mut site in Site::<Req, Rep>::each(1).await {
        for round in 0..ROUNDS {
            let (req, rep): (&mut ReqSocket, &mut RepSocket) = (&mut site.receiver, &mut site.giver);
            req.send("request").await.unwrap();
            let waiting = Waiting::on(req.recv());
            within(rep.recv()).await.unwrap();
            rep.send(round.to_string()).await.unwrap();
            waiting.woken_and_dropped().await;
            assert_eq!(within(req.recv()).await.unwrap().frames(), [round.to_string()]);
        }
    }
}

/// Shows: M5
#[tokio::test]
async fn a_read_of_many_that_is_dropped_when_there_is_a_message_takes_none() {
    for mut site in Site::<Pull, Push>::each(2).await {
        let mut messages = Vec::new();
        for round in 0..ROUNDS {
            let waiting = Waiting::on(site.receiver.recv_many(&mut messages, 10));
            send(&mut site.giver, round).await;
            waiting.woken_and_dropped().await;
            assert!(messages.is_empty());
            within(site.receiver.recv_many(&mut messages, 10)).await.unwrap();
            assert_eq!(std::mem::take(&mut messages), [numbered(round)]);
        }
    }
}
