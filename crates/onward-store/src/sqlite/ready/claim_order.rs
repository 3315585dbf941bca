//! The first tasks of the lanes that a claim may take from, in the order in which they are taken.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::rules::choice::{Chooser, Line};
use crate::rules::order::Place;
use crate::rules::share::Rank;

/// A lane as the choice sees it.
pub(in crate::sqlite) struct Chosen<'n> {
    pub(in crate::sqlite) queue: i64,
    pub(in crate::sqlite) name: &'n Name,
    pub(in crate::sqlite) weight: u32,
}

/// Where a head stands: in its queue, and among those of the same rank.
pub(in crate::sqlite) type Standing = (Rank, Place);

/// The heads of a queue.
type QueueHeads = BinaryHeap<Reverse<(Standing, usize)>>;

/// Heads of lanes, which are named by their index.
pub(in crate::sqlite) enum Heads {
    /// All queues of one weight are one line: that needs no choosing.
    Strict { heads: BinaryHeap<(u32, Reverse<(Place, usize)>)>, weights: Vec<u32> },
    /// Queues take turns.
    InTurn { chooser: Chooser, lines: Vec<QueueHeads>, line_of: Vec<usize> },
    /// As `Strict`, but in each queue groups take turns: of queues of one weight that goes first
    /// whose next task does.
    StrictShared { weights: Vec<u32>, lines: Vec<QueueHeads>, line_of: Vec<usize> },
}

impl Heads {
    pub(in crate::sqlite) fn new(
        mode: QueueMode,
        choice: &QueueChoice,
        lanes: &[Chosen<'_>],
        are_shared: bool,
    ) -> Self {
        if mode == QueueMode::Strict && are_shared {
            return Self::strict_shared(lanes);
        }
        if mode == QueueMode::Strict {
            let weights = lanes.iter().map(|lane| lane.weight).collect();
            return Self::Strict { heads: BinaryHeap::with_capacity(lanes.len()), weights };
        }
        let queues: HashMap<i64, &Chosen<'_>> = lanes.iter().map(|lane| (lane.queue, lane)).collect();
        let line = |lane: &Chosen<'_>| Line::of(mode, lane.name, lane.weight);
        let chooser = Chooser::new(mode, choice.clone(), queues.values().map(|lane| (line(lane), lane.weight)));
        let numbers: HashMap<i64, usize> = queues
            .iter()
            .filter_map(|(queue, lane)| chooser.number(&line(lane)).map(|number| (*queue, number)))
            .collect();
        let line_of = lanes.iter().map(|lane| numbers.get(&lane.queue).copied().unwrap_or(0)).collect();
        Self::InTurn { chooser, lines: vec![BinaryHeap::new(); numbers.len()], line_of }
    }

    fn strict_shared(lanes: &[Chosen<'_>]) -> Self {
        let (mut numbers, mut weights) = (HashMap::new(), Vec::new());
        let line_of = lanes.iter().map(|lane| {
            *numbers.entry(lane.queue).or_insert_with(|| {
                weights.push(lane.weight);
                weights.len() - 1
            })
        });
        let line_of = line_of.collect();
        let lines = vec![BinaryHeap::new(); weights.len()];
        Self::StrictShared { weights, lines, line_of }
    }

    pub(in crate::sqlite) fn push(&mut self, lane: usize, standing: Standing) {
        match self {
            Self::Strict { heads, weights, .. } => heads.push((weights[lane], Reverse((standing.1, lane)))),
            Self::InTurn { lines, line_of, .. } | Self::StrictShared { lines, line_of, .. } => {
                lines[line_of[lane]].push(Reverse((standing, lane)));
            }
        }
    }

    /// Takes the next head. The lane's following one, if it has one, must be pushed before
    /// [`settle`](Self::settle) is called.
    pub(in crate::sqlite) fn pop(&mut self) -> Option<(Place, usize)> {
        let Reverse(((_, place), lane)) = match self {
            Self::Strict { heads, .. } => {
                let Reverse(head) = heads.pop()?.1;
                return Some(head);
            }
            Self::InTurn { chooser, lines, .. } => lines[chooser.pick()?].pop()?,
            Self::StrictShared { weights, lines, .. } => {
                let first = first_in_line(weights, lines)?;
                lines[first].pop()?
            }
        };
        Some((place, lane))
    }

    /// Takes a lane's head away, if it has one here; [`settle`](Self::settle) is to be called then.
    pub(in crate::sqlite) fn remove(&mut self, lane: usize) {
        match self {
            Self::Strict { heads, .. } => heads.retain(|(_, Reverse((_, one)))| *one != lane),
            Self::InTurn { lines, line_of, .. } | Self::StrictShared { lines, line_of, .. } => {
                lines[line_of[lane]].retain(|Reverse((_, one))| *one != lane);
            }
        }
    }

    /// Notes that a lane's next head was pushed, if it has one.
    pub(in crate::sqlite) fn settle(&mut self, lane: usize) {
        if let Self::InTurn { chooser, lines, line_of } = self
            && lines[line_of[lane]].is_empty()
        {
            chooser.close(line_of[lane]);
        }
    }

    /// Notes that the head that was popped last was handed out.
    pub(in crate::sqlite) fn took(&mut self) {
        if let Self::InTurn { chooser, .. } = self {
            chooser.took();
        }
    }

    /// Drops what is left of the queue of a lane.
    pub(in crate::sqlite) fn close(&mut self, lane: usize) {
        match self {
            Self::Strict { .. } => {}
            Self::InTurn { chooser, lines, line_of } => {
                lines[line_of[lane]].clear();
                chooser.close(line_of[lane]);
            }
            Self::StrictShared { lines, line_of, .. } => lines[line_of[lane]].clear(),
        }
    }

    /// Where the next claim is to go on; `before` is what this one was given.
    pub(in crate::sqlite) fn choice(&self, before: &QueueChoice) -> QueueChoice {
        match self {
            Self::Strict { .. } | Self::StrictShared { .. } => before.clone(),
            Self::InTurn { chooser, .. } => chooser.choice(),
        }
    }
}

/// Of the queues of the greatest weight that have a head the one whose head goes first: one of a
/// group below its minimum, else the first due.
fn first_in_line(weights: &[u32], lines: &[QueueHeads]) -> Option<usize> {
    let standing = |line: &QueueHeads| line.peek().map(|Reverse(((rank, place), _))| (!rank.is_guaranteed(), *place));
    let heads = lines.iter().zip(weights).enumerate();
    let heads = heads.filter_map(|(number, (line, weight))| Some((Reverse(*weight), standing(line)?, number)));
    heads.min().map(|(.., number)| number)
}
