//! The first tasks of the lanes that a claim may take from, in the order in which they are taken.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::name::Name;
use crate::queue::{QueueChoice, QueueMode};
use crate::rules::choice::{Chooser, Line};
use crate::rules::order::Place;

/// A lane as the choice sees it.
pub(super) struct Chosen<'n> {
    pub(super) queue: i64,
    pub(super) name: &'n Name,
    pub(super) weight: u32,
}

/// Heads of lanes, which are named by their index.
pub(super) enum Heads {
    /// All queues of one weight are one line: that needs no choosing.
    Strict { heads: BinaryHeap<(u32, Reverse<(Place, usize)>)>, weights: Vec<u32> },
    /// Queues take turns.
    InTurn { chooser: Chooser, lines: Vec<BinaryHeap<Reverse<(Place, usize)>>>, line_of: Vec<usize> },
}

impl Heads {
    pub(super) fn new(mode: QueueMode, choice: &QueueChoice, lanes: &[Chosen<'_>]) -> Self {
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

    pub(super) fn push(&mut self, lane: usize, place: Place) {
        match self {
            Self::Strict { heads, weights, .. } => heads.push((weights[lane], Reverse((place, lane)))),
            Self::InTurn { lines, line_of, .. } => lines[line_of[lane]].push(Reverse((place, lane))),
        }
    }

    /// Takes the next head. The lane's following one, if it has one, must be pushed before [`settle`](Self::settle) is called.
    pub(super) fn pop(&mut self) -> Option<(Place, usize)> {
        let Reverse(head) = match self {
            Self::Strict { heads, .. } => heads.pop()?.1,
            Self::InTurn { chooser, lines, .. } => lines[chooser.pick()?].pop()?,
        };
        Some(head)
    }

    /// Takes a lane's head away, if it has one here; [`settle`](Self::settle) is to be called then.
    pub(super) fn remove(&mut self, lane: usize) {
        match self {
            Self::Strict { heads, .. } => heads.retain(|(_, Reverse((_, one)))| *one != lane),
            Self::InTurn { lines, line_of, .. } => lines[line_of[lane]].retain(|Reverse((_, one))| *one != lane),
        }
    }

    /// Notes that a lane's next head was pushed, if it has one.
    pub(super) fn settle(&mut self, lane: usize) {
        if let Self::InTurn { chooser, lines, line_of } = self
            && lines[line_of[lane]].is_empty()
        {
            chooser.close(line_of[lane]);
        }
    }

    /// Notes that the head that was popped last was handed out.
    pub(super) fn took(&mut self) {
        if let Self::InTurn { chooser, .. } = self {
            chooser.took();
        }
    }

    /// Drops what is left of the queue of a lane.
    pub(super) fn close(&mut self, lane: usize) {
        if let Self::InTurn { chooser, lines, line_of } = self {
            lines[line_of[lane]].clear();
            chooser.close(line_of[lane]);
        }
    }

    /// Where the next claim is to go on; `before` is what this one was given.
    pub(super) fn choice(&self, before: &QueueChoice) -> QueueChoice {
        match self {
            Self::Strict { .. } => before.clone(),
            Self::InTurn { chooser, .. } => chooser.choice(),
        }
    }
}
