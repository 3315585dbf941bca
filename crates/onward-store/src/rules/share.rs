//! Shares: the order of the groups of a queue that share it by weights and minimums.
//!
//! The algorithm is start-time fair queuing (Goyal, Vin and Cheng, "Start-time Fair Queuing",
//! SIGCOMM 1996). A queue has a virtual time. Each of its groups has a fair-share tag, the virtual
//! time at which its next task starts. The group with the smallest tag goes first. A start advances
//! the queue's virtual time to that tag. It then advances the group's tag by the cost of one task,
//! which is smaller for a greater weight.
//!
//! So groups that have work get starts in proportion to their weights, however much work each has.
//! A group that had no work starts at the current virtual time and is owed nothing for the past. A
//! group's tag changes only when one of its tasks starts, so a store can keep the groups in an
//! index by tag.
//!
//! Groups below their minimum go before the others, and have tags and a virtual time of their own.
//! Their starts there do not count against them later: minimums are served first, and weights
//! divide the rest.

use std::collections::BTreeMap;

use crate::api::limit::{Limit, LimitScope};

/// The cost of a start for a group of weight 1. It is a whole number, so that all stores compute
/// alike. It is so large that the rounding of a weight's cost is less than a thousandth of it.
pub(crate) const COST: i64 = 1_000_000;

/// The upper bound of virtual times, which is more than four million million starts.
const END_OF_TIME: i64 = (1 << 62) - 1;

/// The offset by which the positions of groups below their minimum are lower than their tags, so
/// that these groups go before all others.
pub(crate) const GUARANTEED: i64 = END_OF_TIME + 1;

/// The virtual time of a queue, or the fair-share tag of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VirtualTime {
    /// The time among groups below their minimum.
    pub guaranteed: i64,
    /// The time among the other groups.
    pub shared: i64,
}

/// The position of a group among those of its queue. The smallest goes first. Of equal ones, the
/// group whose first task has the smaller sort key goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FairShareTag(pub i64);

impl FairShareTag {
    /// Returns whether this is the position of a group below its minimum.
    #[must_use]
    pub fn is_guaranteed(self) -> bool {
        self.0 < 0
    }
}

/// Returns whether groups share their queues. They do if any group has a weight or a minimum.
/// Otherwise tasks go in the order of their sort keys.
#[must_use]
pub fn are_shared(limits: &BTreeMap<LimitScope, Limit>) -> bool {
    limits.values().any(|limit| limit.weight.is_some() || limit.minimum.is_some())
}

/// Returns whether a group is below its minimum, so that it goes before the other groups. `running`
/// is the number of its running tasks in all queues together.
#[must_use]
pub fn is_below_minimum(limit: Limit, running: u64) -> bool {
    limit.minimum.is_some_and(|minimum| running < u64::from(minimum))
}

/// Returns the position of a group with these tags.
#[must_use]
pub fn fair_share_tag(tags: VirtualTime, is_below_minimum: bool) -> FairShareTag {
    FairShareTag(if is_below_minimum { tags.guaranteed - GUARANTEED } else { tags.shared })
}

/// Advances a queue's virtual time, and the tag of one of its groups, by the start of a task.
pub fn charge(queue: &mut VirtualTime, tags: &mut VirtualTime, limit: Limit, is_below_minimum: bool) {
    let (now, tag) = if is_below_minimum {
        (&mut queue.guaranteed, &mut tags.guaranteed)
    } else {
        (&mut queue.shared, &mut tags.shared)
    };
    // A group that had no work starts at the current virtual time, not at its older tag.
    let start = (*tag).max(*now);
    *now = start;
    *tag = (start + COST / i64::from(limit.weight.unwrap_or(1).max(1))).min(END_OF_TIME);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A group of a queue.
    #[derive(Debug, Clone, Copy, Default)]
    struct Group {
        limit: Limit,
        tags: VirtualTime,
        running: u64,
    }

    fn group(weight: u32, minimum: Option<u32>) -> Group {
        Group { limit: Limit { weight: Some(weight), minimum, ..Limit::default() }, ..Group::default() }
    }

    /// Starts a task of the first group that has work.
    fn start(queue: &mut VirtualTime, groups: &mut [Group], has_work: impl Fn(usize) -> bool) -> Option<usize> {
        let below = |group: &Group| is_below_minimum(group.limit, group.running);
        let with_work = (0..groups.len()).filter(|number| has_work(*number));
        let first =
            with_work.min_by_key(|number| (fair_share_tag(groups[*number].tags, below(&groups[*number])), *number))?;
        let group = &mut groups[first];
        let is_below_minimum = below(group);
        charge(queue, &mut group.tags, group.limit, is_below_minimum);
        group.running += 1;
        Some(first)
    }

    /// Returns the starts with this number of slots. When all slots are taken, each start frees one
    /// of them, drawn by lot.
    fn starts(
        groups: &mut [Group],
        slots: usize,
        lots: &[usize],
        has_work: impl Fn(usize, usize) -> bool,
    ) -> Vec<usize> {
        let (mut queue, mut running, mut started) = (VirtualTime::default(), Vec::new(), Vec::new());
        for (turn, lot) in lots.iter().enumerate() {
            if running.len() == slots {
                let ended: usize = running.swap_remove(lot % slots);
                groups[ended].running -= 1;
            }
            if let Some(first) = start(&mut queue, groups, |number| has_work(turn, number)) {
                running.push(first);
                started.push(first);
            }
        }
        started
    }

    fn count(starts: &[usize], group: usize) -> f64 {
        f64::from(u32::try_from(starts.iter().filter(|one| **one == group).count()).unwrap())
    }

    /// Returns how far two groups are apart, in starts of a group of weight 1, and how far they may
    /// be.
    fn gap(starts: &[usize], weights: &[u32], one: usize, other: usize) -> (f64, f64) {
        let share = |group: usize| count(starts, group) / f64::from(weights[group]);
        let most = 1.0 / f64::from(weights[one]) + 1.0 / f64::from(weights[other]);
        ((share(one) - share(other)).abs(), most * 1.01)
    }

    proptest! {
        /// The bound of the paper: it holds in every window in which two groups have work, at any
        /// concurrency, and for any work of the others.
        #[test]
        fn starts_are_in_proportion_to_weights_over_every_window(
            weights in vec(1..20u32, 2..6), slots in 1..8usize, lots in vec(0..64usize, 20..200),
            absences in vec((0..200usize, 1..60usize), 6), from in 0..150usize,
        ) {
            let mut groups: Vec<Group> = weights.iter().map(|weight| group(*weight, None)).collect();
            // The first two groups always have work.
            let is_away = |turn: usize, number: usize| {
                let (since, turns) = absences[number];
                number > 1 && (since..since + turns).contains(&turn)
            };
            let started = starts(&mut groups, slots, &lots, |turn, number| !is_away(turn, number));
            for to in from..started.len() {
                let (gap, most) = gap(&started[from..to], &weights, 0, 1);
                prop_assert!(gap <= most, "{gap} is more than {most} in {:?}", &started[from..to]);
            }
        }

        #[test]
        fn a_group_that_had_no_work_is_owed_nothing_for_that_time(
            weights in vec(1..20u32, 2..5), idle in 1..100usize, busy in 1..100usize,
        ) {
            let mut groups: Vec<Group> = weights.iter().map(|weight| group(*weight, None)).collect();
            let started = starts(&mut groups, 1, &vec![0; idle + busy], |turn, number| number > 0 || turn >= idle);
            let (gap, most) = gap(&started[idle..], &weights, 0, 1);
            prop_assert!(gap <= most, "{gap} is more than {most} in {started:?}");
        }

        #[test]
        fn a_group_with_work_has_its_minimum_when_there_are_slots_for_all_minimums(
            minimums in vec(0..4u32, 2..5), more in 0..4usize, lots in vec(0..64usize, 100),
        ) {
            let slots = minimums.iter().sum::<u32>() as usize + more;
            prop_assume!(slots > 0);
            let mut groups: Vec<Group> = minimums.iter().map(|minimum| group(1, Some(*minimum))).collect();
            starts(&mut groups, slots, &lots[..slots], |_, _| true);
            for group in groups {
                prop_assert!(!is_below_minimum(group.limit, group.running), "{group:?}");
            }
        }

        /// If there are too few slots for all minimums, the groups that wait for theirs share by
        /// weight.
        #[test]
        fn groups_below_their_minimum_share_by_weight_too(
            weights in vec(1..20u32, 2..5), slots in 1..8usize, lots in vec(0..64usize, 20..200),
        ) {
            let mut groups: Vec<Group> = weights.iter().map(|weight| group(*weight, Some(100))).collect();
            let started = starts(&mut groups, slots, &lots, |_, _| true);
            let (gap, most) = gap(&started, &weights, 0, 1);
            prop_assert!(gap <= most, "{gap} is more than {most} in {started:?}");
        }

        /// Starts of a group below its minimum do not move it back among the others.
        #[test]
        fn weights_divide_what_minimums_leave(minimum in 1..4u32, rest in 2..8usize, turns in 20..200usize) {
            let slots = minimum as usize + rest;
            let mut groups = [group(1, Some(minimum)), group(1, None)];
            // The oldest task ends first, so the slots of both groups become free in turn.
            starts(&mut groups, slots, &vec![0; slots + turns], |_, _| true);
            prop_assert!(groups[0].running >= u64::from(minimum), "{groups:?}");
            prop_assert!(groups[1].running >= 1, "{groups:?}");
        }
    }

    #[test]
    fn the_end_of_virtual_time_is_no_failure() {
        let mut queue = VirtualTime { guaranteed: END_OF_TIME, shared: END_OF_TIME };
        let mut tags = queue;
        for is_below in [true, false] {
            charge(&mut queue, &mut tags, Limit::default(), is_below);
        }
        assert_eq!(tags, queue);
        assert!(fair_share_tag(tags, true) < fair_share_tag(VirtualTime::default(), false));
    }
}
