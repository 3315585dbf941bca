//! Instances that are parked between their turns.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
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
    checking_in: FxHashMap<TaskId, CheckingIn<T>>,
}

/// An instance whose turn is being written.
struct CheckingIn<T> {
    instance: oneshot::Receiver<Box<T>>,
    /// The references of the tasks that the turn submits.
    children: Option<RangeInclusive<u64>>,
    /// Dropped with this entry, which tells the ends of these tasks that the instance is parked.
    waiting: Vec<oneshot::Sender<Infallible>>,
    /// True if another end would have been planned on the instance.
    is_wanted: bool,
}

/// The time until the instance that submitted a task is parked. Nothing is ever sent: the sender
/// is dropped.
pub(super) type UntilParked = oneshot::Receiver<Infallible>;

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
            (None, Some(checking_in)) => checking_in.instance.await.ok()?,
            (None, None) => return None,
        };
        instance.is_at(generation, length).then_some(instance)
    }

    /// Announces that an instance is about to be parked.
    pub(crate) fn begin_check_in(self: &Arc<Self>, task: TaskId) -> CheckIn<T> {
        self.announce(&mut self.cached(), task)
    }

    /// Returns the time until an instance is parked, if the turn that is being written submits the
    /// task with this reference. A task that runs was submitted, so the turn was written and its
    /// reply is under way: the instance will be parked soon, but perhaps not before the task ends.
    pub(super) fn until_parked(&self, task: TaskId, reference: u64) -> Option<UntilParked> {
        let mut cached = self.cached();
        if cached.checking_in.is_empty() {
            return None;
        }
        let checking_in = cached.checking_in.get_mut(&task)?;
        let (sender, until_parked) = oneshot::channel();
        checking_in.children.as_ref()?.contains(&reference).then(|| checking_in.waiting.push(sender))?;
        Some(until_parked)
    }

    /// Takes a parked instance to run its next turn before the message that leads to it is written,
    /// if it may be planned. A turn that is claimed in the meantime waits for the check-in.
    pub(crate) fn check_out_for_plan(
        self: &Arc<Self>,
        task: TaskId,
        may_plan: impl FnOnce(&T) -> bool,
    ) -> Option<(Box<T>, CheckIn<T>)> {
        let mut cached = self.cached();
        if let Some(checking_in) = cached.checking_in.get_mut(&task) {
            checking_in.is_wanted = true;
            return None;
        }
        if cached.parked.is_empty() || !cached.parked.peek(&task).is_some_and(|instance| may_plan(instance)) {
            return None;
        }
        let instance = cached.parked.pop(&task)?;
        self.measure(&cached);
        let check_in = self.announce(&mut cached, task);
        Some((instance, check_in))
    }

    fn announce(self: &Arc<Self>, cached: &mut Cached<T>, task: TaskId) -> CheckIn<T> {
        let (sender, instance) = oneshot::channel();
        let checking_in = CheckingIn { instance, children: None, waiting: Vec::new(), is_wanted: false };
        cached.checking_in.insert(task, checking_in);
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
    /// Notes the references of the tasks that the turn submits, before it is written.
    pub(crate) fn submits(&self, references: impl Iterator<Item = u64>) {
        let children = range_of(references);
        if let Some(checking_in) = self.instances.cached().checking_in.get_mut(&self.task) {
            checking_in.children = children;
        }
    }

    /// Parks the instance until its next turn, or passes it to that turn if it has begun. Returns
    /// true if a turn or another end wanted the instance in the meantime.
    pub(crate) fn finish(mut self, instance: Box<T>) -> bool {
        let Some(sender) = self.sender.take() else { return false };
        let mut cached = self.instances.cached();
        // Dropped after the lock is released: the destructors are user code.
        let (_evicted, was_wanted) = match cached.checking_in.remove(&self.task) {
            Some(CheckingIn { is_wanted, .. }) => {
                (cached.parked.push(self.task, instance).map(|(_, instance)| instance), is_wanted)
            }
            None => (sender.send(instance).err(), true),
        };
        self.instances.measure(&cached);
        drop(cached);
        was_wanted
    }
}

impl<T> Drop for CheckIn<T> {
    fn drop(&mut self) {
        if self.sender.is_some() {
            self.instances.cached().checking_in.remove(&self.task);
        }
    }
}

/// Returns the range of some references, which go up by one from task to task.
fn range_of(references: impl Iterator<Item = u64>) -> Option<RangeInclusive<u64>> {
    references.fold(None, |range, reference| match range {
        None => Some(reference..=reference),
        Some(range) => Some(reference.min(*range.start())..=reference.max(*range.end())),
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use metrics::Gauge;

    use super::*;

    const TASK: TaskId = TaskId(7);

    #[derive(Debug)]
    struct Instance;

    impl Positioned for Instance {
        fn is_at(&self, _: u32, _: u64) -> bool {
            true
        }
    }

    fn instances() -> Arc<ParkedInstances<Instance>> {
        Arc::new(ParkedInstances::new(10, Gauge::noop()))
    }

    #[test]
    fn the_end_of_a_task_waits_until_the_turn_that_submitted_it_has_parked_its_instance() {
        let instances = instances();
        let check_in = instances.begin_check_in(TASK);
        check_in.submits(4..=6);
        let mut until_parked = instances.until_parked(TASK, 5).unwrap();
        assert!((&mut until_parked).now_or_never().is_none());
        assert!(!check_in.finish(Box::new(Instance)));
        assert!(until_parked.now_or_never().unwrap().is_err());
        assert!(instances.check_out_for_plan(TASK, |_| true).is_some());
    }

    #[test]
    fn the_end_of_an_earlier_task_does_not_wait_for_a_turn() {
        let instances = instances();
        let check_in = instances.begin_check_in(TASK);
        check_in.submits(4..=5);
        assert!(instances.until_parked(TASK, 3).is_none());
        assert!(instances.until_parked(TaskId(8), 4).is_none());
    }

    #[test]
    fn an_instance_is_wanted_by_another_end_and_by_a_turn() {
        let instances = instances();
        assert!(!instances.begin_check_in(TASK).finish(Box::new(Instance)));
        let (instance, check_in) = instances.check_out_for_plan(TASK, |_| true).unwrap();
        assert!(instances.check_out_for_plan(TASK, |_| true).is_none());
        assert!(check_in.finish(instance));
        let (instance, check_in) = instances.check_out_for_plan(TASK, |_| true).unwrap();
        let mut turn = Box::pin(instances.check_out(TASK, 0, 0));
        assert!((&mut turn).now_or_never().is_none());
        assert!(check_in.finish(instance));
    }

    #[test]
    fn a_turn_that_was_not_written_releases_the_ends_that_wait() {
        let instances = instances();
        let check_in = instances.begin_check_in(TASK);
        check_in.submits(4..=4);
        let until_parked = instances.until_parked(TASK, 4).unwrap();
        drop(check_in);
        assert!(until_parked.now_or_never().is_some());
    }
}
