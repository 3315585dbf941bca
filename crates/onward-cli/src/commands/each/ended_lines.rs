//! The order in which ended lines are reported.

use std::collections::{BTreeMap, VecDeque};

use super::arguments::Order;
use super::feed::SubmittedLine;

/// Lines that have ended and are not reported yet.
#[derive(Debug)]
pub(super) enum EndedLines {
    /// Lines that wait for all lines before them.
    ByInput {
        /// The position of the next line to report.
        next: u64,
        /// The lines that have ended, by position.
        held: BTreeMap<u64, SubmittedLine>,
    },
    /// Lines that wait for nothing.
    ByFinish(VecDeque<SubmittedLine>),
}

impl EndedLines {
    /// Creates an empty collection.
    pub(super) fn new(order: Order) -> Self {
        match order {
            Order::Input => Self::ByInput { next: 0, held: BTreeMap::new() },
            Order::Finish => Self::ByFinish(VecDeque::new()),
        }
    }

    /// Adds a line that has ended.
    pub(super) fn push(&mut self, submitted: SubmittedLine) {
        match self {
            Self::ByInput { held, .. } => {
                held.insert(submitted.position, submitted);
            }
            Self::ByFinish(ended) => ended.push_back(submitted),
        }
    }

    /// Removes and returns the next line to report, if it has ended.
    pub(super) fn pop(&mut self) -> Option<SubmittedLine> {
        match self {
            Self::ByInput { next, held } => {
                let submitted = held.remove(next)?;
                *next += 1;
                Some(submitted)
            }
            Self::ByFinish(ended) => ended.pop_front(),
        }
    }

    /// Removes and returns all lines, in input order if that is the order.
    pub(super) fn take_all(&mut self) -> Vec<SubmittedLine> {
        match self {
            Self::ByInput { held, .. } => std::mem::take(held).into_values().collect(),
            Self::ByFinish(ended) => std::mem::take(ended).into(),
        }
    }

    /// Returns the number of lines.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::ByInput { held, .. } => held.len(),
            Self::ByFinish(ended) => ended.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use onward_store::TaskId;

    use super::*;

    fn reported(order: Order, finished: [u64; 3]) -> Vec<u64> {
        let mut ended = EndedLines::new(order);
        let mut reported = Vec::new();
        for position in finished {
            ended.push(SubmittedLine { position, line: position + 1, task: TaskId(1), earlier: false });
            reported.extend(std::iter::from_fn(|| ended.pop()).map(|submitted| submitted.position));
        }
        reported
    }

    #[test]
    fn by_input_a_line_waits_for_those_before_it() {
        assert_eq!(reported(Order::Input, [2, 0, 1]), [0, 1, 2]);
    }

    #[test]
    fn by_finish_none_waits() {
        assert_eq!(reported(Order::Finish, [2, 0, 1]), [2, 0, 1]);
    }
}
