//! The candidates of a claim: the sources of due tasks that it may take from, and their order.
//!
//! A source is one ready list, or one head list, whose lists belong to groups or affinity keys.
//! Only the first task of each source is read at first. Each task that is taken makes its source
//! give the next one.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::rules::order::{SortKey, between};
use crate::rules::share::FairShareTag;
use crate::sqlite::commit::names::{FIRST_GROUPED, Names, SubQueue};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use crate::sqlite::limits::trial_shares::TrialShares;
use crate::sqlite::ready::affinity_lists::reserved_head_list;
use crate::sqlite::ready::claim_order::{ClaimOrder, QueueOfSource};
use crate::sqlite::ready::claimable_heads::ClaimableHead;
use crate::sqlite::ready::list_cursor::ListCursor;

/// The smallest number of sort keys that are read from a ready list at once.
const PIECE: usize = 16;

/// The sources of a claim, and the order of their first tasks.
pub(in crate::sqlite) struct Candidates {
    pub(in crate::sqlite) order: ClaimOrder,
    pub(in crate::sqlite) sources: Vec<CandidateSource>,
    /// The source that gave the last task. Its next head is not in `order` yet, because the claim
    /// may end before it needs one.
    last_source: Option<usize>,
    pub(in crate::sqlite) remaining: Remaining,
    piece: usize,
    /// The last sort key that is urgent enough for the claim, if it has such a bound.
    last: Option<SortKey>,
    /// True if groups share queues.
    pub(in crate::sqlite) are_shared: bool,
    /// The fair shares after the starts of a claim on trial; `None` for a claim, which charges the
    /// groups themselves.
    pub(in crate::sqlite) trial: Option<TrialShares>,
}

/// Tasks of one queue and kind: those without a group, or those of all groups that are not blocked.
pub(in crate::sqlite) struct CandidateSource {
    heads: Heads,
    queue: i64,
    kind: i64,
    /// The candidate for turns: the source's queue, or in strict mode all queues of its weight.
    pub(in crate::sqlite) turn: i64,
    /// The source's head that is in `order`.
    head: Option<ClaimableHead>,
}

/// The kind of list from which a source takes its heads.
enum Heads {
    List(ListCursor),
    HeadList(HeadListCursor),
}

/// The position of a claim in a head list, which has one head for each ready list of a queue and
/// kind.
struct HeadListCursor {
    head_list: i64,
    /// The sort key up to which the claim has examined all lists.
    behind: Option<SortKey>,
    /// The sort key up to which single ready lists were examined, used if groups share queues.
    passed: FxHashMap<i64, SortKey>,
    /// The first tasks of groups whose token is due, used by a peek, which does not sweep.
    also: Vec<ClaimableHead>,
    /// The last sort key that is urgent enough. Set only if groups share queues, because sort keys
    /// do not order their heads.
    last: Option<SortKey>,
}

/// The next task to take.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Candidate {
    pub(in crate::sqlite) sort_key: SortKey,
    pub(in crate::sqlite) source: usize,
    pub(in crate::sqlite) list: i64,
    pub(super) is_of_group: bool,
}

/// The numbers of further tasks that the claim may take.
#[derive(Default)]
pub(in crate::sqlite) struct Remaining {
    /// The numbers for queues that are limited by the claim, their concurrency or their rate.
    queues: FxHashMap<i64, usize>,
    /// True if the claim names its queues, so that no other queue gives a task.
    only: bool,
    /// The numbers for kinds that have a limit.
    kinds: FxHashMap<i64, usize>,
    /// The number of tasks in all, if it is limited.
    all: Option<usize>,
}

/// The position from which a claim continues after its sources were computed again.
pub(in crate::sqlite) struct Resumed {
    pub(in crate::sqlite) remaining: Remaining,
    pub(in crate::sqlite) choice: QueueChoice,
    /// The sort key up to which the sources of each turn were examined.
    pub(in crate::sqlite) passed: FxHashMap<i64, SortKey>,
}

/// Returns the turn of a queue. In strict mode all queues of one weight share a turn.
fn turn(mode: QueueMode, queue: i64, weight: u32) -> i64 {
    if mode == QueueMode::Strict { i64::from(weight) } else { queue }
}

impl Transaction<'_> {
    /// Returns the sources from which a claim may take tasks.
    pub(in crate::sqlite) fn candidates(&mut self, claim: &Claim, limit: usize) -> Result<Candidates> {
        let mut candidates = self.sources(claim, limit, self.resume_from_start(claim));
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    /// Returns the sources for a peek. A peek sweeps nothing, so it adds the groups whose token
    /// came since the last sweep.
    pub(in crate::sqlite) fn peek_candidates(&mut self, claim: &Claim) -> Result<Candidates> {
        let mut candidates = self.sources(claim, 1, self.resume_from_start(claim));
        self.add_groups_with_tokens(&mut candidates)?;
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    /// Returns the sources for a claim on trial that begins with the fair shares of an earlier one.
    pub(in crate::sqlite) fn trial_candidates(&mut self, claim: &Claim, shares: TrialShares) -> Result<Candidates> {
        let mut candidates = self.sources(claim, 1, self.resume_from_start(claim));
        candidates.trial = Some(shares).filter(|_| candidates.are_shared);
        self.add_groups_with_tokens(&mut candidates)?;
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    /// Charges the start of a candidate on trial, and updates the order of the candidates.
    pub(in crate::sqlite) fn start_on_trial(
        &mut self,
        candidates: &mut Candidates,
        candidate: Candidate,
    ) -> Result<()> {
        let Some(trial) = &mut candidates.trial else { return Ok(()) };
        trial.start(self.connection, self.cache, candidate.list)?;
        self.refresh_shares(candidates, candidate)
    }

    /// Returns the position of a claim that has examined nothing.
    fn resume_from_start(&self, claim: &Claim) -> Resumed {
        Resumed { remaining: self.remaining(&claim.queues), choice: claim.choice.clone(), passed: FxHashMap::default() }
    }

    /// Returns the candidates at a position, each source with its head.
    pub(super) fn resumed_candidates(&mut self, claim: &Claim, limit: usize, resumed: Resumed) -> Result<Candidates> {
        let mut candidates = self.sources(claim, limit, resumed);
        self.add_heads(&mut candidates)?;
        Ok(candidates)
    }

    /// Returns the sources of a claim, without heads: the ready lists that it selects, and one head
    /// list for each queue and kind.
    fn sources(&self, claim: &Claim, limit: usize, resumed: Resumed) -> Candidates {
        let Resumed { remaining, choice, passed } = resumed;
        let mode = self.mode_of(claim);
        let has_affinity_keys = self.cache.affinity.any();
        let has_groups = has_affinity_keys || self.cache.names.has_groups();
        // The session whose reserved lists are included. A peek may have no session.
        let own = Some(claim.session.0).filter(|session| has_affinity_keys && *session > 0);
        let (are_shared, last) = (self.cache.limits.fair_shares.are_shared(), claim.last_sort_key(self.now));
        let (mut sources, mut queues) = (Vec::new(), Vec::new());
        for (number, sub_queue) in
            self.cache.names.ungrouped_sub_queues().filter(|(_, sub_queue)| self.may_give(claim, sub_queue, &remaining))
        {
            let weight = self.cache.queues.weight(sub_queue.queue);
            let turn = turn(mode, sub_queue.queue, weight);
            let behind = passed.get(&turn).copied();
            let source =
                |heads| CandidateSource { heads, queue: sub_queue.queue, kind: sub_queue.kind, turn, head: None };
            sources.push(source(Heads::List(ListCursor::behind(number, behind))));
            let last = last.filter(|_| are_shared);
            let head_list = |head_list| {
                let passed = FxHashMap::default();
                source(Heads::HeadList(HeadListCursor { head_list, behind, passed, also: Vec::new(), last }))
            };
            sources.extend(has_groups.then(|| head_list(number)));
            sources.extend(own.map(|session| head_list(reserved_head_list(number, session))));
            let queue_of_source = || QueueOfSource { queue: sub_queue.queue, name: &sub_queue.queue_name, weight };
            queues.extend(std::iter::repeat_with(queue_of_source).take(sources.len() - queues.len()));
        }
        let order = ClaimOrder::new(mode, &choice, &queues, are_shared);
        let piece = if sources.len() == 1 { limit.max(1) } else { PIECE.max(limit / sources.len().max(1)) };
        Candidates { order, sources, last_source: None, remaining, piece, last, are_shared, trial: None }
    }

    /// Returns true if a sub-queue may give a task: the claim selects its kind, wants more tasks of
    /// its queue, and no pause covers it.
    fn may_give(&self, claim: &Claim, sub_queue: &SubQueue, remaining: &Remaining) -> bool {
        claim.selects_kind(&sub_queue.kind_name, sub_queue.orchestration)
            && remaining.any_of(sub_queue.queue, sub_queue.kind)
            && !self.cache.pauses.holds(&sub_queue.queue_name, &sub_queue.kind_name)
    }

    /// Adds the first head of each source, and then restores the order once. Restoring it after
    /// each head would cost a sort each time.
    fn add_heads(&mut self, candidates: &mut Candidates) -> Result<()> {
        for source in 0..candidates.sources.len() {
            self.add_head(candidates, source)?;
        }
        (0..candidates.sources.len()).for_each(|source| candidates.order.restore_order(source));
        Ok(())
    }

    /// Returns the numbers of tasks that a claim may take.
    fn remaining(&self, queues: &QueueSelection) -> Remaining {
        let mut remaining = Remaining::default();
        if let QueueSelection::Only(queues) = queues {
            remaining.only = true;
            for (queue, limit) in queues {
                if let Some(number) = self.cache.names.queue(queue) {
                    let asked = remaining.queues.entry(number).or_insert(0);
                    *asked = asked.saturating_add(*limit);
                }
            }
        }
        for (queue, room) in self.cache.queues.rooms() {
            remaining.at_most(queue, room);
        }
        for (scope, usage) in self.cache.limits.scopes() {
            let room = usage.room(self.steady_time());
            match scope {
                ScopeNumber::All => remaining.all = Some(room),
                ScopeNumber::Queue(queue) => remaining.at_most(queue, room),
                ScopeNumber::Kind(kind) => {
                    remaining.kinds.insert(kind, room);
                }
            }
        }
        remaining
    }

    /// Finds the next head of a source that is urgent enough for the claim.
    fn add_head(&mut self, candidates: &mut Candidates, source: usize) -> Result<()> {
        let head = self.next_of(candidates, source)?;
        let head = head.filter(|head| candidates.is_urgent_enough(head.sort_key));
        candidates.sources[source].head = head;
        if let Some(head) = head {
            candidates.order.push(source, (head.share_tag, head.sort_key));
        }
        Ok(())
    }

    /// Returns the next head of a source. Reads the next piece of a ready list when the buffered
    /// one is used up.
    fn next_of(&mut self, candidates: &mut Candidates, source: usize) -> Result<Option<ClaimableHead>> {
        let Candidates { sources, piece, trial, .. } = candidates;
        match &mut sources[source].heads {
            Heads::List(cursor) => {
                let Some(sort_key) = cursor.peek(self.connection, &mut self.cache.index, *piece)? else {
                    return Ok(None);
                };
                let head = ClaimableHead { share_tag: FairShareTag::default(), sort_key, list: cursor.list };
                self.tagged(head, trial.as_ref()).map(Some)
            }
            Heads::HeadList(cursor) => self.next_of_groups(cursor, trial.as_ref()),
        }
    }

    /// Returns a head with its present fair-share tag: after the starts on trial, if there are any.
    fn tagged(&mut self, head: ClaimableHead, trial: Option<&TrialShares>) -> Result<ClaimableHead> {
        let share_tag = match trial {
            Some(trial) => trial.tag_of(self.connection, self.cache, head.list)?,
            None => self.share_tag_of(head.list)?,
        };
        Ok(ClaimableHead { share_tag, ..head })
    }

    /// Returns the first head of a head list that was not examined.
    fn next_of_groups(
        &mut self,
        cursor: &HeadListCursor,
        trial: Option<&TrialShares>,
    ) -> Result<Option<ClaimableHead>> {
        if cursor.behind.is_none() && cursor.passed.is_empty() && cursor.last.is_none() && trial.is_none() {
            let first = self.cache.heads.first(self.connection, cursor.head_list)?;
            return Ok(first.into_iter().chain(cursor.also.iter().copied()).min());
        }
        // A list whose head was examined may have further tasks after it.
        let mut next: Option<ClaimableHead> = None;
        let is_urgent_enough = |head: &ClaimableHead| cursor.last.is_none_or(|last| head.sort_key <= last);
        // Starts on trial have made tags only larger, so the first head with an unchanged tag goes
        // before all heads behind it.
        let has_moved = |head: &ClaimableHead| trial.is_some_and(|trial| trial.has_moved(&self.cache.names, head.list));
        let is_last =
            |head: &ClaimableHead| cursor.passed_of(head).is_none() && is_urgent_enough(head) && !has_moved(head);
        let around = self.cache.heads.up_to(self.connection, cursor.head_list, is_last)?;
        for head in around.into_iter().chain(cursor.also.iter().copied()) {
            let head = match cursor.passed_of(&head) {
                None => Some(head),
                Some(passed) => {
                    let sort_keys = self.cache.index.next_ready(self.connection, head.list, Some(passed), 1)?;
                    sort_keys.first().map(|sort_key| ClaimableHead { sort_key: *sort_key, ..head })
                }
            };
            let mut head = head.filter(is_urgent_enough);
            if trial.is_some() {
                head = head.map(|head| self.tagged(head, trial)).transpose()?;
            }
            next = [next, head].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Returns the next task of the source that has the turn.
    pub(in crate::sqlite) fn next_candidate(&mut self, candidates: &mut Candidates) -> Result<Option<Candidate>> {
        if let Some(source) = candidates.last_source.take() {
            self.add_head(candidates, source)?;
            candidates.order.restore_order(source);
        }
        if candidates.remaining.all == Some(0) {
            return Ok(None);
        }
        while let Some((sort_key, source)) = candidates.order.pop() {
            let CandidateSource { queue, kind, .. } = candidates.sources[source];
            if !candidates.remaining.any_of(queue, kind) {
                candidates.order.restore_order(source);
                continue;
            }
            let Some(list) = candidates.sources[source].head.map(|head| head.list) else {
                candidates.order.restore_order(source);
                continue;
            };
            if let Heads::List(cursor) = &mut candidates.sources[source].heads {
                cursor.advance();
            }
            candidates.last_source = Some(source);
            return Ok(Some(Candidate { sort_key, source, list, is_of_group: list >= FIRST_GROUPED }));
        }
        Ok(None)
    }

    /// Returns the time until the first task that is not urgent enough becomes so by ageing.
    /// Returns `None` if the claim took as many tasks as it could, `taken`.
    pub(super) fn next_aged(&mut self, claim: &Claim, taken: usize) -> Result<Option<Duration>> {
        let Some(last) = claim.last_sort_key(self.now).filter(|_| taken < claim.limit.min(bounds::CLAIM)) else {
            return Ok(None);
        };
        let candidates = self.sources(claim, 1, self.resume_from_start(claim));
        if candidates.remaining.all == Some(0) {
            return Ok(None);
        }
        let mut next: Option<SortKey> = None;
        for source in &candidates.sources {
            next = [next, self.first_behind(&source.heads, last)?].into_iter().flatten().min();
        }
        Ok(next.map(|next| between(last, next)))
    }

    /// Returns the first sort key of a source after `last`. If groups share queues, sort keys do
    /// not order their heads, so all heads are checked.
    fn first_behind(&mut self, heads: &Heads, last: SortKey) -> Result<Option<SortKey>> {
        let cursor = match heads {
            Heads::List(cursor) => {
                return ListCursor::behind(cursor.list, Some(last)).peek(self.connection, &mut self.cache.index, 1);
            }
            Heads::HeadList(cursor) => cursor,
        };
        let are_shared = self.cache.limits.fair_shares.are_shared();
        let heads =
            self.cache.heads.up_to(self.connection, cursor.head_list, |head| !are_shared && head.sort_key > last)?;
        let mut next: Option<SortKey> = None;
        for head in heads {
            let sort_key = if head.sort_key > last {
                Some(head.sort_key)
            } else {
                self.cache.index.next_ready(self.connection, head.list, Some(last), 1)?.first().copied()
            };
            next = [next, sort_key].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Updates the heads of the head lists after a start has blocked a group.
    pub(super) fn refresh_groups(&mut self, candidates: &mut Candidates) -> Result<()> {
        self.refresh(candidates, |_, source| matches!(source.heads, Heads::HeadList(_)))
    }

    /// Updates the heads after a start from a queue that groups share. Only the tags of the started
    /// task's group have changed, or of the tasks without a group.
    pub(super) fn refresh_shares(&mut self, candidates: &mut Candidates, started: Candidate) -> Result<()> {
        let (group, queue) = (self.cache.names.group_of(started.list), candidates.sources[started.source].queue);
        self.refresh(candidates, |names, source| match group {
            None => {
                let is_without_group = |head: ClaimableHead| names.group_of(head.list).is_none();
                let is_ungrouped = matches!(source.heads, Heads::List(_));
                source.queue == queue && (is_ungrouped || source.head.is_some_and(is_without_group))
            }
            Some(_) => source.head.is_some_and(|head| names.group_of(head.list) == group),
        })
    }

    /// Computes the heads of the selected sources again, because a start may have changed them.
    fn refresh(
        &mut self,
        candidates: &mut Candidates,
        is_to_be: impl Fn(&Names, &CandidateSource) -> bool,
    ) -> Result<()> {
        // A turn ends if none of its sources has a head. So the source that gave the last task gets
        // its next head before others lose theirs.
        if let Some(source) = candidates.last_source.take() {
            self.add_head(candidates, source)?;
            candidates.order.restore_order(source);
        }
        for source in 0..candidates.sources.len() {
            if !is_to_be(&self.cache.names, &candidates.sources[source]) {
                continue;
            }
            let head = self.next_of(candidates, source)?;
            let head = head.filter(|head| candidates.is_urgent_enough(head.sort_key));
            if candidates.sources[source].head == head {
                continue;
            }
            candidates.order.remove(source);
            candidates.sources[source].head = head;
            if let Some(head) = head {
                candidates.order.push(source, (head.share_tag, head.sort_key));
            }
            candidates.order.restore_order(source);
        }
        Ok(())
    }

    /// Adds the first task of a list that waits only for a token of its group.
    fn add_also(&mut self, heads: &mut Vec<(i64, ClaimableHead)>, list: i64) -> Result<()> {
        if let Some(sort_key) = self.cache.index.first_ready(self.connection, list)? {
            let share_tag = self.share_tag_of(list)?;
            heads.push((self.cache.names.ungrouped_of(list), ClaimableHead { share_tag, sort_key, list }));
        }
        Ok(())
    }

    /// Adds the groups whose token is due. Their heads left the head list when the bucket was
    /// empty, and only a sweep restores them.
    fn add_groups_with_tokens(&mut self, candidates: &mut Candidates) -> Result<()> {
        let (now, mut heads) = (self.steady_time(), Vec::new());
        for (_, group) in self.cache.heads.tokens_due(self.connection, i64::MAX, bounds::GROUPS)? {
            let state = self.cache.limits.group(self.connection, group)?;
            if state.usage.room(now) == 0 || self.cache.pauses.group_is_paused(&state.name) {
                continue;
            }
            for list in self.cache.names.sub_queues_of_group(group).to_vec() {
                self.add_also(&mut heads, list)?;
            }
            for list in self.affinity_lists_of_group(group)? {
                self.add_also(&mut heads, list)?;
            }
        }
        for list in self.expired_reservations()? {
            self.add_also(&mut heads, list)?;
        }
        for source in &mut candidates.sources {
            if let Heads::HeadList(cursor) = &mut source.heads {
                cursor.also = heads
                    .iter()
                    .filter(|(head_list, _)| *head_list == cursor.head_list)
                    .map(|(_, head)| *head)
                    .collect();
            }
        }
        Ok(())
    }
}

impl Candidates {
    /// Returns true if a task with this sort key is urgent enough for the claim.
    fn is_urgent_enough(&self, sort_key: SortKey) -> bool {
        self.last.is_none_or(|last| sort_key <= last)
    }

    /// Records that the last candidate was taken.
    pub(in crate::sqlite) fn took(&mut self, source: usize) {
        self.order.took();
        let CandidateSource { queue, kind, .. } = self.sources[source];
        let (queue_left, kind_left) = self.remaining.took(queue, kind);
        if queue_left == Some(0) {
            self.order.close(source);
        }
        if kind_left == Some(0) {
            self.close_kind(kind);
        }
    }

    /// Removes the sources of a kind from which the claim may take no further task.
    fn close_kind(&mut self, kind: i64) {
        for source in 0..self.sources.len() {
            if self.sources[source].kind == kind {
                self.order.remove(source);
                // The turn of the last source stays open, because its next head is still to be
                // added.
                if self.last_source.is_none_or(|last| self.sources[last].turn != self.sources[source].turn) {
                    self.order.restore_order(source);
                }
            }
        }
    }

    /// Skips a candidate: it, and all tasks before it in its source, stay in their lists.
    pub(in crate::sqlite) fn pass(&mut self, candidate: Candidate) {
        let Heads::HeadList(cursor) = &mut self.sources[candidate.source].heads else { return };
        if self.are_shared {
            cursor.passed.insert(candidate.list, candidate.sort_key);
        } else {
            cursor.behind = Some(candidate.sort_key);
        }
    }
}

impl HeadListCursor {
    /// Returns the sort key up to which the ready list of a head was examined, if the head is not
    /// after it.
    fn passed_of(&self, head: &ClaimableHead) -> Option<SortKey> {
        let passed = [self.behind, self.passed.get(&head.list).copied()].into_iter().flatten().max();
        passed.filter(|passed| head.sort_key <= *passed)
    }
}

impl Remaining {
    /// Returns true if a task of a queue and a kind may still be taken.
    fn any_of(&self, queue: i64, kind: i64) -> bool {
        self.queues.get(&queue).map_or(!self.only, |remaining| *remaining > 0)
            && self.kinds.get(&kind).is_none_or(|remaining| *remaining > 0)
    }

    /// Lowers the number of further tasks of a queue.
    fn at_most(&mut self, queue: i64, room: usize) {
        if let Some(remaining) = self.queues.get_mut(&queue) {
            *remaining = room.min(*remaining);
        } else if !self.only {
            self.queues.insert(queue, room);
        }
    }

    /// Counts a taken task. Returns the numbers of further tasks of its queue and of its kind, if
    /// these are limited.
    fn took(&mut self, queue: i64, kind: i64) -> (Option<usize>, Option<usize>) {
        self.all = self.all.map(|remaining| remaining.saturating_sub(1));
        (one_less(&mut self.queues, queue), one_less(&mut self.kinds, kind))
    }
}

/// Subtracts one from a number, if there is one, and returns the rest.
fn one_less(remaining: &mut FxHashMap<i64, usize>, number: i64) -> Option<usize> {
    let remaining = remaining.get_mut(&number)?;
    *remaining = remaining.saturating_sub(1);
    Some(*remaining)
}
