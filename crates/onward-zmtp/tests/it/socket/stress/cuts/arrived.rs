//! The result of the messages that were sent.

use std::sync::atomic::Ordering;

use onward_zmtp::Socket;
use onward_zmtp::socket::kind::{Kind, Receives, Sends};
use onward_zmtp::socket::{Monitor, MonitorEvent};

use super::load::{LAST, Load, SOURCES, Source, read_label};
use super::wire::{Sent, Wire};
use crate::socket::support::events::{number, until, within};

/// The messages of one source that arrived.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// The numbers up to the highest that arrived.
    is_there: Vec<bool>,
    count: u64,
    is_last_there: bool,
    late: u64,
    repeated: u64,
}

impl Arrived {
    fn note(&mut self, number: u64, is_last: bool) {
        let number = number as usize;
        self.late += u64::from(number < self.is_there.len());
        self.is_there.resize(self.is_there.len().max(number + 1), false);
        let was_there = std::mem::replace(&mut self.is_there[number], true);
        self.repeated += u64::from(was_there);
        self.count += u64::from(!was_there);
        self.is_last_there |= is_last;
    }
}

pub(super) type AllArrived = [Arrived; SOURCES];

/// The result of the messages of all sources.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) cuts: u64,
    pub(super) reconnects: u64,
    /// The number of messages that sockets accepted.
    pub(super) attempted: u64,
    pub(super) arrived: u64,
    /// The number that came to a wire whole and did not leave it whole.
    pub(super) held: u64,
    /// The number that no wire saw whole.
    pub(super) unwritten: u64,
    /// The number that a wire passed on and that did not arrive.
    pub(super) lost: u64,
    /// The number that sockets counted as dropped.
    pub(super) dropped: u64,
    pub(super) repeated: u64,
    /// The number that arrived after later ones of their source, and the number that came to a wire
    /// so.
    pub(super) late: u64,
    pub(super) sent_late: u64,
}

impl Outcome {
    /// Checks that every message is accounted for. A message that did not arrive was on the wire
    /// when it was cut, which the wire reports, or is counted by its sender. None arrives twice.
    /// Only messages of a batch that were written before the cut may be counted without need.
    pub(super) fn is_accounted_for(&self, load: Load) {
        let uncounted = self.unwritten.saturating_sub(self.dropped);
        self.print(self.lost + uncounted);
        assert_eq!((self.lost, uncounted, self.repeated), (0, 0, 0), "lost, lost without a count, twice: {self:?}");
        let beyond = self.dropped - self.unwritten;
        let most = self.cuts * SOURCES as u64 * (load.batch - 1);
        assert!(beyond <= most, "{beyond} are counted as dropped that were written: {self:?}");
    }

    pub(super) fn print(&self, lost: u64) {
        let Self { attempted, arrived, held, unwritten, dropped, repeated, late, sent_late, reconnects, .. } = self;
        println!(
            "held={held} unwritten={unwritten} dropped={dropped} late={late} sent_late={sent_late} attempted={attempted} acknowledged={arrived} lost={lost} duplicated={repeated} recovered={reconnects} seed=0"
        );
    }

    fn add_sent(&mut self, sent: &[Sent]) {
        let mut next = [0; SOURCES];
        for Sent { source, number, is_held } in sent {
            self.sent_late += u64::from(*number < next[*source]);
            next[*source] = next[*source].max(number + 1);
            self.held += u64::from(*is_held);
        }
        self.unwritten -= sent.len() as u64;
    }
}

pub(super) fn rounds() -> usize {
    number("ONWARD_ROUNDS").unwrap_or(48)
}

/// Sends while all connections are cut again and again. Puts an identity in front, if there is one.
pub(super) async fn cut_under_load<R, S>(
    mut receiver: Socket<R>,
    mut connections: Connections,
    senders: Vec<Socket<S>>,
    wires: &[Wire],
    load: Load,
    to: Option<&'static str>,
) -> Outcome
where
    R: Kind + Receives,
    S: Kind + Sends + Send + 'static,
{
    let start = |(source, socket)| Source::start(source, socket, load, to);
    let sources: Vec<_> = senders.into_iter().enumerate().map(start).collect();
    let mut all = AllArrived::default();
    let cuts = rounds().div_ceil(SOURCES);
    for cut in 1..=cuts {
        receive_from_all(&mut receiver, &mut all, load.between_cuts).await;
        // Waits until all connections are back.
        while connections.count() < SOURCES * cut {
            receive(&mut receiver, &mut all).await;
        }
        wires.iter().for_each(Wire::cut);
    }
    let mut outcome = Outcome { cuts: cuts as u64, ..Outcome::default() };
    while connections.count() < SOURCES * (cuts + 1) {
        receive(&mut receiver, &mut all).await;
    }
    receive_what_is_sent_now(&sources, &mut receiver, &mut all).await;
    stop(sources, &mut receiver, &mut all, &mut outcome).await;
    drop(receiver);
    outcome.reconnects = (connections.count - SOURCES) as u64;
    outcome.arrived = all.iter().map(|arrived| arrived.count).sum();
    outcome.repeated = all.iter().map(|arrived| arrived.repeated).sum();
    outcome.late = all.iter().map(|arrived| arrived.late).sum();
    outcome.unwritten = outcome.attempted;
    let mut passed = 0;
    for wire in wires {
        let sent = wire.sent().await;
        passed += sent.iter().filter(|sent| !sent.is_held).count() as u64;
        outcome.add_sent(&sent);
    }
    outcome.lost = passed - outcome.arrived;
    outcome
}

async fn receive<R: Receives>(receiver: &mut Socket<R>, all: &mut AllArrived) {
    note(&within(receiver.recv()).await.unwrap(), all);
}

fn note(message: &onward_zmtp::protocol::Message, all: &mut AllArrived) {
    let [.., label, payload] = message.frames() else { panic!("{message:?}") };
    let (source, number) = read_label(label);
    all[source].note(number, payload == LAST);
}

/// Receives until more messages have come from each source.
async fn receive_from_all<R: Receives>(receiver: &mut Socket<R>, all: &mut AllArrived, more: u64) {
    let goal = all.each_ref().map(|arrived| arrived.count + more);
    while all.iter().zip(goal).any(|(arrived, goal)| arrived.count < goal) {
        receive(receiver, all).await;
    }
}

/// Receives until each source has delivered a message that it sends from now on. Its last message
/// is then not for a connection that has ended.
async fn receive_what_is_sent_now<T, R: Receives>(
    sources: &[Source<T>],
    receiver: &mut Socket<R>,
    all: &mut AllArrived,
) {
    let now: Vec<_> = sources.iter().map(|source| source.number.load(Ordering::SeqCst)).collect();
    while all.iter().zip(&now).any(|(arrived, now)| arrived.is_there.len() as u64 <= now + 1) {
        receive(receiver, all).await;
    }
}

/// Stops the sources and receives what they sent until then: their last messages, and those left by
/// earlier connections.
async fn stop<T: Kind, R: Kind + Receives>(
    sources: Vec<Source<T>>,
    receiver: &mut Socket<R>,
    all: &mut AllArrived,
    outcome: &mut Outcome,
) {
    let (stops, tasks): (Vec<_>, Vec<_>) = sources.into_iter().map(|source| (source.stop, source.task)).unzip();
    stops.into_iter().for_each(|stop| stop.send(()).unwrap());
    while all.iter().any(|arrived| !arrived.is_last_there) {
        receive(receiver, all).await;
    }
    until(|| {
        while let Some(message) = receiver.try_recv() {
            note(&message, all);
        }
        let statistics = receiver.statistics();
        statistics.peers == SOURCES && statistics.incoming.messages == 0
    })
    .await;
    for task in tasks {
        let (socket, attempted) = within(task).await.unwrap();
        outcome.attempted += attempted;
        outcome.dropped += socket.statistics().dropped;
    }
}

/// The number of connections that a socket has had since this was created.
pub(super) struct Connections {
    monitor: Monitor,
    count: usize,
}

impl Connections {
    pub(super) fn of<T: Kind>(socket: &Socket<T>) -> Self {
        Self { monitor: socket.monitor(), count: 0 }
    }

    pub(super) fn count(&mut self) -> usize {
        let events = std::iter::from_fn(|| self.monitor.try_next());
        self.count += events.filter(|event| matches!(event, MonitorEvent::Connected { .. })).count();
        self.count
    }
}
