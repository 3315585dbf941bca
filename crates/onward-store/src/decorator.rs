//! Decorators: stores in front of other stores.

use std::fmt;
use std::sync::Arc;

use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::news::NewsReceiver;
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::outcome::Outcome;
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    Answer, Changes, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreInfo, TaskFilter,
    TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::{Claim, Write};
use crate::clock::Clock;

/// Declares [`StoreDecorator`] and its conversion to a [`Store`] from the methods of the storage
/// interface, so that each of them is listed once.
macro_rules! decorator {
    ($(fn $verb:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        /// A store in front of another store, for example one that counts, delays or fails calls.
        ///
        /// An implementation overrides the methods that it changes. All others are passed to
        /// [`inner`](Self::inner). Every implementation is a [`Store`].
        ///
        /// ```
        /// use std::sync::Arc;
        /// use std::sync::atomic::{AtomicU64, Ordering};
        ///
        /// use onward_store::{Answer, Outcome, Store, Write};
        ///
        /// #[derive(Debug)]
        /// struct Counting {
        ///     inner: Arc<dyn Store>,
        ///     calls: AtomicU64,
        /// }
        ///
        /// impl onward_store::StoreDecorator for Counting {
        ///     fn inner(&self) -> &dyn Store {
        ///         &*self.inner
        ///     }
        ///
        ///     fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>> {
        ///         self.calls.fetch_add(1, Ordering::Relaxed);
        ///         self.inner.apply(writes)
        ///     }
        /// }
        ///
        /// fn behind_it(store: Counting) -> Arc<dyn Store> {
        ///     Arc::new(store)
        /// }
        /// ```
        ///
        /// The methods have the names of the methods of [`Store`], so bring only one of the two
        /// traits into scope. [`Store::as_any`] is not passed on, because operations of one backend
        /// would bypass the decorator.
        pub trait StoreDecorator: fmt::Debug + Send + Sync + 'static {
            /// Returns the store behind the decorator. It is called once for each call that is
            /// passed on.
            fn inner(&self) -> &dyn Store;

            $(
                #[doc = concat!("As [`Store::", stringify!($verb), "`]; passed on unless it is said here.")]
                fn $verb(&self $(, $argument: $type)*) -> $answer {
                    self.inner().$verb($($argument),*)
                }
            )*
        }

        impl<D: StoreDecorator> Store for D {
            $(
                fn $verb(&self $(, $argument: $type)*) -> $answer {
                    StoreDecorator::$verb(self $(, $argument)*)
                }
            )*
        }
    };
}

decorator! {
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>>;
    fn changes(&self) -> Changes;
    fn news(&self) -> NewsReceiver;
    fn clock(&self) -> Arc<dyn Clock>;
    fn claim_size(&self) -> usize;
    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>>;
    fn why(&self, task: TaskId) -> Answer<'_, Option<Vec<WaitReason>>>;
    fn tasks(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskPage>;
    fn peek(&self, claim: Claim) -> Answer<'_, Option<TaskRecord>>;
    fn queues(&self) -> Answer<'_, Vec<QueueRecord>>;
    fn queue_mode(&self) -> Answer<'_, QueueMode>;
    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>>;
    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>>;
    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>>;
    fn limits(&self) -> Answer<'_, Vec<LimitRecord>>;
    fn collections(&self, which: CollectionSelection) -> Answer<'_, Vec<CollectionRecord>>;
    fn schedules(&self, which: ScheduleSelection) -> Answer<'_, Vec<ScheduleRecord>>;
    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage>;
    fn info(&self) -> StoreInfo;
    fn task_ids(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskIdPage>;
    fn count(&self, filter: TaskFilter) -> Answer<'_, u64>;
    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> Answer<'_, TagValuePage>;
    fn tag_keys(&self, prefix: String, page: TagPage) -> Answer<'_, TagKeyPage>;
    fn history(&self, days: u32) -> Answer<'_, Vec<QueueDay>>;
    fn instance(&self, task: TaskId) -> Answer<'_, Option<InstanceRecord>>;
    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Answer<'_, Vec<HistoryChunk>>;
}
