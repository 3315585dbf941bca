//! The state that a writer keeps between transactions.

use crate::model::Now;
use crate::postgres::speculation::own_sessions::OwnSessions;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::small_state::SmallState;

/// The identity of a writer's batch. The server stores the last one of each writer. After a lost
/// connection or a crash, it shows if the batch was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) struct CommitId {
    /// A random number of this writer, unique with near certainty.
    pub(in crate::postgres) writer: i64,
    /// The number of the batch, counted from 1; 0 before the first.
    pub(in crate::postgres) number: i64,
}

/// The phase of a transaction with respect to pending completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum CompletionPhase {
    /// No completions are pending.
    None,
    /// Completions are pending, and must be consumed before anything else is decided.
    Found,
    /// The transaction is consuming them.
    Consuming,
    /// The transaction has consumed them, and decides the calls next.
    Consumed,
}

/// The state of the store after the writer's last transaction.
#[derive(Debug)]
pub(in crate::postgres) struct WriterState {
    pub(in crate::postgres) commit_id: CommitId,
    /// The small state and its version.
    pub(in crate::postgres) items: Option<(i64, SmallState)>,
    /// The number of the writer's last transaction among all that write to the store, and the
    /// store's counters after it; `None` before the first write.
    pub(in crate::postgres) write: Option<(i64, Counters)>,
    /// The tasks that the writer has loaded or written.
    pub(in crate::postgres) row_cache: RowCache,
    /// The time of the last transaction.
    pub(in crate::postgres) time: Option<Now>,
    /// The latest day on which a task had ended at that time, and one of its queues.
    pub(in crate::postgres) latest_day: Option<(i64, String)>,
    /// The number of further transactions before which other writers are expected to commit. While
    /// it is above 0, the writer does not use its row cache on the assumption that no other writer
    /// commits.
    pub(in crate::postgres) others: u8,
    /// The sessions that this writer has opened. They survive every loss of the other state.
    pub(in crate::postgres) own_sessions: OwnSessions,
    /// The number of the last transaction that changed what runs in other writers' sessions.
    pub(in crate::postgres) invalidation: i64,
    /// The number of further transactions for which more such changes are expected.
    pub(super) invalidations: u8,
    /// True if the last claims had loaded every waiting task of every sub-queue.
    pub(in crate::postgres) all_waiting_loaded: bool,
    /// The number of further transactions for which claims are expected to search more than the
    /// first sub-queues.
    pub(in crate::postgres) every_sub_queue: u8,
    /// The phase of the running transaction with respect to completions.
    pub(in crate::postgres) completions: CompletionPhase,
}

impl WriterState {
    /// Creates the state of a writer before its first transaction, with a new random number.
    pub(in crate::postgres) fn new() -> Self {
        let writer = crate::postgres::shared::node().cast_signed();
        Self {
            commit_id: CommitId { writer, number: 0 },
            items: None,
            write: None,
            row_cache: RowCache::default(),
            time: None,
            latest_day: None,
            others: 0,
            own_sessions: OwnSessions::default(),
            invalidation: 0,
            invalidations: 0,
            all_waiting_loaded: false,
            every_sub_queue: 0,
            completions: CompletionPhase::None,
        }
    }

    /// Resets the writer after a change of the connection, or after a crash that lost its last
    /// batch. It keeps only the list of its own sessions.
    pub(in crate::postgres) fn again(&mut self) {
        *self = Self { own_sessions: std::mem::take(&mut self.own_sessions), ..Self::new() };
    }

    /// Drops everything that was read from the store. The writer keeps its batch number and its own
    /// sessions.
    pub(in crate::postgres) fn forget(&mut self) {
        (self.items, self.write, self.row_cache) = (None, None, RowCache::default());
    }

    /// Returns true if no other writer is expected to commit between two transactions.
    pub(in crate::postgres) fn is_alone(&self) -> bool {
        self.others == 0
    }
}
