//! Requests and replies: a REQ whose peer is gone gets an error and sends the request again.

use std::collections::HashMap;

use onward_zmtp::{RepSocket, ReqSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::arrived::{Connections, rounds};
use super::load::{SOURCES, label, read_label};
use super::one_way::options;
use super::wire::{Sends, Wire};
use crate::socket::support::events::within;

/// The number of replies to each REQ between two cuts.
const BETWEEN_CUTS: u64 = 50;

/// A REQ that sends requests until it is stopped.
struct Asks {
    answered: watch::Receiver<u64>,
    /// Returns the number of times that requests were repeated, by number.
    task: JoinHandle<HashMap<u64, u64>>,
}

impl Asks {
    fn start(source: usize, mut req: ReqSocket, stop: watch::Receiver<bool>) -> Self {
        let (count, answered) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut again = HashMap::new();
            for number in 0.. {
                let times = ask(&mut req, label(source as u64, number)).await;
                again.extend((times > 0).then_some((number, times)));
                count.send_replace(number + 1);
                if *stop.borrow() {
                    break;
                }
            }
            again
        });
        Self { answered, task }
    }

    async fn has_answered(&mut self, more: u64) {
        let goal = *self.answered.borrow() + more;
        within(self.answered.wait_for(|answered| *answered >= goal)).await.unwrap();
    }
}

/// Repeats a request until there is a reply, which must equal the request. Returns the number of
/// repetitions.
async fn ask(req: &mut ReqSocket, request: Vec<u8>) -> u64 {
    for again in 0.. {
        within(req.send(request.clone())).await.unwrap();
        match within(req.recv()).await {
            Ok(reply) => {
                assert_eq!(reply.frames(), [request]);
                return again;
            }
            Err(error) => assert!(error.is_gone(), "{error}"),
        }
    }
    unreachable!()
}

/// Replies to each request with itself. Returns the number of times that each was received, and the
/// number of replies whose peer was gone.
async fn reply(mut rep: RepSocket, mut stop: watch::Receiver<bool>) -> (HashMap<(usize, u64), u64>, u64) {
    let mut asked = HashMap::new();
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => return (asked, rep.statistics().dropped),
            request = rep.recv() => {
                let request = request.unwrap();
                *asked.entry(read_label(&request.frames()[0])).or_default() += 1;
                rep.send(request).await.unwrap();
            }
        }
    }
}

/// Each request gets its own reply, and the REP is never held up. It receives a request once, and
/// once more for each time that the REQ got the error that its peer is gone.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_requests_whose_connections_are_cut_each_is_answered_and_asked_again_only_if_its_peer_is_gone() {
    let rep = RepSocket::new();
    let mut connections = Connections::of(&rep);
    let wire = Wire::to(rep.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoConnects).await;
    let (stop, stops) = (watch::Sender::new(false), watch::Sender::new(false));
    let start = |source| {
        let req = ReqSocket::with_options(options());
        req.connect(wire.endpoint.as_str()).unwrap();
        Asks::start(source, req, stop.subscribe())
    };
    let mut all: Vec<_> = (0..SOURCES).map(start).collect();
    let replies = tokio::spawn(reply(rep, stops.subscribe()));
    let cuts = rounds().div_ceil(SOURCES);
    for _ in 0..cuts {
        for asks in &mut all {
            asks.has_answered(BETWEEN_CUTS).await;
        }
        wire.cut();
        // A monitor keeps only some events, so they are read at each cut.
        connections.count();
    }
    for asks in &mut all {
        asks.has_answered(BETWEEN_CUTS).await;
    }
    stop.send_replace(true);
    let (mut again, mut answered) = (HashMap::new(), 0);
    for (source, asks) in all.into_iter().enumerate() {
        let each = within(asks.task).await.unwrap();
        again.extend(each.into_iter().map(|(number, times)| ((source, number), times)));
        answered += *asks.answered.borrow();
    }
    stops.send_replace(true);
    let (asked, dropped) = within(replies).await.unwrap();
    for (request, times) in &asked {
        assert!(*times <= 1 + again.get(request).unwrap_or(&0), "{request:?} was received {times} times");
    }
    let (received, again) = (asked.values().sum::<u64>(), again.values().sum::<u64>());
    let recovered = connections.count() - SOURCES;
    println!(
        "heard={received} again={again} dropped={dropped} attempted={} acknowledged={answered} lost=0 duplicated=0 recovered={recovered} seed=0",
        answered + again
    );
    assert_eq!(asked.len() as u64, answered, "each that was answered was heard");
    assert!(again <= (cuts * SOURCES) as u64, "{again} times somebody was gone after {cuts} cuts");
    assert!(dropped <= again, "{dropped} replies without a peer, and {again} times somebody was gone");
}
