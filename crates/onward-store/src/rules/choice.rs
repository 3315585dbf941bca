//! Which queue the next turn belongs to.
//!
//! A claim hands out tasks in turns, one each. The chooser says whose turn it is among those that have work; whoever asks takes that
//! one's first task and says so. What is left over from one claim to the next is a [`QueueChoice`], a value, so that a claim of one
//! task at a time is as fair as one of thousands.
//!
//! * **Strict**: the highest weight first.
//! * **Lenient**: a lottery (Waldspurger and Weihl, "Lottery scheduling: flexible proportional-share resource management", 1994):
//!   each queue holds as many tickets as its weight.
//! * **Interleaved**: interleaved weighted round robin (Katevenis, Sidiropoulos and Courcoubetis, "Weighted round-robin cell
//!   multiplexing in a general-purpose ATM switch chip", 1991): a round has as many cycles as the largest weight; in cycle `c` each
//!   queue of a weight of at least `c` has one turn. Over as many turns as all weights together, wherever they begin, each queue
//!   that has work throughout gets at least its weight, and exactly that if all have.
//!
//! Cost of a turn: constant for interleaved (over a round), the logarithm of the number of queues for lenient, the number of different
//! weights for strict.

use std::cmp::Reverse;

use crate::name::Name;
use crate::queue::{QueueChoice, QueueMode, QueueTurn};

/// What takes turns: tasks that stand in one line. They are in the order in which they are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// All queues of one weight.
    Weight(Reverse<u32>),
    /// One queue.
    Queue(Name),
}

impl Group {
    /// The group in which a queue of this weight is.
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
struct Member {
    group: Group,
    weight: u32,
    /// Whether it has work.
    open: bool,
}

#[derive(Debug, Clone)]
enum Order {
    Strict,
    Lenient(Tickets),
    Interleaved(Round),
}

impl Chooser {
    /// A chooser among groups that have work, each with its weight and named once, that goes on where `choice` stands.
    #[must_use]
    pub fn new(mode: QueueMode, choice: QueueChoice, groups: impl IntoIterator<Item = (Group, u32)>) -> Self {
        let member = |(group, weight)| Member { group, weight, open: true };
        let mut members: Vec<Member> = groups.into_iter().map(member).collect();
        members.sort_by(|one, other| one.group.cmp(&other.group));
        let order = match mode {
            QueueMode::Strict => Order::Strict,
            QueueMode::Lenient => Order::Lenient(Tickets::new(&members)),
            QueueMode::Interleaved => Order::Interleaved(Round::at(&choice.turn, &members)),
        };
        Self { members, order, choice, picked: None }
    }

    /// A group by its number.
    #[must_use]
    pub fn group(&self, number: usize) -> Option<&Group> {
        self.members.get(number).map(|member| &member.group)
    }

    /// The number of a group.
    #[must_use]
    pub fn number(&self, group: &Group) -> Option<usize> {
        self.members.binary_search_by(|member| member.group.cmp(group)).ok()
    }

    /// Whose turn it is; `None` if nobody has work. Asked again, it answers the same until a turn was taken or a group closed.
    pub fn pick(&mut self) -> Option<usize> {
        self.picked = match &mut self.order {
            Order::Strict => self.members.iter().position(|member| member.open),
            Order::Lenient(tickets) => tickets.holder(mixed(self.choice.random)),
            Order::Interleaved(round) => round.pick(&self.members),
        };
        self.picked
    }

    /// Notes that the group that was picked last has taken its turn.
    pub fn took(&mut self) {
        match &mut self.order {
            Order::Strict => {}
            Order::Lenient(_) => self.choice.random = self.choice.random.wrapping_add(STEP),
            Order::Interleaved(round) => round.took(),
        }
    }

    /// Notes that a group has no more work. Closing it again changes nothing.
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
        let Order::Interleaved(Round { last: Some((cycle, last)), .. }) = &self.order else {
            return self.choice.clone();
        };
        let after = self.members.get(*last).and_then(|member| match &member.group {
            Group::Queue(name) => Some(name.clone()),
            Group::Weight(_) => None,
        });
        QueueChoice { turn: QueueTurn { cycle: *cycle, after }, ..self.choice.clone() }
    }
}

/// The tickets of a lottery, as a Fenwick tree of weights: who holds the n-th ticket is found, and a holder removed, in as many
/// steps as its depth.
#[derive(Debug, Clone)]
struct Tickets {
    tree: Vec<u64>,
    total: u64,
}

impl Tickets {
    fn new(members: &[Member]) -> Self {
        let mut tickets = Self { tree: vec![0; members.len() + 1], total: 0 };
        for (number, member) in members.iter().enumerate() {
            tickets.total += u64::from(member.weight);
            tickets.each_above(number, |sum| *sum += u64::from(member.weight));
        }
        tickets
    }

    fn remove(&mut self, number: usize, weight: u32) {
        self.total -= u64::from(weight);
        self.each_above(number, |sum| *sum -= u64::from(weight));
    }

    fn each_above(&mut self, number: usize, change: impl Fn(&mut u64)) {
        let mut node = number + 1;
        while let Some(sum) = self.tree.get_mut(node) {
            change(sum);
            node += node & node.wrapping_neg();
        }
    }

    /// The holder of the ticket that a random number draws.
    fn holder(&self, random: u64) -> Option<usize> {
        if self.total == 0 {
            return None;
        }
        let mut ticket = (u128::from(random) * u128::from(self.total)) >> 64;
        let mut node = 0;
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.tree.get(node + step).filter(|sum| u128::from(**sum) <= ticket) {
                ticket -= u128::from(*sum);
                node += step;
            }
            step /= 2;
        }
        Some(node)
    }
}

/// The step from one random number of a claim to the next, and how it is mixed: SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(random: u64) -> u64 {
    let mut mixed = random.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A round of interleaved weighted round robin.
#[derive(Debug, Clone)]
struct Round {
    cycle: u32,
    /// Whose weight reaches this cycle, in order; later cycles have some of them.
    turns: Vec<usize>,
    /// Whose turn it is of these.
    at: usize,
    /// The cycle of the last turn and who had it.
    last: Option<(u32, usize)>,
}

impl Round {
    fn at(turn: &QueueTurn, members: &[Member]) -> Self {
        let cycle = turn.cycle.max(1);
        let turns: Vec<usize> = (0..members.len()).filter(|number| members[*number].weight >= cycle).collect();
        let had = |number: &usize| match (&members[*number].group, &turn.after) {
            (Group::Queue(name), Some(after)) => name <= after,
            _ => false,
        };
        let at = turns.partition_point(had);
        Self { cycle, turns, at, last: None }
    }

    fn pick(&mut self, members: &[Member]) -> Option<usize> {
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
        if self.turns.is_empty() {
            self.cycle = 1;
            self.turns = (0..members.len()).filter(|number| members[*number].open).collect();
        }
    }

    fn took(&mut self) {
        self.last = self.turns.get(self.at).map(|number| (self.cycle, *number));
        self.at += 1;
    }
}

#[cfg(test)]
mod tests;
