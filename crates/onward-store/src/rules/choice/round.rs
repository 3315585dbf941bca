//! The round of the interleaved mode.

use crate::api::queue::QueueTurn;
use crate::rules::choice::chooser::{Line, Member};

/// A round of interleaved weighted round robin.
#[derive(Debug, Clone)]
pub(super) struct Round {
    cycle: u32,
    /// The numbers of the members whose weight reaches this cycle, in order. Later cycles have a
    /// subset.
    turns: Vec<usize>,
    /// The index in `turns` of the next turn.
    at: usize,
    /// The cycle of the last turn, and the number of the member that had it.
    last: Option<(u32, usize)>,
}

impl Round {
    pub(super) fn at(turn: &QueueTurn, members: &[Member]) -> Self {
        let cycle = turn.cycle.max(1);
        let turns: Vec<usize> = (0..members.len()).filter(|number| members[*number].weight >= cycle).collect();
        let had = |number: &usize| match (&members[*number].line, &turn.after) {
            (Line::Queue(name), Some(after)) => name <= after,
            _ => false,
        };
        let at = turns.partition_point(had);
        Self { cycle, turns, at, last: None }
    }

    pub(super) fn pick(&mut self, members: &[Member]) -> Option<usize> {
        loop {
            while let Some(number) = self.turns.get(self.at) {
                if members[*number].open {
                    return Some(*number);
                }
                self.at += 1;
            }
            self.next_cycle(members);
            if self.turns.is_empty() {
                return None;
            }
        }
    }

    fn next_cycle(&mut self, members: &[Member]) {
        self.at = 0;
        self.cycle += 1;
        self.turns.retain(|number| members[*number].open && members[*number].weight >= self.cycle);
        // After the last cycle, a new round begins with all members that have work.
        if self.turns.is_empty() {
            self.cycle = 1;
            self.turns = (0..members.len()).filter(|number| members[*number].open).collect();
        }
    }

    /// Returns the cycle of the last turn, and the number of the member that had it.
    pub(super) fn last(&self) -> Option<(u32, usize)> {
        self.last
    }

    pub(super) fn took(&mut self) {
        self.last = self.turns.get(self.at).map(|number| (self.cycle, *number));
        self.at += 1;
    }
}
