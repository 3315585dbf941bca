//! The lines of due tasks that a claim may take from.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::rules::order::{Place, between};
use crate::sqlite::commit::names::{GROUP_LANES, Lane, Names};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::Shared;
use crate::sqlite::ready::affinity_lists::reserved_base;
use crate::sqlite::ready::claim_order::{Chosen, Heads};
use crate::sqlite::ready::claimable_heads::GroupHead;
use crate::sqlite::ready::index::LaneCursor;

/// The smallest number of places read from a lane at once.
const PIECE: usize = 16;

/// The lines that a claim may take from, their heads in the order in which they are taken.
pub(in crate::sqlite) struct Candidates {
    pub(in crate::sqlite) heads: Heads,
    pub(in crate::sqlite) lines: Vec<CandidateLine>,
    /// The line that gave the last one: its next head is not among the heads yet, for it may not be
    /// wanted.
    gave: Option<usize>,
    pub(in crate::sqlite) left: Left,
    piece: usize,
    /// What stands behind it is not urgent enough.
    last: Option<Place>,
    /// Whether groups share queues.
    pub(in crate::sqlite) are_shared: bool,
}

/// Tasks of one queue and kind: those without a group, or those of all groups that nothing holds
/// back.
pub(in crate::sqlite) struct CandidateLine {
    source: Source,
    queue: i64,
    kind: i64,
    /// What the line's queue takes turns with, or is in strict mode one line with.
    pub(in crate::sqlite) turn: i64,
    /// The head that is among the heads.
    head: Option<GroupHead>,
}

enum Source {
    Lane(LaneCursor),
    Groups(GroupSource),
}

struct GroupSource {
    base: i64,
    /// Nothing up to here is taken.
    behind: Option<Place>,
    /// Up to where single lanes were looked at, where groups share queues.
    passed: FxHashMap<i64, Place>,
    /// First tasks of groups that will have a token, for a look without a sweep.
    also: Vec<GroupHead>,
    /// Where groups share queues: heads that stand behind this are not urgent enough, and are
    /// passed over.
    last: Option<Place>,
}

/// A task that is next.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Candidate {
    pub(in crate::sqlite) place: Place,
    pub(in crate::sqlite) line: usize,
    pub(in crate::sqlite) lane: i64,
    pub(in crate::sqlite) is_of_group: bool,
}

/// How many more may be taken.
#[derive(Default)]
pub(in crate::sqlite) struct Left {
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
pub(in crate::sqlite) struct Resumed {
    pub(in crate::sqlite) left: Left,
    pub(in crate::sqlite) choice: QueueChoice,
    /// Up to where each turn's line has been looked at.
    pub(in crate::sqlite) passed: FxHashMap<i64, Place>,
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

    /// The lines for a look, which sweeps nothing: with the groups that have got a token since the
    /// last sweep.
    pub(in crate::sqlite) fn candidates_for_a_look(&mut self, claim: &Claim) -> Result<Candidates> {
        let mut candidates = self.lines(claim, 1, self.resumed_at_the_start(claim));
        self.add_groups_with_tokens(&mut candidates)?;
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    fn resumed_at_the_start(&self, claim: &Claim) -> Resumed {
        Resumed { left: self.left(&claim.queues), choice: claim.choice.clone(), passed: FxHashMap::default() }
    }

    pub(in crate::sqlite) fn resumed_candidates(
        &mut self,
        claim: &Claim,
        limit: usize,
        resumed: Resumed,
    ) -> Result<Candidates> {
        let mut candidates = self.lines(claim, limit, resumed);
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    fn lines(&self, claim: &Claim, limit: usize, resumed: Resumed) -> Candidates {
        let Resumed { left, choice, passed } = resumed;
        let mode = self.mode_of(claim);
        let has_series = self.cache.series.any();
        let has_groups = has_series || self.cache.names.has_groups();
        // What is reserved for whoever asks; a look may ask for nobody.
        let own = Some(claim.session.0).filter(|session| has_series && *session > 0);
        let (are_shared, last) = (self.cache.flow.shares.are_shared(), claim.last_place(self.now));
        let (mut lines, mut chosen) = (Vec::new(), Vec::new());
        for (number, lane) in self.cache.names.base_lanes().filter(|(_, lane)| self.may_give(claim, lane, &left)) {
            let weight = self.cache.queues.weight(lane.queue);
            let turn = turn(mode, lane.queue, weight);
            let behind = passed.get(&turn).copied();
            let line = |source| CandidateLine { source, queue: lane.queue, kind: lane.kind, turn, head: None };
            lines.push(line(Source::Lane(LaneCursor::behind(number, behind))));
            let last = last.filter(|_| are_shared);
            let groups = |base| {
                let passed = FxHashMap::default();
                line(Source::Groups(GroupSource { base, behind, passed, also: Vec::new(), last }))
            };
            lines.extend(has_groups.then(|| groups(number)));
            lines.extend(own.map(|session| groups(reserved_base(number, session))));
            let chosen_lane = || Chosen { queue: lane.queue, name: &lane.queue_name, weight };
            chosen.extend(std::iter::repeat_with(chosen_lane).take(lines.len() - chosen.len()));
        }
        let heads = Heads::new(mode, &choice, &chosen, are_shared);
        let piece = if lines.len() == 1 { limit.max(1) } else { PIECE.max(limit / lines.len().max(1)) };
        Candidates { heads, lines, gave: None, left, piece, last, are_shared }
    }

    fn may_give(&self, claim: &Claim, lane: &Lane, left: &Left) -> bool {
        claim.selects_kind(&lane.kind_name, lane.orchestration)
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
        let head = head.filter(|head| candidates.is_urgent_enough(head.place));
        candidates.lines[line].head = head;
        if let Some(head) = head {
            candidates.heads.push(line, (head.rank, head.place));
        }
        Ok(())
    }

    fn next_of(&mut self, source: &mut Source, piece: usize) -> Result<Option<GroupHead>> {
        match source {
            Source::Lane(cursor) => {
                let Some(place) = cursor.peek(self.connection, &mut self.cache.index, piece)? else { return Ok(None) };
                Ok(Some(GroupHead { rank: self.rank_of(cursor.lane)?, place, lane: cursor.lane }))
            }
            Source::Groups(groups) => self.next_of_groups(groups),
        }
    }

    fn next_of_groups(&mut self, groups: &GroupSource) -> Result<Option<GroupHead>> {
        if groups.behind.is_none() && groups.passed.is_empty() && groups.last.is_none() {
            let first = self.cache.heads.first(self.connection, groups.base)?;
            return Ok(first.into_iter().chain(groups.also.iter().copied()).min());
        }
        // Lines whose head has been passed may go on behind that.
        let mut next: Option<GroupHead> = None;
        let is_urgent_enough = |head: &GroupHead| groups.last.is_none_or(|last| head.place <= last);
        let is_last = |head: &GroupHead| groups.passed_of(head).is_none() && is_urgent_enough(head);
        let around = self.cache.heads.up_to(self.connection, groups.base, is_last)?;
        for head in around.into_iter().chain(groups.also.iter().copied()) {
            let head = match groups.passed_of(&head) {
                None => Some(head),
                Some(passed) => {
                    let places = self.cache.index.next_ready(self.connection, head.lane, Some(passed), 1)?;
                    places.first().map(|place| GroupHead { place: *place, ..head })
                }
            };
            next = [next, head.filter(is_urgent_enough)].into_iter().flatten().min();
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
            let Some(lane) = candidates.lines[line].head.map(|head| head.lane) else {
                candidates.heads.settle(line);
                continue;
            };
            if let Source::Lane(cursor) = &mut candidates.lines[line].source {
                cursor.advance();
            }
            candidates.gave = Some(line);
            return Ok(Some(Candidate { place, line, lane, is_of_group: lane >= GROUP_LANES }));
        }
        Ok(None)
    }

    /// How long until the first task that is not urgent enough will be, where a claim that handed
    /// out `taken` left room for more.
    pub(in crate::sqlite) fn next_aged(&mut self, claim: &Claim, taken: usize) -> Result<Option<Duration>> {
        let Some(last) = claim.last_place(self.now).filter(|_| taken < claim.limit.min(bounds::CLAIM)) else {
            return Ok(None);
        };
        let candidates = self.lines(claim, 1, self.resumed_at_the_start(claim));
        if candidates.left.all == Some(0) {
            return Ok(None);
        }
        let mut next: Option<Place> = None;
        for line in &candidates.lines {
            next = [next, self.first_behind(&line.source, last)?].into_iter().flatten().min();
        }
        Ok(next.map(|next| between(last, next)))
    }

    /// The first place of a line behind another. Where groups share queues their heads are not in
    /// the order of their places, so all are looked at.
    fn first_behind(&mut self, source: &Source, last: Place) -> Result<Option<Place>> {
        let groups = match source {
            Source::Lane(cursor) => {
                return LaneCursor::behind(cursor.lane, Some(last)).peek(self.connection, &mut self.cache.index, 1);
            }
            Source::Groups(groups) => groups,
        };
        let are_shared = self.cache.flow.shares.are_shared();
        let heads = self.cache.heads.up_to(self.connection, groups.base, |head| !are_shared && head.place > last)?;
        let mut next: Option<Place> = None;
        for head in heads {
            let place = if head.place > last {
                Some(head.place)
            } else {
                self.cache.index.next_ready(self.connection, head.lane, Some(last), 1)?.first().copied()
            };
            next = [next, place].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Has the heads of groups' lines be those of groups that may still give a task.
    pub(in crate::sqlite) fn refresh_groups(&mut self, candidates: &mut Candidates) -> Result<()> {
        self.refresh(candidates, |_, line| matches!(line.source, Source::Groups(_)))
    }

    /// Has lines stand where they do after a start from a queue that groups share: those of the
    /// same group, or of tasks without one.
    pub(in crate::sqlite) fn refresh_shares(&mut self, candidates: &mut Candidates, started: Candidate) -> Result<()> {
        let (group, queue) = (self.cache.names.group_of(started.lane), candidates.lines[started.line].queue);
        self.refresh(candidates, |names, line| match group {
            None => {
                let is_without_group = |head: GroupHead| names.group_of(head.lane).is_none();
                let is_of_lane = matches!(line.source, Source::Lane(_));
                line.queue == queue && (is_of_lane || line.head.is_some_and(is_without_group))
            }
            Some(_) => line.head.is_some_and(|head| names.group_of(head.lane) == group),
        })
    }

    fn refresh(
        &mut self,
        candidates: &mut Candidates,
        is_to_be: impl Fn(&Names, &CandidateLine) -> bool,
    ) -> Result<()> {
        // A turn ends where no line of it has a head, so the line that gave the last one gets its
        // next first.
        if let Some(line) = candidates.gave.take() {
            self.add_head(candidates, line)?;
            candidates.heads.settle(line);
        }
        for line in 0..candidates.lines.len() {
            if !is_to_be(&self.cache.names, &candidates.lines[line]) {
                continue;
            }
            let head = self.next_of(&mut candidates.lines[line].source, candidates.piece)?;
            let head = head.filter(|head| candidates.is_urgent_enough(head.place));
            if candidates.lines[line].head == head {
                continue;
            }
            candidates.heads.remove(line);
            candidates.lines[line].head = head;
            if let Some(head) = head {
                candidates.heads.push(line, (head.rank, head.place));
            }
            candidates.heads.settle(line);
        }
        Ok(())
    }

    fn add_also(&mut self, heads: &mut Vec<(i64, GroupHead)>, line: i64) -> Result<()> {
        if let Some(place) = self.cache.index.first_ready(self.connection, line)? {
            let rank = self.rank_of(line)?;
            heads.push((self.cache.names.base_of(line), GroupHead { rank, place, lane: line }));
        }
        Ok(())
    }

    fn add_groups_with_tokens(&mut self, candidates: &mut Candidates) -> Result<()> {
        let (now, mut heads) = (self.steady_time(), Vec::new());
        for (_, group) in self.cache.heads.due(self.connection, i64::MAX, bounds::GROUPS)? {
            let state = self.cache.flow.group(self.connection, group)?;
            if state.usage.room(now) == 0 || self.cache.pauses.group_is_paused(&state.name) {
                continue;
            }
            for lane in self.cache.names.lanes_of_group(group).to_vec() {
                self.add_also(&mut heads, lane)?;
            }
            for line in self.series_lines_of_group(group)? {
                self.add_also(&mut heads, line)?;
            }
        }
        for line in self.lines_to_open()? {
            self.add_also(&mut heads, line)?;
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
    pub(in crate::sqlite) fn took(&mut self, line: usize) {
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
        let Source::Groups(groups) = &mut self.lines[candidate.line].source else { return };
        if self.are_shared {
            groups.passed.insert(candidate.lane, candidate.place);
        } else {
            groups.behind = Some(candidate.place);
        }
    }
}

impl GroupSource {
    /// Up to where the lane of a head was looked at, if the head was.
    fn passed_of(&self, head: &GroupHead) -> Option<Place> {
        let passed = [self.behind, self.passed.get(&head.lane).copied()].into_iter().flatten().max();
        passed.filter(|passed| head.place <= *passed)
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

    /// Notes that a task was taken; answers how many more of its queue and of its kind may be,
    /// where that is limited.
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
