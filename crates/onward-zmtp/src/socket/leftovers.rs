//! What connections that have ended left unread, all of them together.

use std::collections::HashMap;
use std::mem;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;

use super::options::HighWaterMark;
use super::queue::Done;
use crate::fair_queue::sync::{Mutex, MutexGuard};

/// How much there is of it, and who waits until there is less.
///
/// The queue of a connection has marks, but a peer may come back again and again, and each connection leaves something. So while there is as much
/// as one mark allows, a connection that begins is not read. Its peer feels that, and nothing is lost.
pub(super) struct Leftovers {
    mark: HighWaterMark,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    size: Done,
    /// By the number of the connection.
    waiting: HashMap<u64, Waker, RandomState>,
}

impl Leftovers {
    pub(super) fn new(mark: HighWaterMark) -> Self {
        Self { mark, state: Mutex::default() }
    }

    /// A connection ended, and left so much.
    pub(super) fn add(&self, size: Done) {
        let mut state = self.state();
        state.size.messages += size.messages;
        state.size.bytes += size.bytes;
    }

    /// So much of it was read, or dropped. Those who wait are woken when half of the mark is free.
    pub(super) fn subtract(&self, size: Done) {
        let mut state = self.state();
        state.size.messages = state.size.messages.saturating_sub(size.messages);
        state.size.bytes = state.size.bytes.saturating_sub(size.bytes);
        let is_low = state.size.messages <= self.mark.messages / 2 && state.size.bytes <= self.mark.bytes / 2;
        let woken = if is_low { mem::take(&mut state.waiting) } else { HashMap::default() };
        drop(state);
        woken.into_values().for_each(Waker::wake);
    }

    /// Waits until a connection that begins may be read.
    pub(super) fn poll_room(&self, connection: u64, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.size.messages < self.mark.messages && state.size.bytes < self.mark.bytes {
            return Poll::Ready(());
        }
        state.waiting.insert(connection, context.waker().clone());
        Poll::Pending
    }

    /// A connection waits no longer.
    pub(super) fn forget(&self, connection: u64) {
        self.state().waiting.remove(&connection);
    }

    pub(super) fn size(&self) -> Done {
        self.state().size
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
