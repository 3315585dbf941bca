//! Heartbeats: the times at which to send a `PING`, and to end the connection to a silent peer.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::options::Heartbeat;

/// The timers of one established connection.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The time at which the next `PING` is due.
    next_ping: Option<Instant>,
    /// The time by which anything must arrive after the last `PING`.
    reply_by: Option<Instant>,
    received_at: Instant,
    /// The time to live in the peer's last `PING`: the time for which the peer may be silent.
    peer_ttl: Option<Duration>,
}

impl Timers {
    /// Starts the timers now. Pass `heartbeat` if the connection sends `PING` to this peer.
    pub(crate) fn start(heartbeat: Option<&Heartbeat>, now: Instant) -> Self {
        let next_ping = heartbeat.and_then(|heartbeat| now.checked_add(heartbeat.interval));
        Self { next_ping, reply_by: None, received_at: now, peer_ttl: None }
    }

    /// Notes that bytes arrived from the peer.
    pub(crate) fn note_received(&mut self, now: Instant) {
        self.received_at = now;
        self.reply_by = None;
    }

    /// Sets the time to live that the peer's `PING` announced, in tenths of a second. 0 means
    /// without limit.
    pub(crate) fn peer_ttl(&mut self, tenths: u16) {
        self.peer_ttl = (tenths != 0).then(|| Duration::from_millis(u64::from(tenths) * 100));
    }

    fn silent_by(&self) -> Option<Instant> {
        self.peer_ttl.and_then(|ttl| self.received_at.checked_add(ttl))
    }

    /// Returns the earliest time at which a timer is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.next_ping, self.reply_by, self.silent_by()].into_iter().flatten().min()
    }

    /// Returns whether to send a `PING`, or an error if the peer was silent for too long.
    pub(crate) fn due(&mut self, heartbeat: Option<&Heartbeat>, now: Instant) -> Result<bool> {
        let is_due = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
        if is_due(self.reply_by) {
            return Err(Error::timeout("the peer did not reply to a heartbeat in time"));
        }
        if is_due(self.silent_by()) {
            return Err(Error::timeout("the peer was silent for longer than it said it would be"));
        }
        let Some(heartbeat) = heartbeat.filter(|_| is_due(self.next_ping)) else { return Ok(false) };
        self.next_ping = now.checked_add(heartbeat.interval);
        // Only one `PING` is unanswered at a time, so that none pile up for a peer that does not
        // read.
        if self.reply_by.is_some() {
            return Ok(false);
        }
        self.reply_by = now.checked_add(heartbeat.timeout);
        Ok(true)
    }
}
