//! Connections that are cut under load: where is each message then?
//!
//! `ONWARD_ROUNDS` says how often a connection is cut (default: 48, twelve times all four at once).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_zmtp::protocol::limits::WRITE_BATCH_BYTES;
use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::kind::{self, Kind, Receives};
use onward_zmtp::socket::limits::HIGH_WATER_MARK_MESSAGES;
use onward_zmtp::socket::{Endpoint, Monitor, MonitorEvent, Reconnect, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::events::{number, within};
use super::raw::listen;

/// How many connections are cut at a time.
const SOURCES: usize = 4;
/// How many messages arrive from each source between two cuts.
const BETWEEN_CUTS: u64 = 100;
/// The payloads of most messages, and of one in [`LARGE_ONE_IN`].
const SMALL: usize = 100;
const LARGE: usize = 20_000;
const LARGE_ONE_IN: u64 = 50;
/// The payload of a source's last message.
const LAST: &[u8] = b"last";
/// What fills two write buffers: the one that is being written, and what was written already of what came into it together.
const MOST_DROPPED: u64 = 2 * (WRITE_BATCH_BYTES + LARGE) as u64 / SMALL as u64;

/// Those who send are the ones who connect.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_dealers_whose_connections_are_cut_every_message_is_accounted_for_and_in_order() {
    let router = RouterSocket::new();
    let connections = Connections::of(&router);
    let wire = Wire::to(router.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoConnects).await;
    let dealer = |source| {
        let identity = Identity::new(vec![b'a' + source as u8]).unwrap();
        let dealer = DealerSocket::with_options(options().identity(identity));
        dealer.connect(wire.endpoint.as_str()).unwrap();
        dealer
    };
    let dealers = (0..SOURCES).map(dealer).collect();
    let late = every_message_is_accounted_for(router, connections, dealers, &[wire]).await;
    assert_eq!(late, 0);
}

/// Those who send are the ones who are connected to. They do not know a peer again that is back before they have seen it go: what waited for its first
/// connection comes after what was given to the second by then.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pushes_whose_connections_are_cut_every_message_is_accounted_for() {
    let pull = PullSocket::with_options(options());
    let connections = Connections::of(&pull);
    let (mut pushes, mut wires) = (Vec::new(), Vec::new());
    for _ in 0..SOURCES {
        let push = PushSocket::new();
        let wire = Wire::to(push.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoIsBound).await;
        pull.connect(wire.endpoint.as_str()).unwrap();
        pushes.push(push);
        wires.push(wire);
    }
    let late = every_message_is_accounted_for(pull, connections, pushes, &wires).await;
    assert!(late <= (rounds() * HIGH_WATER_MARK_MESSAGES) as u64, "{late} messages came after later ones");
}

fn options() -> SocketOptions {
    SocketOptions::new().reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) })
}

/// What does not arrive was either on the wire when it was cut, which the wire tells, or is counted by the socket that sent it. Nothing comes twice,
/// and no cut costs more than two write buffers beside what was on the wire. Answers how many messages came after later ones of their source.
async fn every_message_is_accounted_for<R, S>(
    mut receiver: Socket<R>,
    mut connections: Connections,
    senders: Vec<Socket<S>>,
    wires: &[Wire],
) -> u64
where
    R: Kind + Receives,
    S: Kind + kind::Sends + Send + 'static,
{
    let sources: Vec<_> =
        senders.into_iter().enumerate().map(|(source, socket)| Source::start(source, socket)).collect();
    let mut arrived: [Arrived; SOURCES] = Default::default();
    let cuts = rounds().div_ceil(SOURCES);
    for cut in 1..=cuts {
        receive_from_all(&mut receiver, &mut arrived).await;
        wires.iter().for_each(Wire::cut);
        // What was received of the connections before may be more than that.
        while connections.count() < SOURCES * (cut + 1) {
            receive(&mut receiver, &mut arrived).await;
        }
    }
    let counted = stop(sources, &mut receiver, &mut arrived).await;
    drop(receiver);
    check(&arrived, &held(wires).await, &counted, cuts, connections.count() - SOURCES);
    arrived.iter().map(|arrived| arrived.late).sum()
}

fn rounds() -> usize {
    number("ONWARD_ROUNDS").unwrap_or(48)
}

/// What every message begins with, but for the identity that a ROUTER adds: its source, and which of the source's it is.
fn label(source: u64, number: u64) -> Vec<u8> {
    [source.to_be_bytes(), number.to_be_bytes()].concat()
}

fn read_label(label: &[u8]) -> (usize, u64) {
    let (source, number) = label.split_at(8);
    (u64::from_be_bytes(source.try_into().unwrap()) as usize, u64::from_be_bytes(number.try_into().unwrap()))
}

/// One who sends numbers until told to stop.
struct Source<T> {
    stop: oneshot::Sender<()>,
    /// Ends with the socket, and how many messages it was given.
    task: JoinHandle<(Socket<T>, u64)>,
}

impl<T: kind::Sends + Send + 'static> Source<T> {
    fn start(source: usize, mut socket: Socket<T>) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut number = 0;
            while stopped.try_recv().is_err() {
                let size = if number % LARGE_ONE_IN == 0 { LARGE } else { SMALL };
                socket.send(Message::from_iter([label(source as u64, number), vec![0; size]])).await.unwrap();
                number += 1;
            }
            socket.send(Message::from_iter([label(source as u64, number), LAST.to_vec()])).await.unwrap();
            (socket, number + 1)
        });
        Self { stop, task }
    }
}

/// Of one source, what arrived.
#[derive(Default)]
struct Arrived {
    /// By number, up to the highest.
    is_there: Vec<bool>,
    count: u64,
    is_last_there: bool,
    late: u64,
    repeated: u64,
}

impl Arrived {
    fn note(&mut self, number: u64, payload: &[u8]) {
        let number = number as usize;
        self.late += u64::from(number < self.is_there.len());
        self.is_there.resize(self.is_there.len().max(number + 1), false);
        let was_there = std::mem::replace(&mut self.is_there[number], true);
        self.repeated += u64::from(was_there);
        self.count += u64::from(!was_there);
        self.is_last_there |= payload == LAST;
    }
}

async fn receive<R: Receives>(receiver: &mut Socket<R>, arrived: &mut [Arrived; SOURCES]) {
    let message = within(receiver.recv()).await.unwrap();
    let [.., label, payload] = message.frames() else { panic!("{message:?}") };
    let (source, number) = read_label(label);
    arrived[source].note(number, payload);
}

/// Until from each source some more messages have come.
async fn receive_from_all<R: Receives>(receiver: &mut Socket<R>, arrived: &mut [Arrived; SOURCES]) {
    let goal = arrived.each_ref().map(|arrived| arrived.count + BETWEEN_CUTS);
    while arrived.iter().zip(goal).any(|(arrived, goal)| arrived.count < goal) {
        receive(receiver, arrived).await;
    }
}

/// How many connections there were.
struct Connections {
    monitor: Monitor,
    count: usize,
}

impl Connections {
    fn of<T: Kind>(socket: &Socket<T>) -> Self {
        Self { monitor: socket.monitor(), count: 0 }
    }

    fn count(&mut self) -> usize {
        let events = std::iter::from_fn(|| self.monitor.try_next());
        self.count += events.filter(|event| matches!(event, MonitorEvent::Connected { .. })).count();
        self.count
    }
}

/// Stops the sources and receives what they sent until then. Answers of each how many messages it was given, and how many it counted as dropped.
async fn stop<T: Kind, R: Receives>(
    sources: Vec<Source<T>>,
    receiver: &mut Socket<R>,
    arrived: &mut [Arrived; SOURCES],
) -> Vec<(u64, u64)> {
    let (stops, tasks): (Vec<_>, Vec<_>) = sources.into_iter().map(|source| (source.stop, source.task)).unzip();
    stops.into_iter().for_each(|stop| stop.send(()).unwrap());
    while arrived.iter().any(|arrived| !arrived.is_last_there) {
        receive(receiver, arrived).await;
    }
    let mut counted = Vec::new();
    for task in tasks {
        let (socket, given) = within(task).await.unwrap();
        counted.push((given, socket.statistics().dropped));
    }
    counted
}

/// Holds what arrived, what the wire held and what the sources counted against each other, and prints the sums.
fn check(arrived: &[Arrived], held: &[u64], counted: &[(u64, u64)], cuts: usize, reconnects: usize) {
    let mut lost = 0;
    for ((arrived, held), (given, dropped)) in arrived.iter().zip(held).zip(counted) {
        let missing = given - arrived.count;
        assert!(*held <= missing, "{missing} are missing, and the wire has {held} that did not arrive");
        assert!(
            *dropped <= cuts as u64 * MOST_DROPPED,
            "{dropped} of {given} are counted as dropped after {cuts} cuts"
        );
        lost += missing.saturating_sub(held + dropped);
    }
    let sum = |of: fn(&Arrived) -> u64| arrived.iter().map(of).sum::<u64>();
    let (held, repeated) = (held.iter().sum::<u64>(), sum(|it| it.repeated));
    let (given, dropped) = counted.iter().fold((0, 0), |(given, dropped), it| (given + it.0, dropped + it.1));
    let received = sum(|it| it.count);
    println!(
        "held={held} dropped={dropped} attempted={given} acknowledged={received} lost={lost} duplicated={repeated} recovered={reconnects} seed=0"
    );
    assert_eq!((lost, repeated), (0, 0), "of {given} messages: unaccounted for, and twice");
}

/// At which end of a wire messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    WhoConnects,
    WhoIsBound,
}

/// Carries bytes between those who connect and a socket, and ends all connections when told to.
struct Wire {
    endpoint: String,
    cut: watch::Sender<usize>,
    passages: Arc<Mutex<Vec<JoinHandle<Vec<usize>>>>>,
}

impl Wire {
    async fn to(socket: Endpoint, sends: Sends) -> Self {
        let Endpoint::Tcp { host, port } = socket else { panic!("{socket} is not TCP") };
        let (listener, endpoint) = listen().await;
        let (cut, cuts) = watch::channel(0);
        let passages = Arc::<Mutex<Vec<_>>>::default();
        let all = passages.clone();
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect((host.as_str(), port)).await else { return };
                let (from, to) = if sends == Sends::WhoConnects { (here, there) } else { (there, here) };
                all.lock().unwrap().push(tokio::spawn(carry(from, to, cuts.clone())));
            }
        });
        Self { endpoint, cut, passages }
    }

    fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }
}

/// How many whole messages of each source came to the wires and did not leave them. Everybody at their ends must be gone.
async fn held(wires: &[Wire]) -> [u64; SOURCES] {
    let mut held = [0; SOURCES];
    for wire in wires {
        let passages = std::mem::take(&mut *wire.passages.lock().unwrap());
        for passage in passages {
            within(passage).await.unwrap().into_iter().for_each(|source| held[source] += 1);
        }
    }
    held
}

/// Carries bytes both ways until the cut. Then each end is told that there is no more, without a reset, so that all that was passed on arrives, and all that
/// was sent is seen. Answers the sources of the messages that were held.
async fn carry(from: TcpStream, to: TcpStream, mut cuts: watch::Receiver<usize>) -> Vec<usize> {
    cuts.mark_unchanged();
    let ((mut from, mut back_to), (mut back, mut to)) = (from.into_split(), to.into_split());
    let mut passage = Passage::default();
    tokio::select! {
        _ = passage.forward(&mut from, &mut to) => {}
        _ = tokio::io::copy(&mut back, &mut back_to) => {}
        _ = cuts.changed() => {}
    }
    // Whoever is gone already needs not be told.
    let _ = (to.shutdown().await, back_to.shutdown().await);
    let mut answers = tokio::io::sink();
    let _ = tokio::join!(from.read_to_end(&mut passage.sent), tokio::io::copy(&mut back, &mut answers));
    passage.held()
}

/// What was sent over a connection, and how much of it was passed on.
#[derive(Default)]
struct Passage {
    sent: Vec<u8>,
    forwarded: usize,
}

impl Passage {
    async fn forward(&mut self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> std::io::Result<()> {
        while from.read_buf(&mut self.sent).await? > 0 {
            while self.forwarded < self.sent.len() {
                self.forwarded += to.write(&self.sent[self.forwarded..]).await?;
            }
        }
        Ok(())
    }

    /// The sources of the whole messages that were not all passed on.
    fn held(&self) -> Vec<usize> {
        let mut held = Vec::new();
        let (mut at, mut labelled) = (GREETING, None);
        while let Some((flags, body, end)) = self.frame(at) {
            at = end;
            if flags & COMMAND != 0 {
                continue;
            }
            match labelled.take() {
                None => labelled = Some(read_label(body).0),
                Some(source) if end > self.forwarded => held.push(source),
                Some(_) => {}
            }
        }
        held
    }

    /// The flags and the body of a frame that was sent whole, and where it ends.
    fn frame(&self, at: usize) -> Option<(u8, &[u8], usize)> {
        let flags = *self.sent.get(at)?;
        let (length, begin) = match flags & LONG {
            0 => (u64::from(*self.sent.get(at + 1)?), at + 2),
            _ => (u64::from_be_bytes(self.sent.get(at + 1..at + 9)?.try_into().unwrap()), at + 9),
        };
        let end = begin + length as usize;
        Some((flags, self.sent.get(begin..end)?, end))
    }
}

/// How many bytes are sent before the first frame.
const GREETING: usize = 64;
/// Flags of a frame.
const LONG: u8 = 2;
const COMMAND: u8 = 4;
