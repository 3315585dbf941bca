//! The order in which tasks ended.

use std::collections::BTreeSet;

use futures_util::FutureExt;
use onward_store::{Notification, NotificationReceiver, Store, TaskId, TaskNotification};

use super::arguments::Order;
use super::feed::SubmittedLine;

/// The order in which lines ended, for `--order finish`.
///
/// Each line has a future that waits for its end. When several lines end while this process is
/// busy, their futures become ready in an order of their own. The store's notifications have the
/// order of the commits.
#[derive(Debug)]
pub(super) struct EndOrder(Option<Notified>);

#[derive(Debug)]
struct Notified {
    notifications: NotificationReceiver,
    /// The lines that have not ended, by task. Lines of the same content can share a task.
    unfinished: BTreeSet<(TaskId, u64)>,
}

impl EndOrder {
    /// Creates an order without lines. Called before the first line is submitted, so that no end is
    /// missed.
    pub(super) fn new(order: Order, store: &dyn Store) -> Self {
        let notified = || Notified { notifications: store.notifications(), unfinished: BTreeSet::new() };
        Self((order == Order::Finish).then(notified))
    }

    /// Adds a line whose task may end from now on.
    pub(super) fn add(&mut self, submitted: SubmittedLine) {
        if let Some(Notified { unfinished, .. }) = &mut self.0 {
            unfinished.insert((submitted.task, submitted.position));
        }
    }

    /// Returns the positions of the lines that ended up to this one, which has ended, in order. No
    /// position is returned twice, except the last.
    pub(super) fn take_until(&mut self, submitted: SubmittedLine) -> Vec<u64> {
        let mut positions = self.0.as_mut().map_or_else(Vec::new, Notified::take_notified);
        // Another process may have run the line. Its ends come without an order.
        if let Some(Notified { unfinished, .. }) = &mut self.0 {
            unfinished.remove(&(submitted.task, submitted.position));
        }
        if !positions.contains(&submitted.position) {
            positions.push(submitted.position);
        }
        positions
    }
}

impl Notified {
    fn take_notified(&mut self) -> Vec<u64> {
        let mut positions = Vec::new();
        while let Some(Some(received)) = self.notifications.next().now_or_never() {
            let Notification::Tasks(ends) = received else { continue };
            for end in &*ends {
                if let TaskNotification::Completed { task, .. } | TaskNotification::Ended { task } = end {
                    positions.extend(self.take(*task));
                }
            }
        }
        positions
    }

    fn take(&mut self, task: TaskId) -> Vec<u64> {
        let lines: Vec<_> = self.unfinished.range((task, 0)..=(task, u64::MAX)).copied().collect();
        lines.iter().for_each(|line| _ = self.unfinished.remove(line));
        lines.into_iter().map(|(_, position)| position).collect()
    }
}

#[cfg(test)]
mod tests {
    use onward_store::MemoryStore;

    use super::*;

    fn line(number: u64) -> SubmittedLine {
        let task = TaskId(i64::try_from(number).unwrap());
        SubmittedLine { position: number, line: number, task, earlier: false }
    }

    /// Returns an order of three lines whose ends the store has notified in this order.
    fn notified(ends: [i64; 3]) -> EndOrder {
        let (sender, store) = (onward_store::NotificationSender::new(), MemoryStore::new());
        let mut order = EndOrder::new(Order::Finish, &store);
        order.0.as_mut().unwrap().notifications = sender.subscribe();
        (1..=3).for_each(|number| order.add(line(number)));
        ends.into_iter().for_each(|task| sender.notify(vec![TaskNotification::Ended { task: TaskId(task) }]));
        order
    }

    #[test]
    fn a_line_that_was_seen_first_comes_after_those_that_ended_before_it() {
        let mut order = notified([2, 3, 1]);
        assert_eq!(order.take_until(line(1)), [2, 3, 1]);
    }

    #[test]
    fn a_line_that_another_process_ran_comes_when_it_is_seen() {
        let mut order = notified([2, 3, 3]);
        assert_eq!(order.take_until(line(1)), [2, 3, 1]);
    }
}
