//! The unread backlog that ended connections leave, counted together.

use std::collections::HashMap;
use std::mem;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;

use super::items::Amount;
use crate::fair_queue::sync::{Mutex, MutexGuard};
use crate::socket::options::high_water_mark::HighWaterMark;

/// The size of the unread backlog, and the connections that wait until it shrinks.
///
/// Each queue has a high-water mark, but a peer may reconnect again and again, and each connection
/// may leave a full queue. A new connection is therefore not read while the backlog is at one
/// high-water mark. This slows down the peer, and nothing is lost.
pub(in crate::socket) struct UnreadBacklog {
    high_water_mark: HighWaterMark,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    size: Amount,
    /// The wakers of waiting connections, by connection number.
    waiting: HashMap<u64, Waker, RandomState>,
}

impl UnreadBacklog {
    pub(in crate::socket) fn new(high_water_mark: HighWaterMark) -> Self {
        Self { high_water_mark, state: Mutex::default() }
    }

    /// Adds the amount that an ended connection left.
    pub(super) fn add(&self, size: Amount) {
        let mut state = self.state();
        state.size.messages += size.messages;
        state.size.bytes += size.bytes;
    }

    /// Subtracts an amount that was read or dropped. Waiting connections are woken when half of the
    /// high-water mark is free.
    pub(super) fn subtract(&self, size: Amount) {
        let mut state = self.state();
        state.size.messages = state.size.messages.saturating_sub(size.messages);
        state.size.bytes = state.size.bytes.saturating_sub(size.bytes);
        let is_low = state.size.messages <= self.high_water_mark.messages / 2
            && state.size.bytes <= self.high_water_mark.bytes / 2;
        let woken = if is_low { mem::take(&mut state.waiting) } else { HashMap::default() };
        drop(state);
        woken.into_values().for_each(Waker::wake);
    }

    /// Waits until a new connection may be read.
    pub(in crate::socket) fn poll_room(&self, connection: u64, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.size.messages < self.high_water_mark.messages && state.size.bytes < self.high_water_mark.bytes {
            return Poll::Ready(());
        }
        state.waiting.insert(connection, context.waker().clone());
        Poll::Pending
    }

    /// Removes a connection from those that wait.
    pub(in crate::socket) fn forget(&self, connection: u64) {
        self.state().waiting.remove(&connection);
    }

    pub(in crate::socket) fn size(&self) -> Amount {
        self.state().size
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
