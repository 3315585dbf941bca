//! Start order of buffered tasks of queues that take turns, relative to tasks that were claimed
//! later.

use std::collections::HashMap;

use onward_store::Name;

/// The virtual time that a start costs a queue of weight 1.
const START_COST: u64 = 1 << 20;

/// Start-time fair queueing (Goyal, Vin and Cheng, 1996): a virtual time in which each start costs
/// a queue less, the greater its weight.
///
/// A task's start tag is the finish tag of the task before it in its queue, or the present virtual
/// time if that is later. A queue that was empty for a while thus does not wait behind everything
/// that other queues have buffered, and does not catch up either.
#[derive(Debug, Default)]
pub(crate) struct FairQueueing {
    virtual_time: u64,
    /// The finish tags of the queues' last tasks, if they lie in the future.
    finish_tags: HashMap<Name, u64>,
}

impl FairQueueing {
    /// Forgets queues whose finish tag has passed.
    pub(crate) fn prune(&mut self) {
        let virtual_time = self.virtual_time;
        self.finish_tags.retain(|_, finish_tag| *finish_tag > virtual_time);
    }

    /// Returns the start tag of the next task of a queue.
    pub(crate) fn next_start_tag(&mut self, queue: &Name, weight: u32) -> u64 {
        let cost = START_COST / u64::from(weight.max(1));
        let Some(finish_tag) = self.finish_tags.get_mut(queue) else {
            self.finish_tags.insert(queue.clone(), self.virtual_time.saturating_add(cost));
            return self.virtual_time;
        };
        let start = self.virtual_time.max(*finish_tag);
        *finish_tag = start.saturating_add(cost);
        start
    }

    /// Undoes the start of a queue's last task, which will not start. `start_tag` is its tag, and
    /// becomes the queue's finish tag again.
    pub(crate) fn give_back(&mut self, queue: &Name, start_tag: u64) {
        if let Some(finish_tag) = self.finish_tags.get_mut(queue) {
            *finish_tag = start_tag.min(*finish_tag);
        }
    }

    /// Advances the virtual time to the start tag of a task that has started.
    pub(crate) fn started(&mut self, start_tag: u64) {
        self.virtual_time = self.virtual_time.max(start_tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> Name {
        Name::new(name).unwrap()
    }

    #[test]
    fn a_queue_of_twice_the_weight_has_twice_the_turns_in_the_same_time() {
        let mut fair = FairQueueing::default();
        let light: Vec<_> = (0..5).map(|_| fair.next_start_tag(&queue("light"), 1)).collect();
        let heavy: Vec<_> = (0..9).map(|_| fair.next_start_tag(&queue("heavy"), 2)).collect();
        assert_eq!((light[2], light[4]), (heavy[4], heavy[8]));
    }

    #[test]
    fn a_queue_that_had_nothing_for_a_while_does_not_catch_up() {
        let mut fair = FairQueueing::default();
        fair.next_start_tag(&queue("idle"), 1);
        let busy: Vec<_> = (0..9).map(|_| fair.next_start_tag(&queue("busy"), 1)).collect();
        fair.started(busy[8]);
        assert_eq!(fair.next_start_tag(&queue("idle"), 1), busy[8]);
    }

    #[test]
    fn what_a_queue_gives_back_costs_it_nothing() {
        let mut fair = FairQueueing::default();
        let first = fair.next_start_tag(&queue("a"), 1);
        let second = fair.next_start_tag(&queue("a"), 1);
        fair.give_back(&queue("a"), second);
        fair.give_back(&queue("a"), first);
        assert_eq!(fair.next_start_tag(&queue("a"), 1), first);
    }

    #[test]
    fn queues_that_have_paid_are_forgotten() {
        let mut fair = FairQueueing::default();
        let start_tag = fair.next_start_tag(&queue("a"), 1);
        fair.started(start_tag + START_COST);
        fair.prune();
        assert!(fair.finish_tags.is_empty());
    }
}
