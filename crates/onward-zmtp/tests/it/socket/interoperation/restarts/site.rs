//! A socket of ours and a libzmq. Either may end and start again.

use std::mem;

use onward_zmtp::Socket;
use onward_zmtp::protocol::SocketType;
use onward_zmtp::socket::kind::{Kind, Receives, Sends};
use onward_zmtp::socket::{HighWaterMark, Monitor, MonitorEvent};
use tokio::task::{block_in_place, yield_now};
use tokio::time::{Duration, MissedTickBehavior, interval};

use crate::socket::interoperation::field::Field;
use crate::socket::support::events::{TIMEOUT, event, within};
use crate::zmtp::peer::{Peer, program};

/// The greatest lead of a sender over the messages known to have arrived.
pub(super) const WINDOW: u64 = 300;
/// The number of arrivals before one side ends, and again after it.
pub(super) const COUNT: u64 = 1000;

/// A size in bytes that exceeds what any test sends at a time.
const PLENTY: usize = 64 * 1024 * 1024;

/// The numbers that have arrived from one counter.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) next: u64,
    pub(super) missing: u64,
}

impl Arrived {
    pub(super) fn from(next: u64) -> Self {
        Self { next, missing: 0 }
    }

    pub(super) fn note(&mut self, number: u64) {
        assert!(number >= self.next, "{number} came again, or too late: {self:?}");
        self.missing += number - self.next;
        self.next = number + 1;
    }
}

/// A socket of ours and a libzmq.
pub(super) struct Site<T> {
    pub(super) field: Field,
    pub(super) program: String,
    pub(super) socket: Socket<T>,
    pub(super) peer: Peer,
    pub(super) endpoint: String,
    /// The number up to which the libzmq may count.
    pub(super) allowed: u64,
}

impl<T: Kind> Site<T> {
    pub(super) async fn new(field: Field, kind: &str) -> Option<Self> {
        let program = program()?;
        let socket = Self::socket(field);
        let (peer, endpoint) = field.join(&socket, kind, |role| Peer::spawn(&program, role)).await;
        Some(Self { field, program, socket, peer, endpoint, allowed: 0 })
    }

    pub(super) fn socket(field: Field) -> Socket<T> {
        let high_water_mark = HighWaterMark { messages: 1000, bytes: PLENTY };
        let options = field.options::<T>().linger(TIMEOUT).send_high_water_mark(high_water_mark);
        // A REP of libzmq that connects sends its reply to an earlier request to the peer that is
        // there then.
        Socket::with_options(if T::TYPE == SocketType::Req { options.correlate() } else { options })
    }

    /// Starts a libzmq in place of a killed one.
    pub(super) fn revive(&mut self, kind: &str) {
        (self.peer, _) = Peer::spawn(&self.program, self.field.role(kind, &self.endpoint));
        self.allowed = 0;
    }

    /// Takes our socket away. A new one replaces it, but is not at the endpoint yet.
    pub(super) fn take(&mut self) -> Socket<T> {
        mem::replace(&mut self.socket, Self::socket(self.field))
    }

    /// Binds or connects our new socket in place of the one that was taken away.
    pub(super) async fn replace(&mut self) {
        if !self.field.we_bind {
            self.socket.connect(self.endpoint.as_str()).unwrap();
            return;
        }
        within(async {
            while self.socket.bind(&self.endpoint).await.is_err() {
                yield_now().await;
            }
        })
        .await;
    }
}

impl<T: Receives> Site<T> {
    /// Lets the libzmq count up to `end`.
    pub(super) fn allow(&mut self, end: u64) {
        self.allowed = end;
        self.peer.write_line(&end.to_string());
    }

    /// Returns the next number received. A ROUTER gets it behind an identity.
    pub(super) async fn number(&mut self) -> u64 {
        let message = within(self.socket.recv()).await.unwrap();
        std::str::from_utf8(message.frames().last().unwrap()).unwrap().parse().unwrap()
    }

    /// Returns the next number after a connection has ended. All numbers that the libzmq was
    /// allowed to count may be lost, and those that it counts before it notices the end.
    pub(super) async fn number_after_all(&mut self) -> u64 {
        let mut ticks = interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                number = self.number() => return number,
                _ = ticks.tick() => {}
            }
            self.allow(self.allowed + 1);
        }
    }

    /// Receives until `end`, and lets the libzmq count on.
    pub(super) async fn receive(&mut self, arrived: &mut Arrived, end: u64) {
        while arrived.next < end {
            if arrived.next + WINDOW / 2 > self.allowed {
                self.allow(arrived.next + WINDOW);
            }
            arrived.note(self.number().await);
        }
    }
}

impl<T: Sends> Site<T> {
    /// Returns the next number that the libzmq has printed. A ROUTER prints an identity before it.
    pub(super) fn printed(&self) -> u64 {
        printed(&block_in_place(|| self.peer.line()))
    }

    /// Sends the next numbers until `end` has arrived. It is never further ahead of the arrivals
    /// than the window.
    pub(super) async fn send(&mut self, sent: &mut u64, arrived: &mut Arrived, end: u64) {
        while arrived.next < end {
            self.send_until(sent, arrived.next + WINDOW).await;
            arrived.note(self.printed());
        }
    }

    pub(super) async fn send_until(&mut self, sent: &mut u64, end: u64) {
        while *sent < end {
            within(self.socket.send(sent.to_string())).await.unwrap();
            *sent += 1;
        }
    }

    /// Returns the number of messages that wait for the next peer after the libzmq was killed. All
    /// others were dropped or passed to the killed one.
    pub(super) async fn waiting(&self, monitor: &mut Monitor) -> u64 {
        let uncertain = event(monitor, |event| match event {
            MonitorEvent::Disconnected { uncertain, .. } => Some(*uncertain),
            _ => None,
        })
        .await;
        let statistics = self.socket.statistics();
        assert_eq!(statistics.dropped, uncertain as u64, "{:?}", self.field);
        statistics.outgoing.messages as u64
    }
}

pub(super) fn printed(line: &str) -> u64 {
    line.split_whitespace().next().unwrap().parse().unwrap()
}
