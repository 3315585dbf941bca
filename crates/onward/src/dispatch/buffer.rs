//! Tasks that were claimed and have not started.

use std::collections::VecDeque;
use std::sync::Arc;

use onward_store::TaskId;

use crate::attempt::Attempt;

/// Attempts in the order in which they start: the most urgent first, then the oldest. What is urgent and comes late goes before
/// what is here.
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

    pub(crate) fn add<Attempts: IntoIterator<Item = Arc<Attempt>>>(&mut self, attempts: Attempts) {
        let before = self.0.len();
        self.0.extend(attempts);
        let sorted = self.0.iter().skip(before.saturating_sub(1)).is_sorted_by_key(|attempt| attempt.order());
        if !sorted {
            self.0.make_contiguous().sort_by_key(|attempt| attempt.order());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::tests::attempt;

    fn buffer(tasks: &[(i64, u8)]) -> Buffer {
        let mut buffer = Buffer::default();
        for &(id, priority) in tasks {
            buffer.add([Arc::new(attempt(id, priority))]);
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
    fn what_is_given_back_is_what_would_start_last() {
        let mut buffer = buffer(&[(1, 128), (2, 128), (3, 255)]);
        let back: Vec<_> = buffer.take_last(1).iter().map(|attempt| attempt.id().0).collect();
        assert_eq!(back, [2]);
    }
}
