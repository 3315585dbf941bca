//! When buffered tasks of queues that take turns are to start, beside those that were claimed
//! later.

use std::collections::HashMap;

use onward_store::Name;

/// What a start costs a queue of weight 1, in virtual time.
const START: u64 = 1 << 20;

/// Virtual time in which each start costs a queue the less, the greater its weight: start-time fair
/// queueing (Goyal, Vin and Cheng, 1996). A task is to start when the one of its queue before it
/// has been paid for, or now if that is over, so that a queue which had nothing for a while does
/// not wait behind all that others have buffered, and does not catch up either.
#[derive(Debug, Default)]
pub(crate) struct FairTurns {
    now: u64,
    /// When what a queue has claimed will be paid for, where that is not over.
    paid: HashMap<Name, u64>,
}

impl FairTurns {
    /// Forgets the queues that have paid for all that they had.
    pub(crate) fn tidy(&mut self) {
        let now = self.now;
        self.paid.retain(|_, paid| *paid > now);
    }

    /// When the next task of a queue is to start.
    pub(crate) fn take(&mut self, queue: &Name, weight: u32) -> u64 {
        let cost = START / u64::from(weight.max(1));
        let Some(paid) = self.paid.get_mut(queue) else {
            self.paid.insert(queue.clone(), self.now.saturating_add(cost));
            return self.now;
        };
        let start = self.now.max(*paid);
        *paid = start.saturating_add(cost);
        start
    }

    /// Notes that the last task that a queue has will not start, whose turn it was at this time.
    pub(crate) fn give_back(&mut self, queue: &Name, turn: u64) {
        if let Some(paid) = self.paid.get_mut(queue) {
            *paid = turn.min(*paid);
        }
    }

    /// Notes that a task has started whose turn it was at this time.
    pub(crate) fn started(&mut self, turn: u64) {
        self.now = self.now.max(turn);
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
        let mut turns = FairTurns::default();
        let light: Vec<_> = (0..5).map(|_| turns.take(&queue("light"), 1)).collect();
        let heavy: Vec<_> = (0..9).map(|_| turns.take(&queue("heavy"), 2)).collect();
        assert_eq!((light[2], light[4]), (heavy[4], heavy[8]));
    }

    #[test]
    fn a_queue_that_had_nothing_for_a_while_does_not_catch_up() {
        let mut turns = FairTurns::default();
        turns.take(&queue("idle"), 1);
        let busy: Vec<_> = (0..9).map(|_| turns.take(&queue("busy"), 1)).collect();
        turns.started(busy[8]);
        assert_eq!(turns.take(&queue("idle"), 1), busy[8]);
    }

    #[test]
    fn what_a_queue_gives_back_costs_it_nothing() {
        let mut turns = FairTurns::default();
        let first = turns.take(&queue("a"), 1);
        let second = turns.take(&queue("a"), 1);
        turns.give_back(&queue("a"), second);
        turns.give_back(&queue("a"), first);
        assert_eq!(turns.take(&queue("a"), 1), first);
    }

    #[test]
    fn queues_that_have_paid_are_forgotten() {
        let mut turns = FairTurns::default();
        let turn = turns.take(&queue("a"), 1);
        turns.started(turn + START);
        turns.tidy();
        assert!(turns.paid.is_empty());
    }
}
