//! A guard that keeps the code of orchestrations from the store of its engine. A replay would
//! repeat such a call, and no history records it. The guard rejects every call, because its success
//! would depend on the store.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use onward_store::{
    Answer, Changes, Claim, Clock, CollectionRecord, CollectionSelection, Error, EventCursor, EventPage, HistoryChunk,
    InstanceRecord, KindStatistics, LimitRecord, NewsReceiver, Outcome, Page, PauseRecord, QueueDay, QueueMode,
    QueueRecord, ScheduleRecord, ScheduleSelection, SessionRecord, Store, StoreInfo, TagKeyPage, TagPage, TagValuePage,
    TaskFilter, TaskId, TaskIdPage, TaskPage, TaskRecord, WaitReason, Write,
};

thread_local! {
    /// True while the code of an orchestration runs on this thread.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the code of an orchestration, which may not call an engine in the meantime.
pub(super) fn without_store<R>(code: impl FnOnce() -> R) -> R {
    /// A guard that restores the earlier value, even after a panic.
    struct Restored(bool);

    impl Drop for Restored {
        fn drop(&mut self) {
            IS_GUARDED.set(self.0);
        }
    }

    let _restored = Restored(IS_GUARDED.replace(true));
    code()
}

/// Returns an error if the code of an orchestration runs on this thread.
///
/// # Errors
/// An error whose text names the alternatives.
pub(crate) fn check() -> onward_store::Result<()> {
    if IS_GUARDED.get() { Err(refused()) } else { Ok(()) }
}

#[cold]
fn refused() -> Error {
    Error::invalid(
        "the code of an orchestration called its engine, which a replay would do again; submit with `context.activity`, \
         `context.orchestration` or `context.detach`, wait with `context.event`, and do anything else in a `context.step` or an \
         activity",
    )
}

/// The store of an engine, which rejects calls from the code of an orchestration.
#[derive(Debug)]
pub(crate) struct GuardedStore(Arc<dyn Store>);

impl GuardedStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

/// Defines the methods that call the store.
macro_rules! asked {
    ($(fn $verb:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $verb(&self $(, $argument: $type)*) -> Answer<'_, $answer> {
            match check() {
                Ok(()) => self.0.$verb($($argument),*),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })*
    };
}

impl Store for GuardedStore {
    asked! {
        fn apply(&self, writes: Vec<Write>) -> Vec<Outcome>;
        fn task(&self, task: TaskId) -> Option<TaskRecord>;
        fn why(&self, task: TaskId) -> Option<Vec<WaitReason>>;
        fn tasks(&self, filter: TaskFilter, page: Page) -> TaskPage;
        fn peek(&self, claim: Claim) -> Option<TaskRecord>;
        fn queues(&self) -> Vec<QueueRecord>;
        fn queue_mode(&self) -> QueueMode;
        fn statistics(&self) -> Vec<KindStatistics>;
        fn sessions(&self) -> Vec<SessionRecord>;
        fn pauses(&self) -> Vec<PauseRecord>;
        fn limits(&self) -> Vec<LimitRecord>;
        fn collections(&self, which: CollectionSelection) -> Vec<CollectionRecord>;
        fn schedules(&self, which: ScheduleSelection) -> Vec<ScheduleRecord>;
        fn events(&self, after: EventCursor, limit: usize) -> EventPage;
        fn task_ids(&self, filter: TaskFilter, page: Page) -> TaskIdPage;
        fn count(&self, filter: TaskFilter) -> u64;
        fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> TagValuePage;
        fn tag_keys(&self, prefix: String, page: TagPage) -> TagKeyPage;
        fn history(&self, days: u32) -> Vec<QueueDay>;
        fn instance(&self, task: TaskId) -> Option<InstanceRecord>;
        fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Vec<HistoryChunk>;
    }

    fn changes(&self) -> Changes {
        self.0.changes()
    }

    fn news(&self) -> NewsReceiver {
        self.0.news()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn claim_size(&self) -> usize {
        self.0.claim_size()
    }

    fn info(&self) -> StoreInfo {
        self.0.info()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.0.as_any()
    }
}
