//! The chooser, whatever the mode.

use std::cmp::Reverse;

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode, QueueTurn};
use crate::rules::choice::round::Round;
use crate::rules::choice::tickets::{Tickets, next_random};

/// What takes turns: tasks that stand in one line. They are in the order in which they are looked
/// at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// All queues of one weight.
    Weight(Reverse<u32>),
    /// One queue.
    Queue(Name),
}

impl Line {
    /// The line in which a queue of this weight is.
    #[must_use]
    pub fn of(mode: QueueMode, queue: &Name, weight: u32) -> Self {
        match mode {
            QueueMode::Strict => Self::Weight(Reverse(weight)),
            QueueMode::Lenient | QueueMode::Interleaved => Self::Queue(queue.clone()),
        }
    }
}

/// Says whose turn it is.
#[derive(Debug, Clone)]
pub struct Chooser {
    members: Vec<Member>,
    order: Order,
    choice: QueueChoice,
    picked: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) line: Line,
    pub(super) weight: u32,
    /// Whether it has work.
    pub(super) open: bool,
}

#[derive(Debug, Clone)]
enum Order {
    Strict,
    Lenient(Tickets),
    Interleaved(Round),
}

impl Chooser {
    /// A chooser among lines that have work, each with its weight and named once, that goes on
    /// where `choice` stands.
    #[must_use]
    pub fn new(mode: QueueMode, choice: QueueChoice, lines: impl IntoIterator<Item = (Line, u32)>) -> Self {
        let member = |(line, weight)| Member { line, weight, open: true };
        let mut members: Vec<Member> = lines.into_iter().map(member).collect();
        members.sort_by(|one, other| one.line.cmp(&other.line));
        let order = match mode {
            QueueMode::Strict => Order::Strict,
            QueueMode::Lenient => Order::Lenient(Tickets::new(&members)),
            QueueMode::Interleaved => Order::Interleaved(Round::at(&choice.turn, &members)),
        };
        Self { members, order, choice, picked: None }
    }

    /// A line by its number.
    #[must_use]
    pub fn line(&self, number: usize) -> Option<&Line> {
        self.members.get(number).map(|member| &member.line)
    }

    /// The number of a line.
    #[must_use]
    pub fn number(&self, line: &Line) -> Option<usize> {
        self.members.binary_search_by(|member| member.line.cmp(line)).ok()
    }

    /// Whose turn it is; `None` if nobody has work. Asked again, it answers the same until a turn
    /// was taken or a line closed.
    pub fn pick(&mut self) -> Option<usize> {
        self.picked = match &mut self.order {
            Order::Strict => self.members.iter().position(|member| member.open),
            Order::Lenient(tickets) => tickets.holder(self.choice.random),
            Order::Interleaved(round) => round.pick(&self.members),
        };
        self.picked
    }

    /// Notes that the line that was picked last has taken its turn.
    pub fn took(&mut self) {
        match &mut self.order {
            Order::Strict => {}
            Order::Lenient(_) => self.choice.random = next_random(self.choice.random),
            Order::Interleaved(round) => round.took(),
        }
    }

    /// Notes that a line has no more work. Closing it again changes nothing.
    pub fn close(&mut self, number: usize) {
        let Some(member) = self.members.get_mut(number).filter(|member| member.open) else { return };
        member.open = false;
        if let Order::Lenient(tickets) = &mut self.order {
            tickets.remove(number, member.weight);
        }
    }

    /// Where the next claim is to go on.
    #[must_use]
    pub fn choice(&self) -> QueueChoice {
        let Order::Interleaved(round) = &self.order else { return self.choice.clone() };
        let Some((cycle, last)) = round.last() else { return self.choice.clone() };
        let after = self.members.get(last).and_then(|member| match &member.line {
            Line::Queue(name) => Some(name.clone()),
            Line::Weight(_) => None,
        });
        QueueChoice { turn: QueueTurn { cycle, after }, ..self.choice.clone() }
    }
}
