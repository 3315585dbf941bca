//! What a writer knows of the store since its last transaction.

use crate::model::Now;
use crate::postgres::speculation::own_sessions::OwnSessions;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::small_state::SmallState;

/// What a writer has written last, which it reads again before it writes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) struct CommitId {
    /// A number that no other connection of a writer has, as good as certainly.
    pub(in crate::postgres) writer: i64,
    /// Counted from 1; 0 for none yet.
    pub(in crate::postgres) number: i64,
}

/// Whether a transaction has to do with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum CompletionPhase {
    /// There are none.
    None,
    /// There are some, which are to be taken in before anything else is decided.
    Found,
    /// It takes them in.
    Consuming,
    /// It has taken them in, and is about to do something else.
    Consumed,
}

/// What a writer knows of the store since its last transaction.
#[derive(Debug)]
pub(in crate::postgres) struct WriterState {
    pub(in crate::postgres) commit_id: CommitId,
    /// Everything that is not a task, and its version.
    pub(in crate::postgres) items: Option<(i64, SmallState)>,
    /// The number of its transaction among all that write to the store, and the numbers that it
    /// gave last; `None` if it has not written yet.
    pub(in crate::postgres) write: Option<(i64, Counters)>,
    /// What it knows of tasks.
    pub(in crate::postgres) row_cache: RowCache,
    /// The time of its transaction, and one queue of the latest day on which a task had ended then.
    pub(in crate::postgres) time: Option<Now>,
    pub(in crate::postgres) latest_day: Option<(i64, String)>,
    /// For how many transactions yet others are expected to write between them.
    pub(in crate::postgres) others: u8,
    /// The sessions that it has opened. It knows them whatever else it forgets.
    pub(in crate::postgres) own_sessions: OwnSessions,
    /// The number of the last transaction that has interfered with what runs in sessions of others.
    pub(in crate::postgres) invalidation: i64,
    /// For how many transactions yet more of that is expected.
    pub(super) invalidations: u8,
    /// Whether no sub-queue had more waiting than was loaded when it was last looked.
    pub(in crate::postgres) all_waiting_loaded: bool,
    /// For how many transactions yet claims are expected to look into more sub-queues than the
    /// first ones.
    pub(in crate::postgres) every_sub_queue: u8,
    pub(in crate::postgres) completions: CompletionPhase,
}

impl WriterState {
    /// Of a writer that knows nothing yet.
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

    /// Has it start over, on another connection or on a server that has lost what it had written
    /// last: it knows no more than which sessions it has opened.
    pub(in crate::postgres) fn again(&mut self) {
        *self = Self { own_sessions: std::mem::take(&mut self.own_sessions), ..Self::new() };
    }

    /// Has it know nothing of the store but its own last batch.
    pub(in crate::postgres) fn forget(&mut self) {
        (self.items, self.write, self.row_cache) = (None, None, RowCache::default());
    }

    /// Whether nobody else is expected to write between two transactions.
    pub(in crate::postgres) fn is_alone(&self) -> bool {
        self.others == 0
    }
}
