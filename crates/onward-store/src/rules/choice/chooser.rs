//! The chooser, which decides whose turn it is in every mode.

use std::cmp::Reverse;

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode, QueueTurn};
use crate::rules::choice::round::Round;
use crate::rules::choice::tickets::{Tickets, next_random};

/// A candidate for turns. The order of this type is the order in which candidates are examined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueCandidate {
    /// All queues of one weight, in strict mode.
    Weight(Reverse<u32>),
    /// One queue, in the other modes.
    Queue(Name),
}

impl QueueCandidate {
    /// Returns the candidate to which a queue of this weight belongs.
    #[must_use]
    pub fn of(mode: QueueMode, queue: &Name, weight: u32) -> Self {
        match mode {
            QueueMode::Strict => Self::Weight(Reverse(weight)),
            QueueMode::Lenient | QueueMode::Interleaved => Self::Queue(queue.clone()),
        }
    }
}

/// A chooser: it picks the candidate that has the next turn. A candidate is named by its number,
/// which is its position in the order of candidates.
#[derive(Debug, Clone)]
pub struct Chooser {
    entries: Vec<Entry>,
    order: Order,
    choice: QueueChoice,
    picked: Option<usize>,
}

/// A candidate of a choice.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) candidate: QueueCandidate,
    pub(super) weight: u32,
    /// True if it has work.
    pub(super) open: bool,
}

/// The state of a mode: strict needs none, lenient draws tickets, interleaved goes round.
#[derive(Debug, Clone)]
enum Order {
    Strict,
    Lenient(Tickets),
    Interleaved(Round),
}

impl Chooser {
    /// Creates a chooser among candidates that have work, each with its weight. Each candidate is
    /// passed once. The choice continues at the position of `choice`.
    #[must_use]
    pub fn new(
        mode: QueueMode,
        choice: QueueChoice,
        candidates: impl IntoIterator<Item = (QueueCandidate, u32)>,
    ) -> Self {
        let entry = |(candidate, weight)| Entry { candidate, weight, open: true };
        let mut entries: Vec<Entry> = candidates.into_iter().map(entry).collect();
        entries.sort_by(|one, other| one.candidate.cmp(&other.candidate));
        let order = match mode {
            QueueMode::Strict => Order::Strict,
            QueueMode::Lenient => Order::Lenient(Tickets::new(&entries)),
            QueueMode::Interleaved => Order::Interleaved(Round::at(&choice.turn, &entries)),
        };
        Self { entries, order, choice, picked: None }
    }

    /// Returns the candidate with a number.
    #[must_use]
    pub fn candidate(&self, number: usize) -> Option<&QueueCandidate> {
        self.entries.get(number).map(|entry| &entry.candidate)
    }

    /// Returns the number of a candidate.
    #[must_use]
    pub fn number(&self, candidate: &QueueCandidate) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.candidate.cmp(candidate)).ok()
    }

    /// Returns the candidate that has the next turn; `None` if no candidate has work. Returns the
    /// same one until its turn is taken or a candidate is closed.
    pub fn pick(&mut self) -> Option<usize> {
        self.picked = match &mut self.order {
            Order::Strict => self.entries.iter().position(|entry| entry.open),
            Order::Lenient(tickets) => tickets.holder(self.choice.random),
            Order::Interleaved(round) => round.pick(&self.entries),
        };
        self.picked
    }

    /// Records that the picked candidate has taken its turn.
    pub fn took(&mut self) {
        match &mut self.order {
            Order::Strict => {}
            Order::Lenient(_) => self.choice.random = next_random(self.choice.random),
            Order::Interleaved(round) => round.took(),
        }
    }

    /// Records that a candidate has no more work. Closing it again has no effect.
    pub fn close(&mut self, number: usize) {
        let Some(entry) = self.entries.get_mut(number).filter(|entry| entry.open) else { return };
        entry.open = false;
        if let Order::Lenient(tickets) = &mut self.order {
            tickets.remove(number, entry.weight);
        }
    }

    /// Returns the position at which the next claim continues.
    #[must_use]
    pub fn choice(&self) -> QueueChoice {
        let Order::Interleaved(round) = &self.order else { return self.choice.clone() };
        let Some((cycle, last)) = round.last() else { return self.choice.clone() };
        let after = self.entries.get(last).and_then(|entry| match &entry.candidate {
            QueueCandidate::Queue(name) => Some(name.clone()),
            QueueCandidate::Weight(_) => None,
        });
        QueueChoice { turn: QueueTurn { cycle, after }, ..self.choice.clone() }
    }
}
