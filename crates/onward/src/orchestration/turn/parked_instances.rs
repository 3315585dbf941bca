//! Instances that are parked between their turns.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use metrics::Gauge;
use onward_store::TaskId;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

/// An instance that was brought to the end of its history.
pub(crate) trait Positioned {
    /// Returns true if the instance is at the end of a history of this generation and length.
    fn is_at(&self, generation: u32, length: u64) -> bool;
}

/// The parked instances of one sort, up to a limit. If the cache is full, it evicts the one whose
/// last turn is oldest.
pub(crate) struct ParkedInstances<T> {
    cached: Mutex<Cached<T>>,
    /// The number of parked instances.
    gauge: Gauge,
}

struct Cached<T> {
    parked: LruCache<TaskId, Box<T>>,
    /// Instances whose last write of a turn is in flight. A turn that begins before they are parked
    /// waits here.
    checking_in: FxHashMap<TaskId, oneshot::Receiver<Box<T>>>,
}

impl<T: Positioned> ParkedInstances<T> {
    /// Returns a cache that keeps `limit` instances, at least one.
    pub(super) fn new(limit: usize, gauge: Gauge) -> Self {
        let limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        // A cache with a capacity allocates for all of it at once.
        let mut parked = LruCache::unbounded();
        parked.resize(limit);
        Self { cached: Mutex::new(Cached { parked, checking_in: FxHashMap::default() }), gauge }
    }

    /// Takes an instance if it is at the end of its history. If its turn is being written, it waits
    /// for that.
    pub(crate) async fn check_out(&self, task: TaskId, generation: u32, length: u64) -> Option<Box<T>> {
        let (parked, checking_in) = {
            let mut cached = self.cached();
            let found = (cached.parked.pop(&task), cached.checking_in.remove(&task));
            self.measure(&cached);
            found
        };
        let instance = match (parked, checking_in) {
            (Some(instance), _) => instance,
            (None, Some(checking_in)) => checking_in.await.ok()?,
            (None, None) => return None,
        };
        instance.is_at(generation, length).then_some(instance)
    }

    /// Announces that an instance is about to be parked.
    pub(crate) fn begin_check_in(self: &Arc<Self>, task: TaskId) -> CheckIn<T> {
        self.announce(&mut self.cached(), task)
    }

    /// Takes a parked instance to run its next turn before the message that leads to it is written,
    /// if it may be planned. A turn that is claimed in the meantime waits for the check-in.
    pub(crate) fn check_out_for_plan(
        self: &Arc<Self>,
        task: TaskId,
        may_plan: impl FnOnce(&T) -> bool,
    ) -> Option<(Box<T>, CheckIn<T>)> {
        let mut cached = self.cached();
        if cached.parked.is_empty() || !cached.parked.peek(&task).is_some_and(|instance| may_plan(instance)) {
            return None;
        }
        let instance = cached.parked.pop(&task)?;
        self.measure(&cached);
        let check_in = self.announce(&mut cached, task);
        Some((instance, check_in))
    }

    fn announce(self: &Arc<Self>, cached: &mut Cached<T>, task: TaskId) -> CheckIn<T> {
        let (sender, receiver) = oneshot::channel();
        cached.checking_in.insert(task, receiver);
        CheckIn { instances: Arc::clone(self), task, sender: Some(sender) }
    }
}

impl<T> ParkedInstances<T> {
    fn cached(&self) -> MutexGuard<'_, Cached<T>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^52")]
    fn measure(&self, cached: &Cached<T>) {
        self.gauge.set(cached.parked.len() as f64);
    }

    /// Returns the tasks of the parked instances.
    pub(super) fn parked(&self) -> BTreeSet<TaskId> {
        self.cached().parked.iter().map(|(task, _)| *task).collect()
    }

    /// Evicts instances that have ended. One whose turn is being written is not kept afterwards.
    pub(super) fn evict(&self, ended: impl Iterator<Item = TaskId>) {
        let evicted: Vec<Box<T>> = {
            let mut cached = self.cached();
            if cached.parked.is_empty() && cached.checking_in.is_empty() {
                return;
            }
            let evicted = ended.filter_map(|task| {
                cached.checking_in.remove(&task);
                cached.parked.pop(&task)
            });
            let evicted = evicted.collect();
            self.measure(&cached);
            evicted
        };
        // Dropped one by one after the lock is released: the destructors are user code and may
        // panic.
        for instance in evicted {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
        }
    }
}

/// An instance whose turn is being written. If this is dropped before `finish`, the instance is
/// evicted.
pub(crate) struct CheckIn<T> {
    instances: Arc<ParkedInstances<T>>,
    task: TaskId,
    sender: Option<oneshot::Sender<Box<T>>>,
}

impl<T> CheckIn<T> {
    /// Parks the instance until its next turn, or passes it to that turn if it has begun.
    pub(crate) fn finish(mut self, instance: Box<T>) {
        let Some(sender) = self.sender.take() else { return };
        let mut cached = self.instances.cached();
        // Dropped after the lock is released: the destructors are user code.
        let _evicted = match cached.checking_in.remove(&self.task) {
            Some(_no_turn_waits) => cached.parked.push(self.task, instance).map(|(_, instance)| instance),
            None => sender.send(instance).err(),
        };
        self.instances.measure(&cached);
        drop(cached);
    }
}

impl<T> Drop for CheckIn<T> {
    fn drop(&mut self) {
        if self.sender.is_some() {
            self.instances.cached().checking_in.remove(&self.task);
        }
    }
}
