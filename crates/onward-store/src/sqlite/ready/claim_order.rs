//! The order of a claim: which of its sources gives the next task. A source is a ready list without
//! a group, or a head list.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::rules::choice::{Chooser, QueueCandidate};
use crate::rules::order::SortKey;
use crate::rules::share::FairShareTag;

/// A source's queue, with what decides its turn.
pub(in crate::sqlite) struct QueueOfSource<'n> {
    pub(in crate::sqlite) queue: i64,
    pub(in crate::sqlite) name: &'n Name,
    pub(in crate::sqlite) weight: u32,
}

/// The position of a head in its queue: first the fair-share tag, then the sort key.
type HeadKey = (FairShareTag, SortKey);

/// The heads of a queue.
type QueueHeads = BinaryHeap<Reverse<(HeadKey, usize)>>;

/// The first task of each source, in the order of the store's mode. A source is named by its index.
pub(in crate::sqlite) enum ClaimOrder {
    /// Strict mode without shares: one heap by weight, then sort key.
    Strict { heads: BinaryHeap<(u32, Reverse<(SortKey, usize)>)>, weights: Vec<u32> },
    /// Modes `lenient` and `interleaved`: the chooser picks a queue for each task.
    InTurn { chooser: Chooser, queues: Vec<QueueHeads>, queue_of: Vec<usize> },
    /// Strict mode in which groups share queues: groups take turns within a queue. Among queues of
    /// one weight, the queue whose next task is first goes first.
    StrictShared { weights: Vec<u32>, queues: Vec<QueueHeads>, queue_of: Vec<usize> },
}

impl ClaimOrder {
    /// Returns an empty order for a mode. Fair-share tags of different queues cannot be compared,
    /// so strict mode with shares needs a heap for each queue.
    pub(in crate::sqlite) fn new(
        mode: QueueMode,
        choice: &QueueChoice,
        sources: &[QueueOfSource<'_>],
        are_shared: bool,
    ) -> Self {
        if mode == QueueMode::Strict && are_shared {
            return Self::strict_shared(sources);
        }
        if mode == QueueMode::Strict {
            let weights = sources.iter().map(|source| source.weight).collect();
            return Self::Strict { heads: BinaryHeap::with_capacity(sources.len()), weights };
        }
        let queues: HashMap<i64, &QueueOfSource<'_>> = sources.iter().map(|source| (source.queue, source)).collect();
        let candidate = |source: &QueueOfSource<'_>| QueueCandidate::of(mode, source.name, source.weight);
        let chooser =
            Chooser::new(mode, choice.clone(), queues.values().map(|source| (candidate(source), source.weight)));
        let numbers: HashMap<i64, usize> = queues
            .iter()
            .filter_map(|(queue, source)| chooser.number(&candidate(source)).map(|number| (*queue, number)))
            .collect();
        let queue_of = sources.iter().map(|source| numbers.get(&source.queue).copied().unwrap_or(0)).collect();
        Self::InTurn { chooser, queues: vec![BinaryHeap::new(); numbers.len()], queue_of }
    }

    /// Returns the order of strict mode in which groups share queues.
    fn strict_shared(sources: &[QueueOfSource<'_>]) -> Self {
        let (mut numbers, mut weights) = (HashMap::new(), Vec::new());
        let queue_of = sources.iter().map(|source| {
            *numbers.entry(source.queue).or_insert_with(|| {
                weights.push(source.weight);
                weights.len() - 1
            })
        });
        let queue_of = queue_of.collect();
        let queues = vec![BinaryHeap::new(); weights.len()];
        Self::StrictShared { weights, queues, queue_of }
    }

    /// Adds the head of a source.
    pub(in crate::sqlite) fn push(&mut self, source: usize, key: HeadKey) {
        match self {
            Self::Strict { heads, weights, .. } => heads.push((weights[source], Reverse((key.1, source)))),
            Self::InTurn { queues, queue_of, .. } | Self::StrictShared { queues, queue_of, .. } => {
                queues[queue_of[source]].push(Reverse((key, source)));
            }
        }
    }

    /// Takes the next head. The caller then pushes the source's following head, if it has one, and
    /// calls [`restore_order`](Self::restore_order).
    pub(in crate::sqlite) fn pop(&mut self) -> Option<(SortKey, usize)> {
        let Reverse(((_, sort_key), source)) = match self {
            Self::Strict { heads, .. } => {
                let Reverse(head) = heads.pop()?.1;
                return Some(head);
            }
            Self::InTurn { chooser, queues, .. } => queues[chooser.pick()?].pop()?,
            Self::StrictShared { weights, queues, .. } => {
                let first = first_queue(weights, queues)?;
                queues[first].pop()?
            }
        };
        Some((sort_key, source))
    }

    /// Removes a source's head, if there is one. The caller then calls
    /// [`restore_order`](Self::restore_order).
    pub(in crate::sqlite) fn remove(&mut self, source: usize) {
        match self {
            Self::Strict { heads, .. } => heads.retain(|(_, Reverse((_, one)))| *one != source),
            Self::InTurn { queues, queue_of, .. } | Self::StrictShared { queues, queue_of, .. } => {
                queues[queue_of[source]].retain(|Reverse((_, one))| *one != source);
            }
        }
    }

    /// Ends the turns of a source's queue if no head of it is left.
    pub(in crate::sqlite) fn restore_order(&mut self, source: usize) {
        if let Self::InTurn { chooser, queues, queue_of } = self
            && queues[queue_of[source]].is_empty()
        {
            chooser.close(queue_of[source]);
        }
    }

    /// Records that the head that was popped last was claimed.
    pub(in crate::sqlite) fn took(&mut self) {
        if let Self::InTurn { chooser, .. } = self {
            chooser.took();
        }
    }

    /// Drops the remaining heads of a source's queue, which has reached its limit.
    pub(in crate::sqlite) fn close(&mut self, source: usize) {
        match self {
            Self::Strict { .. } => {}
            Self::InTurn { chooser, queues, queue_of } => {
                queues[queue_of[source]].clear();
                chooser.close(queue_of[source]);
            }
            Self::StrictShared { queues, queue_of, .. } => queues[queue_of[source]].clear(),
        }
    }

    /// Returns the state from which the next claim continues; `before` is the state that this claim
    /// began with.
    pub(in crate::sqlite) fn choice(&self, before: &QueueChoice) -> QueueChoice {
        match self {
            Self::Strict { .. } | Self::StrictShared { .. } => before.clone(),
            Self::InTurn { chooser, .. } => chooser.choice(),
        }
    }
}

/// Returns the queue whose head goes first among the queues of the greatest weight: a head of a
/// group below its minimum, else the head with the smallest sort key.
fn first_queue(weights: &[u32], queues: &[QueueHeads]) -> Option<usize> {
    let key = |queue: &QueueHeads| {
        queue.peek().map(|Reverse(((share_tag, sort_key), _))| (!share_tag.is_guaranteed(), *sort_key))
    };
    let heads = queues.iter().zip(weights).enumerate();
    let heads = heads.filter_map(|(number, (queue, weight))| Some((Reverse(*weight), key(queue)?, number)));
    heads.min().map(|(.., number)| number)
}
