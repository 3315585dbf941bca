//! Tasks that were claimed and have not started.

use std::collections::VecDeque;
use std::sync::Arc;

use onward_store::TaskId;

use super::claims::fair_queueing::FairQueueing;
use super::claims::last_claim::StartOrder;
use crate::handlers::Attempt;

/// Attempts in the order in which they start. An urgent attempt that comes late goes ahead of
/// buffered ones: of all queues, or of its own queue if queues take turns, or of its own group if
/// groups share queues. If queues take turns, a late attempt also goes ahead of what other queues
/// have buffered beyond their share.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    entries: VecDeque<Entry>,
    fair: FairQueueing,
    /// The number of calls that added attempts.
    claims: u64,
}

/// A position in the order, which another attempt of the same sub-queue may take over.
#[derive(Debug)]
struct Entry {
    attempt: Arc<Attempt>,
    /// The number of the claim that brought the attempt.
    claim: u64,
    /// The virtual start time, if queues take turns.
    start_tag: u64,
}

impl Buffer {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn last(&self) -> Option<&Arc<Attempt>> {
        self.entries.back().map(|entry| &entry.attempt)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Attempt>> {
        self.entries.iter().map(|entry| &entry.attempt)
    }

    /// Adds attempts that were claimed after those in the buffer.
    pub(crate) fn add<Attempts: IntoIterator<Item = Arc<Attempt>>>(&mut self, attempts: Attempts, order: StartOrder) {
        self.claims += 1;
        self.fair.prune();
        match order {
            StartOrder::MostUrgent => self.add_by_urgency(attempts),
            StartOrder::FairQueues => self.add_fairly(attempts, false, is_of_same_queue),
            StartOrder::FairGroups => self.add_fairly(attempts, true, is_of_same_group),
            StartOrder::FairQueuesAndGroups => self.add_fairly(attempts, false, is_of_same_group),
        }
    }

    fn add_by_urgency<Attempts: IntoIterator<Item = Arc<Attempt>>>(&mut self, attempts: Attempts) {
        let before = self.len();
        let claim = self.claims;
        self.entries.extend(attempts.into_iter().map(|attempt| Entry { attempt, claim, start_tag: 0 }));
        // Late attempts are rarely urgent, so a check for order mostly avoids the sort.
        let sorted = self.iter().skip(before.saturating_sub(1)).is_sorted_by_key(|attempt| attempt.order());
        if !sorted {
            self.entries.make_contiguous().sort_by_key(|entry| entry.attempt.order());
        }
    }

    /// Adds attempts of queues or groups that take turns: in the order in which they come, but
    /// within a sub-queue the most urgent first.
    fn add_fairly<Attempts: IntoIterator<Item = Arc<Attempt>>>(
        &mut self,
        attempts: Attempts,
        by_weight: bool,
        is_same_sub_queue: impl Fn(&Attempt, &Attempt) -> bool,
    ) {
        for attempt in attempts {
            let start_tag =
                if by_weight { 0 } else { self.fair.next_start_tag(&attempt.task.queue, attempt.task.weight) };
            self.entries.push_back(Entry { attempt, claim: self.claims, start_tag });
            let at = if by_weight { self.pass_lighter_queues() } else { self.pass_later_start_tags() };
            self.order_sub_queue(at, &is_same_sub_queue);
        }
    }

    /// Moves the last attempt ahead of those of queues of a smaller weight, and returns its new
    /// position.
    fn pass_lighter_queues(&mut self) -> usize {
        self.move_ahead(|before, new| before.attempt.task.weight < new.attempt.task.weight)
    }

    /// Moves the last attempt ahead of those of earlier claims with a later start tag, and returns
    /// its new position. Attempts of the same claim keep the order that the claim chose.
    fn pass_later_start_tags(&mut self) -> usize {
        self.move_ahead(|before, new| before.claim < new.claim && new.start_tag < before.start_tag)
    }

    fn move_ahead(&mut self, goes_after: impl Fn(&Entry, &Entry) -> bool) -> usize {
        // The callers have just added an attempt, so the buffer is not empty.
        let mut at = self.len() - 1;
        while at > 0 && goes_after(&self.entries[at - 1], &self.entries[at]) {
            self.entries.swap(at - 1, at);
            at -= 1;
        }
        at
    }

    /// Lets an attempt take the position of the first less urgent one of its sub-queue, which takes
    /// the position of the next, and so on.
    fn order_sub_queue(&mut self, mut at: usize, is_same_sub_queue: impl Fn(&Attempt, &Attempt) -> bool) {
        for before in (0..at).rev() {
            let (earlier, new) = (&self.entries[before].attempt, &self.entries[at].attempt);
            if !is_same_sub_queue(earlier, new) {
                continue;
            }
            if earlier.order() <= new.order() {
                return;
            }
            self.swap_attempts(before, at);
            at = before;
        }
    }

    /// Exchanges the attempts of two positions.
    fn swap_attempts(&mut self, one: usize, other: usize) {
        let attempt = Arc::clone(&self.entries[one].attempt);
        self.entries[one].attempt = std::mem::replace(&mut self.entries[other].attempt, attempt);
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&Attempt) -> bool) {
        self.entries.retain(|entry| keep(&entry.attempt));
    }

    pub(crate) fn take_first(&mut self) -> Option<Arc<Attempt>> {
        let entry = self.entries.pop_front()?;
        self.fair.started(entry.start_tag);
        Some(entry.attempt)
    }

    /// Takes the `count` attempts that would start last.
    pub(crate) fn take_last(&mut self, count: usize) -> Vec<Arc<Attempt>> {
        let last = self.entries.split_off(self.len().saturating_sub(count));
        // Backwards, so that each queue's finish tag ends at the first of its returned starts.
        for entry in last.iter().rev() {
            self.fair.give_back(&entry.attempt.task.queue, entry.start_tag);
        }
        last.into_iter().map(|entry| entry.attempt).collect()
    }

    pub(crate) fn take(&mut self, task: TaskId) -> Option<Arc<Attempt>> {
        let at = self.iter().position(|attempt| attempt.id() == task)?;
        self.entries.remove(at).map(|entry| entry.attempt)
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
    use crate::handlers::attempt::tests::{attempt, attempt_in};

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
        buffer.add(attempts, StartOrder::FairQueues);
        assert_eq!(ids(buffer), [5, 1, 6]);
    }

    #[test]
    fn an_urgent_arrival_takes_the_next_turn_of_its_queue() {
        let mut buffer = Buffer::default();
        let buffered = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)];
        buffer.add(buffered.map(|(queue, id)| Arc::new(attempt_in(queue, id, 128))), StartOrder::FairQueues);
        buffer.add([Arc::new(attempt_in("b", 9, 255))], StartOrder::FairQueues);
        assert_eq!(ids(buffer), [1, 9, 3, 2, 5, 4]);
    }

    #[test]
    fn what_comes_late_goes_before_what_another_queue_has_buffered_beyond_its_share() {
        let mut buffer = Buffer::default();
        let of_weight = |queue: &str, id, weight| {
            let mut attempt = attempt_in(queue, id, 128);
            attempt.task.weight = weight;
            Arc::new(attempt)
        };
        buffer.add([1, 2, 3, 4].map(|id| of_weight("light", id, 1)), StartOrder::FairQueues);
        buffer.add([5, 6, 7].map(|id| of_weight("heavy", id, 2)), StartOrder::FairQueues);
        assert_eq!(ids(buffer), [1, 5, 6, 2, 7, 3, 4]);
    }

    fn of_group(group: &str, id: i64, priority: u8, weight: u32) -> Arc<Attempt> {
        let mut attempt = attempt(id, priority);
        attempt.task.group = onward_store::Name::new(group).ok();
        attempt.task.weight = weight;
        Arc::new(attempt)
    }

    #[test]
    fn an_urgent_arrival_of_a_group_that_shares_takes_the_next_turn_of_its_group() {
        for order in [StartOrder::FairGroups, StartOrder::FairQueuesAndGroups] {
            let mut buffer = Buffer::default();
            buffer.add([("a", 1), ("b", 2), ("a", 3)].map(|(group, id)| of_group(group, id, 128, 1)), order);
            buffer.add([of_group("b", 9, 255, 1)], order);
            assert_eq!(ids(buffer), [1, 9, 3, 2]);
        }
    }

    #[test]
    fn where_groups_share_queues_of_greater_weight_still_go_first() {
        let mut buffer = Buffer::default();
        buffer.add([of_group("a", 1, 128, 2), of_group("a", 2, 255, 1)], StartOrder::FairGroups);
        buffer.add([of_group("b", 3, 128, 2)], StartOrder::FairGroups);
        assert_eq!(ids(buffer), [1, 3, 2]);
    }

    #[test]
    fn what_is_given_back_is_what_would_start_last() {
        let mut buffer = buffer(&[(1, 128), (2, 128), (3, 255)]);
        let back: Vec<_> = buffer.take_last(1).iter().map(|attempt| attempt.id().0).collect();
        assert_eq!(back, [2]);
    }
}
