//! The round of the interleaved mode.

use crate::api::queue::QueueTurn;
use crate::rules::choice::chooser::{Entry, QueueCandidate};

/// A round of interleaved weighted round robin. It is divided into cycles: in cycle `c` each entry
/// with a weight of at least `c` has one turn.
#[derive(Debug, Clone)]
pub(super) struct Round {
    cycle: u32,
    /// The numbers of the entries whose weight reaches this cycle, in order. The turns of a later
    /// cycle are a subset, so entries are only removed until the round ends.
    turns: Vec<usize>,
    /// The index in `turns` of the next turn.
    at: usize,
    /// The cycle of the last turn, and the number of the entry that had it.
    last: Option<(u32, usize)>,
}

impl Round {
    /// Returns the round at the position after the turn that the last claim ended with. Entries may
    /// have come or gone since, so the position is found by the name of the queue.
    pub(super) fn at(turn: &QueueTurn, entries: &[Entry]) -> Self {
        let cycle = turn.cycle.max(1);
        let turns: Vec<usize> = (0..entries.len()).filter(|number| entries[*number].weight >= cycle).collect();
        let had = |number: &usize| match (&entries[*number].candidate, &turn.after) {
            (QueueCandidate::Queue(name), Some(after)) => name <= after,
            _ => false,
        };
        let at = turns.partition_point(had);
        Self { cycle, turns, at, last: None }
    }

    /// Returns the entry that has the next turn, and skips entries without work.
    pub(super) fn pick(&mut self, entries: &[Entry]) -> Option<usize> {
        loop {
            while let Some(number) = self.turns.get(self.at) {
                if entries[*number].open {
                    return Some(*number);
                }
                self.at += 1;
            }
            self.next_cycle(entries);
            if self.turns.is_empty() {
                return None;
            }
        }
    }

    /// Moves to the next cycle, or to the first cycle of a new round.
    fn next_cycle(&mut self, entries: &[Entry]) {
        self.at = 0;
        self.cycle += 1;
        self.turns.retain(|number| entries[*number].open && entries[*number].weight >= self.cycle);
        // After the last cycle, a new round begins with all entries that have work.
        if self.turns.is_empty() {
            self.cycle = 1;
            self.turns = (0..entries.len()).filter(|number| entries[*number].open).collect();
        }
    }

    /// Returns the cycle of the last turn, and the number of the entry that had it.
    pub(super) fn last(&self) -> Option<(u32, usize)> {
        self.last
    }

    /// Records that the entry that was picked has taken its turn.
    pub(super) fn took(&mut self) {
        self.last = self.turns.get(self.at).map(|number| (self.cycle, *number));
        self.at += 1;
    }
}
