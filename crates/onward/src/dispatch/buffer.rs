//! Tasks that were claimed and have not started.

use std::collections::VecDeque;
use std::sync::Arc;

use onward_store::TaskId;

use super::choosing::StartOrder;
use crate::attempt::Attempt;

/// Attempts in the order in which they start. What is urgent and comes late goes before what is here: of all queues, or of its own
/// where queues take turns, or of its own group where groups share queues.
#[derive(Debug, Default)]
pub(crate) struct Buffer(VecDeque<Arc<Attempt>>);

impl Buffer {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn first(&self) -> Option<&Arc<Attempt>> {
        self.0.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Attempt>> {
        self.0.iter()
    }

    /// Adds attempts that were claimed after those that are here.
    pub(crate) fn add<Attempts: IntoIterator<Item = Arc<Attempt>>>(&mut self, attempts: Attempts, order: StartOrder) {
        match order {
            StartOrder::MostUrgent => self.add_by_urgency(attempts),
            StartOrder::QueuesInTurn => self.add_in_turn(attempts, false, is_of_same_queue),
            StartOrder::GroupsInTurn => self.add_in_turn(attempts, true, is_of_same_group),
            StartOrder::QueuesAndGroupsInTurn => self.add_in_turn(attempts, false, is_of_same_group),
        }
    }

    fn add_by_urgency<Attempts: IntoIterator<Item = Arc<Attempt>>>(&mut self, attempts: Attempts) {
        let before = self.0.len();
        self.0.extend(attempts);
        let sorted = self.0.iter().skip(before.saturating_sub(1)).is_sorted_by_key(|attempt| attempt.order());
        if !sorted {
            self.0.make_contiguous().sort_by_key(|attempt| attempt.order());
        }
    }

    /// Adds attempts of queues or groups that take turns: in the order in which they come, but within a line the most urgent first.
    fn add_in_turn<Attempts: IntoIterator<Item = Arc<Attempt>>>(
        &mut self,
        attempts: Attempts,
        by_weight: bool,
        is_of_same_line: impl Fn(&Attempt, &Attempt) -> bool,
    ) {
        for attempt in attempts {
            self.0.push_back(attempt);
            let at = if by_weight { self.pass_lighter() } else { self.0.len() - 1 };
            self.settle(at, &is_of_same_line);
        }
    }

    /// Has the last attempt go before those of queues of a smaller weight; answers where it is then.
    fn pass_lighter(&mut self) -> usize {
        let mut at = self.0.len() - 1;
        while at > 0 && self.0[at - 1].task.weight < self.0[at].task.weight {
            self.0.swap(at - 1, at);
            at -= 1;
        }
        at
    }

    /// Has an attempt take the turn of the first of its line that is to start after it, that one the turn of the next, and so on.
    fn settle(&mut self, mut at: usize, is_of_same_line: impl Fn(&Attempt, &Attempt) -> bool) {
        for before in (0..at).rev() {
            if !is_of_same_line(&self.0[before], &self.0[at]) {
                continue;
            }
            if self.0[before].order() <= self.0[at].order() {
                return;
            }
            self.0.swap(before, at);
            at = before;
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&Attempt) -> bool) {
        self.0.retain(|attempt| keep(attempt));
    }

    pub(crate) fn take_first(&mut self) -> Option<Arc<Attempt>> {
        self.0.pop_front()
    }

    /// Takes the `count` that would start last.
    pub(crate) fn take_last(&mut self, count: usize) -> Vec<Arc<Attempt>> {
        self.0.split_off(self.0.len().saturating_sub(count)).into()
    }

    pub(crate) fn take(&mut self, task: TaskId) -> Option<Arc<Attempt>> {
        let at = self.0.iter().position(|attempt| attempt.id() == task)?;
        self.0.remove(at)
    }
}

fn is_of_same_queue(one: &Attempt, other: &Attempt) -> bool {
    one.task.queue == other.task.queue
}

fn is_of_same_group(one: &Attempt, other: &Attempt) -> bool {
    is_of_same_queue(one, other) && one.task.group == other.task.group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::tests::{attempt, attempt_in};

    fn buffer(tasks: &[(i64, u8)]) -> Buffer {
        let mut buffer = Buffer::default();
        for &(id, priority) in tasks {
            buffer.add([Arc::new(attempt(id, priority))], StartOrder::MostUrgent);
        }
        buffer
    }

    fn ids(mut buffer: Buffer) -> Vec<i64> {
        std::iter::from_fn(|| buffer.take_first()).map(|attempt| attempt.id().0).collect()
    }

    #[test]
    fn an_urgent_arrival_goes_before_what_is_buffered() {
        assert_eq!(ids(buffer(&[(1, 128), (2, 128), (3, 255)])), [3, 1, 2]);
    }

    #[test]
    fn an_older_task_goes_first_within_one_priority() {
        assert_eq!(ids(buffer(&[(2, 128), (1, 128)])), [1, 2]);
    }

    #[test]
    fn queues_that_take_turns_start_in_the_order_of_their_turns() {
        let mut buffer = Buffer::default();
        let attempts = [("a", 5), ("b", 1), ("a", 6)].map(|(queue, id)| Arc::new(attempt_in(queue, id, 128)));
        buffer.add(attempts, StartOrder::QueuesInTurn);
        assert_eq!(ids(buffer), [5, 1, 6]);
    }

    #[test]
    fn an_urgent_arrival_takes_the_next_turn_of_its_queue() {
        let mut buffer = Buffer::default();
        let buffered = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)];
        buffer.add(buffered.map(|(queue, id)| Arc::new(attempt_in(queue, id, 128))), StartOrder::QueuesInTurn);
        buffer.add([Arc::new(attempt_in("b", 9, 255))], StartOrder::QueuesInTurn);
        assert_eq!(ids(buffer), [1, 9, 3, 2, 5, 4]);
    }

    fn of_group(group: &str, id: i64, priority: u8, weight: u32) -> Arc<Attempt> {
        let mut attempt = attempt(id, priority);
        attempt.task.group = onward_store::Name::new(group).ok();
        attempt.task.weight = weight;
        Arc::new(attempt)
    }

    #[test]
    fn an_urgent_arrival_of_a_group_that_shares_takes_the_next_turn_of_its_group() {
        for order in [StartOrder::GroupsInTurn, StartOrder::QueuesAndGroupsInTurn] {
            let mut buffer = Buffer::default();
            buffer.add([("a", 1), ("b", 2), ("a", 3)].map(|(group, id)| of_group(group, id, 128, 1)), order);
            buffer.add([of_group("b", 9, 255, 1)], order);
            assert_eq!(ids(buffer), [1, 9, 3, 2]);
        }
    }

    #[test]
    fn where_groups_share_queues_of_greater_weight_still_go_first() {
        let mut buffer = Buffer::default();
        buffer.add([of_group("a", 1, 128, 2), of_group("a", 2, 255, 1)], StartOrder::GroupsInTurn);
        buffer.add([of_group("b", 3, 128, 2)], StartOrder::GroupsInTurn);
        assert_eq!(ids(buffer), [1, 3, 2]);
    }

    #[test]
    fn what_is_given_back_is_what_would_start_last() {
        let mut buffer = buffer(&[(1, 128), (2, 128), (3, 255)]);
        let back: Vec<_> = buffer.take_last(1).iter().map(|attempt| attempt.id().0).collect();
        assert_eq!(back, [2]);
    }
}
