//! When to ask for signs of life, and when to take a peer for dead.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::options::Heartbeat;

/// The timers of one established connection.
#[derive(Debug)]
pub(crate) struct Timers {
    /// When the next `PING` is due.
    next_ping: Option<Instant>,
    /// Until when anything must have come since the last `PING`.
    answer_by: Option<Instant>,
    heard_at: Instant,
    /// What the peer's last `PING` said: how long it may be silent.
    peer_ttl: Option<Duration>,
}

impl Timers {
    /// Timers that begin now; with `heartbeat` if this peer is to be asked.
    pub(crate) fn start(heartbeat: Option<&Heartbeat>, now: Instant) -> Self {
        let next_ping = heartbeat.and_then(|heartbeat| now.checked_add(heartbeat.interval));
        Self { next_ping, answer_by: None, heard_at: now, peer_ttl: None }
    }

    /// Something came.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.answer_by = None;
    }

    /// The peer said in a `PING` for how many tenths of a second it may be silent.
    pub(crate) fn peer_ttl(&mut self, tenths: u16) {
        self.peer_ttl = (tenths != 0).then(|| Duration::from_millis(u64::from(tenths) * 100));
    }

    fn silent_by(&self) -> Option<Instant> {
        self.peer_ttl.and_then(|ttl| self.heard_at.checked_add(ttl))
    }

    /// The earliest moment at which there is something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.next_ping, self.answer_by, self.silent_by()].into_iter().flatten().min()
    }

    /// What is due: an error if the peer must be taken for dead, else whether to send a `PING`.
    pub(crate) fn due(&mut self, heartbeat: Option<&Heartbeat>, now: Instant) -> Result<bool> {
        let is_due = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
        if is_due(self.answer_by) {
            return Err(Error::timeout("the peer did not answer a heartbeat in time"));
        }
        if is_due(self.silent_by()) {
            return Err(Error::timeout("the peer was silent for longer than it said it would be"));
        }
        let Some(heartbeat) = heartbeat.filter(|_| is_due(self.next_ping)) else { return Ok(false) };
        self.next_ping = now.checked_add(heartbeat.interval);
        // One question at a time, so that none pile up for a peer that does not read.
        if self.answer_by.is_some() {
            return Ok(false);
        }
        self.answer_by = now.checked_add(heartbeat.timeout);
        Ok(true)
    }
}
