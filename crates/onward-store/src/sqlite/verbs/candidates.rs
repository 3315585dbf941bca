//! The lines of due tasks that a claim may take from.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::limits;
use crate::queue::{QueueChoice, QueueMode};
use crate::rules::order::{Place, between};
use crate::sqlite::flow::Shared;
use crate::sqlite::group_heads::GroupHead;
use crate::sqlite::heads::{Chosen, Heads};
use crate::sqlite::index::LaneCursor;
use crate::sqlite::names::{GROUP_LANES, Lane};
use crate::sqlite::transaction::Transaction;
use crate::write::{Claim, QueueSelection};

/// The smallest number of places read from a lane at once.
const PIECE: usize = 16;

/// The lines that a claim may take from, their heads in the order in which they are taken.
pub(in crate::sqlite) struct Candidates {
    pub(super) heads: Heads,
    pub(super) lines: Vec<CandidateLine>,
    /// The line that gave the last one: its next head is not among the heads yet, for it may not be wanted.
    gave: Option<usize>,
    pub(super) left: Left,
    piece: usize,
    /// What stands behind it is not urgent enough.
    last: Option<Place>,
}

/// Tasks of one queue and kind: those without a group, or those of all groups that nothing holds back.
pub(super) struct CandidateLine {
    source: Source,
    queue: i64,
    kind: i64,
    /// What the line's queue takes turns with, or is in strict mode one line with.
    pub(super) turn: i64,
    /// The head that is among the heads.
    head: Option<Place>,
}

enum Source {
    Lane(LaneCursor),
    Groups(GroupSource),
}

struct GroupSource {
    base: i64,
    /// Nothing up to here is taken.
    behind: Option<Place>,
    /// First tasks of groups that will have a token, for a look without a sweep.
    also: Vec<GroupHead>,
}

/// A task that is next.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Candidate {
    pub(in crate::sqlite) place: Place,
    pub(super) line: usize,
    pub(super) lane: i64,
    pub(super) is_of_group: bool,
}

/// How many more may be taken.
#[derive(Default)]
pub(super) struct Left {
    /// From queues that are limited: by the claim, by their concurrency, by their rate.
    queues: FxHashMap<i64, usize>,
    /// Whether nothing may be taken from the others.
    only: bool,
    /// Of kinds that are limited.
    kinds: FxHashMap<i64, usize>,
    /// In all, where that is limited.
    all: Option<usize>,
}

/// Where a claim goes on that has to look for its lines again.
pub(super) struct Resumed {
    pub(super) left: Left,
    pub(super) choice: QueueChoice,
    /// Up to where each turn's line has been looked at.
    pub(super) passed: FxHashMap<i64, Place>,
}

/// What a queue takes turns as: in strict mode all queues of a weight are one.
fn turn(mode: QueueMode, queue: i64, weight: u32) -> i64 {
    if mode == QueueMode::Strict { i64::from(weight) } else { queue }
}

impl Transaction<'_> {
    /// The lines that a claim may take from.
    pub(in crate::sqlite) fn candidates(&mut self, claim: &Claim, limit: usize) -> Result<Candidates> {
        let mut candidates = self.lines(claim, limit, self.resumed_at_the_start(claim));
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    /// The lines for a look, which sweeps nothing: with the groups that have got a token since the last sweep.
    pub(in crate::sqlite) fn candidates_for_a_look(&mut self, claim: &Claim) -> Result<Candidates> {
        let mut candidates = self.lines(claim, 1, self.resumed_at_the_start(claim));
        self.add_groups_with_tokens(&mut candidates)?;
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    fn resumed_at_the_start(&self, claim: &Claim) -> Resumed {
        Resumed { left: self.left(&claim.queues), choice: claim.choice.clone(), passed: FxHashMap::default() }
    }

    pub(super) fn resumed_candidates(&mut self, claim: &Claim, limit: usize, resumed: Resumed) -> Result<Candidates> {
        let mut candidates = self.lines(claim, limit, resumed);
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    fn lines(&self, claim: &Claim, limit: usize, resumed: Resumed) -> Candidates {
        let Resumed { left, choice, passed } = resumed;
        let mode = self.mode_of(claim);
        let has_groups = self.cache.names.has_groups();
        let (mut lines, mut chosen) = (Vec::new(), Vec::new());
        for (number, lane) in self.cache.names.base_lanes().filter(|(_, lane)| self.may_give(claim, lane, &left)) {
            let weight = self.cache.queues.weight(lane.queue);
            let turn = turn(mode, lane.queue, weight);
            let behind = passed.get(&turn).copied();
            let line = |source| CandidateLine { source, queue: lane.queue, kind: lane.kind, turn, head: None };
            lines.push(line(Source::Lane(LaneCursor::behind(number, behind))));
            if has_groups {
                lines.push(line(Source::Groups(GroupSource { base: number, behind, also: Vec::new() })));
            }
            let chosen_lane = || Chosen { queue: lane.queue, name: &lane.queue_name, weight };
            chosen.extend(std::iter::repeat_with(chosen_lane).take(1 + usize::from(has_groups)));
        }
        let heads = Heads::new(mode, &choice, &chosen);
        let piece = if lines.len() == 1 { limit.max(1) } else { PIECE.max(limit / lines.len().max(1)) };
        Candidates { heads, lines, gave: None, left, piece, last: claim.last_place(self.now) }
    }

    fn may_give(&self, claim: &Claim, lane: &Lane, left: &Left) -> bool {
        claim.kinds.selects(&lane.kind_name)
            && left.any_of(lane.queue, lane.kind)
            && !self.cache.pauses.holds(&lane.queue_name, &lane.kind_name)
    }

    fn add_heads(&mut self, candidates: &mut Candidates) -> Result<()> {
        for line in 0..candidates.lines.len() {
            self.add_head(candidates, line)?;
        }
        (0..candidates.lines.len()).for_each(|line| candidates.heads.settle(line));
        Ok(())
    }

    /// What may be taken.
    fn left(&self, queues: &QueueSelection) -> Left {
        let mut left = Left::default();
        if let QueueSelection::Only(queues) = queues {
            left.only = true;
            for (queue, limit) in queues {
                if let Some(number) = self.cache.names.queue(queue) {
                    let asked = left.queues.entry(number).or_insert(0);
                    *asked = asked.saturating_add(*limit);
                }
            }
        }
        for (queue, room) in self.cache.queues.rooms() {
            left.at_most(queue, room);
        }
        for (scope, usage) in self.cache.flow.shared() {
            let room = usage.room(self.steady_time());
            match scope {
                Shared::All => left.all = Some(room),
                Shared::Queue(queue) => left.at_most(queue, room),
                Shared::Kind(kind) => {
                    left.kinds.insert(kind, room);
                }
            }
        }
        left
    }

    fn add_head(&mut self, candidates: &mut Candidates, line: usize) -> Result<()> {
        let head = self.next_of(&mut candidates.lines[line].source, candidates.piece)?;
        let head = head.filter(|place| candidates.is_urgent_enough(*place));
        candidates.lines[line].head = head;
        if let Some(place) = head {
            candidates.heads.push(line, place);
        }
        Ok(())
    }

    fn next_of(&mut self, source: &mut Source, piece: usize) -> Result<Option<Place>> {
        match source {
            Source::Lane(cursor) => cursor.peek(self.connection, &mut self.cache.index, piece),
            Source::Groups(groups) => Ok(self.next_of_groups(groups)?.map(|head| head.place)),
        }
    }

    fn next_of_groups(&mut self, groups: &GroupSource) -> Result<Option<GroupHead>> {
        let Some(behind) = groups.behind else {
            let first = self.cache.heads.first(self.connection, groups.base)?;
            return Ok(first.into_iter().chain(groups.also.iter().copied()).min());
        };
        // Lines whose head has been passed may go on behind that.
        let mut next: Option<GroupHead> = None;
        let around = self.cache.heads.around(self.connection, groups.base, behind)?;
        for head in around.into_iter().chain(groups.also.iter().copied()) {
            let head = if head.place > behind {
                Some(head)
            } else {
                let place = self.cache.index.next_ready(self.connection, head.lane, Some(behind), 1)?.first().copied();
                place.map(|place| GroupHead { place, lane: head.lane })
            };
            next = [next, head].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// The next task of all lines that may still give one.
    pub(in crate::sqlite) fn next_candidate(&mut self, candidates: &mut Candidates) -> Result<Option<Candidate>> {
        if let Some(line) = candidates.gave.take() {
            self.add_head(candidates, line)?;
            candidates.heads.settle(line);
        }
        if candidates.left.all == Some(0) {
            return Ok(None);
        }
        while let Some((place, line)) = candidates.heads.pop() {
            let CandidateLine { queue, kind, .. } = candidates.lines[line];
            if !candidates.left.any_of(queue, kind) {
                candidates.heads.settle(line);
                continue;
            }
            let lane = match &mut candidates.lines[line].source {
                Source::Lane(cursor) => {
                    cursor.advance();
                    Some(cursor.lane)
                }
                Source::Groups(groups) => self.next_of_groups(groups)?.map(|head| head.lane),
            };
            let Some(lane) = lane else {
                candidates.heads.settle(line);
                continue;
            };
            candidates.gave = Some(line);
            return Ok(Some(Candidate { place, line, lane, is_of_group: lane >= GROUP_LANES }));
        }
        Ok(None)
    }

    /// How long until the first task that is not urgent enough will be, where a claim that handed out `taken` left room for more.
    pub(super) fn next_aged(&mut self, claim: &Claim, taken: usize) -> Result<Option<Duration>> {
        let Some(last) = claim.last_place(self.now).filter(|_| taken < claim.limit.min(limits::CLAIM)) else {
            return Ok(None);
        };
        let mut candidates = self.lines(claim, 1, self.resumed_at_the_start(claim));
        if candidates.left.all == Some(0) {
            return Ok(None);
        }
        let mut next: Option<Place> = None;
        for line in &mut candidates.lines {
            match &mut line.source {
                Source::Lane(cursor) => *cursor = LaneCursor::behind(cursor.lane, Some(last)),
                Source::Groups(groups) => groups.behind = Some(last),
            }
            let head = self.next_of(&mut line.source, 1)?;
            next = [next, head].into_iter().flatten().min();
        }
        Ok(next.map(|next| between(last, next)))
    }

    /// Has the heads of groups' lines be those of groups that may still give a task.
    pub(super) fn refresh_groups(&mut self, candidates: &mut Candidates) -> Result<()> {
        // A turn ends where no line of it has a head, so the line that gave the last one gets its next first.
        if let Some(line) = candidates.gave.take() {
            self.add_head(candidates, line)?;
            candidates.heads.settle(line);
        }
        for line in 0..candidates.lines.len() {
            let Source::Groups(groups) = &candidates.lines[line].source else { continue };
            let head = self.next_of_groups(groups)?.map(|head| head.place);
            let head = head.filter(|place| candidates.is_urgent_enough(*place));
            if candidates.lines[line].head == head {
                continue;
            }
            candidates.heads.remove(line);
            candidates.lines[line].head = head;
            if let Some(place) = head {
                candidates.heads.push(line, place);
            }
            candidates.heads.settle(line);
        }
        Ok(())
    }

    fn add_groups_with_tokens(&mut self, candidates: &mut Candidates) -> Result<()> {
        let (now, mut heads) = (self.steady_time(), Vec::new());
        for (_, group) in self.cache.heads.due(self.connection, i64::MAX, limits::GROUPS)? {
            let state = self.cache.flow.group(self.connection, group)?;
            if state.usage.room(now) == 0 || self.cache.pauses.group_is_paused(&state.name) {
                continue;
            }
            for lane in self.cache.names.lanes_of_group(group).to_vec() {
                if let Some(place) = self.cache.index.first_ready(self.connection, lane)? {
                    heads.push((self.cache.names.base_of(lane), GroupHead { place, lane }));
                }
            }
        }
        for line in &mut candidates.lines {
            if let Source::Groups(groups) = &mut line.source {
                groups.also = heads.iter().filter(|(base, _)| *base == groups.base).map(|(_, head)| *head).collect();
            }
        }
        Ok(())
    }
}

impl Candidates {
    fn is_urgent_enough(&self, place: Place) -> bool {
        self.last.is_none_or(|last| place <= last)
    }

    /// Notes that the task that came last is taken.
    pub(super) fn took(&mut self, line: usize) {
        self.heads.took();
        let CandidateLine { queue, kind, .. } = self.lines[line];
        let (queue_left, kind_left) = self.left.took(queue, kind);
        if queue_left == Some(0) {
            self.heads.close(line);
        }
        if kind_left == Some(0) {
            self.close_kind(kind);
        }
    }

    fn close_kind(&mut self, kind: i64) {
        for line in 0..self.lines.len() {
            if self.lines[line].kind == kind {
                self.heads.remove(line);
                // The line that gave the last one may have a head to come.
                if self.gave.is_none_or(|gave| self.lines[gave].turn != self.lines[line].turn) {
                    self.heads.settle(line);
                }
            }
        }
    }

    /// Leaves the task that came last, and all before it in its line, where it is.
    pub(in crate::sqlite) fn pass(&mut self, candidate: Candidate) {
        if let Source::Groups(groups) = &mut self.lines[candidate.line].source {
            groups.behind = Some(candidate.place);
        }
    }
}

impl Left {
    /// Whether a task of a queue and a kind may still be taken.
    fn any_of(&self, queue: i64, kind: i64) -> bool {
        self.queues.get(&queue).map_or(!self.only, |left| *left > 0)
            && self.kinds.get(&kind).is_none_or(|left| *left > 0)
    }

    fn at_most(&mut self, queue: i64, room: usize) {
        if let Some(left) = self.queues.get_mut(&queue) {
            *left = room.min(*left);
        } else if !self.only {
            self.queues.insert(queue, room);
        }
    }

    /// Notes that a task was taken; answers how many more of its queue and of its kind may be, where that is limited.
    fn took(&mut self, queue: i64, kind: i64) -> (Option<usize>, Option<usize>) {
        self.all = self.all.map(|left| left.saturating_sub(1));
        (one_less(&mut self.queues, queue), one_less(&mut self.kinds, kind))
    }
}

fn one_less(left: &mut FxHashMap<i64, usize>, number: i64) -> Option<usize> {
    let left = left.get_mut(&number)?;
    *left = left.saturating_sub(1);
    Some(*left)
}
