//! A store in front of another one that counts its calls under way.

use onward_store::{
    Answer, Claim, CollectionRecord, CollectionSelection, EventCursor, EventPage, HistoryChunk, InstanceRecord,
    KindStatistics, LimitRecord, Outcome, Page, PauseRecord, QueueDay, QueueMode, QueueRecord, ScheduleRecord,
    ScheduleSelection, SessionRecord, Store, StoreDecorator, TagKeyPage, TagPage, TagValuePage, TaskFilter, TaskId,
    TaskIdPage, TaskPage, TaskRecord, WaitReason, Write,
};
use tokio::sync::watch;

/// Turns of the runtime between two calls: the reply reaches the dispatcher, the dispatcher starts
/// a handler, the handler ends, and the dispatcher makes the next call.
const TURNS: usize = 4;

/// The number of calls of a store that are under way.
#[derive(Debug, Clone)]
pub(crate) struct CallsUnderWay(watch::Sender<usize>);

impl Default for CallsUnderWay {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// A call under way. It counts as long as this value lives, even if the caller drops the call.
struct UnderWay<'a>(&'a CallsUnderWay);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| *calls -= 1);
    }
}

impl CallsUnderWay {
    fn watch<'a, T: 'a>(&'a self, answer: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            self.0.send_modify(|calls| *calls += 1);
            let _under_way = UnderWay(self);
            answer.await
        })
    }

    /// Waits until no call is under way and every task of the runtime has run since.
    pub(crate) async fn settled(&self) {
        let mut calls = self.0.subscribe();
        let mut turns = 0;
        while turns < TURNS {
            if *calls.borrow_and_update() == 0 {
                tokio::task::yield_now().await;
                turns += 1;
            } else {
                calls.changed().await.unwrap();
                turns = 0;
            }
        }
    }
}

/// A store whose calls are counted.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    pub(crate) inner: S,
    pub(crate) calls: CallsUnderWay,
}

/// Declares the counted calls: every verb that returns a future.
macro_rules! watched {
    ($(fn $verb:ident(&self $(, $argument:ident: $type:ty)*) -> $reply:ty;)*) => {
        impl<S: Store> StoreDecorator for Watched<S> {
            fn inner(&self) -> &dyn Store {
                &self.inner
            }

            $(
                fn $verb(&self $(, $argument: $type)*) -> Answer<'_, $reply> {
                    self.calls.watch(self.inner.$verb($($argument),*))
                }
            )*
        }
    };
}

watched! {
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
