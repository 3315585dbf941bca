//! When what is collected is handed over as one, and what becomes of the members of a bundle.

use std::time::Duration;

use crate::api::aggregate::Aggregate;
use crate::api::io::{Io, IoKind};
use crate::api::outcome::Refusal;
use crate::api::task::{NewTask, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::dependencies::Ended;
use crate::rules::retry::RetryPolicy;

/// What a bundle says of why it was cancelled that has lost its members.
pub const EMPTIED: &str = "all its members were taken out before it ran";

/// What is being collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// The member with which it began, also if that is gone.
    pub began_with: TaskId,
    /// How many members it has.
    pub members: u32,
    /// How many bytes their payloads have.
    pub bytes: u64,
    /// When it began.
    pub began_at: Timestamp,
    /// How many members are enough.
    pub size: u32,
    /// When it is handed over whatever still comes.
    pub deadline: Timestamp,
    /// When it is handed over if nothing more comes.
    pub ripe_at: Timestamp,
}

impl Collection {
    /// What is being collected once a task has joined it, or begun it.
    #[must_use]
    pub fn joined(before: Option<Self>, task: TaskId, aggregate: Aggregate, bytes: u64, now: Timestamp) -> Self {
        let deadline = before.map_or(now, |before| before.began_at).plus(aggregate.delay);
        let deadline = before.map_or(deadline, |before| before.deadline.min(deadline));
        Self {
            began_with: before.map_or(task, |before| before.began_with),
            members: before.map_or(0, |before| before.members).saturating_add(1),
            bytes: before.map_or(0, |before| before.bytes).saturating_add(bytes),
            began_at: before.map_or(now, |before| before.began_at),
            size: aggregate.size,
            deadline,
            ripe_at: deadline.min(now.plus(aggregate.grace)),
        }
    }

    /// What is still being collected once a member has left; `None` if that was the last. What is
    /// there is not handed over later for it.
    #[must_use]
    pub fn left(self, bytes: u64) -> Option<Self> {
        let members = self.members.checked_sub(1).filter(|members| *members > 0)?;
        Some(Self { members, bytes: self.bytes.saturating_sub(bytes), ..self })
    }

    /// Whether it is handed over at once, without waiting for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.members >= self.size.min(bounds::BUNDLE) || self.bytes >= bounds::BUNDLE_BYTES
    }

    /// Whether a payload of so many bytes still fits in. If it does not, what is there is handed
    /// over before.
    #[must_use]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) <= bounds::BUNDLE_BYTES
    }
}

/// What a bundle takes from a member.
#[derive(Debug, Clone, Copy)]
pub struct MemberFacts {
    /// How urgent it is.
    pub priority: Priority,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How long it may go on without a sign of life.
    pub heartbeat_timeout: Option<Duration>,
    /// How long it is kept after its end.
    pub retention: Option<Duration>,
    /// How it is tried again.
    pub retry: Option<RetryPolicy>,
    /// What it is expected to move.
    pub io: Io,
}

/// Makes an ordinary task the bundle of some members, the oldest first: as urgent as the most
/// urgent, expected to move what they all are, kept as long as the one that is kept longest, with
/// the timeouts and retry policy of the oldest.
pub fn adopt(bundle: &mut NewTask, members: &[MemberFacts]) {
    let oldest = members.first();
    bundle.timeout = oldest.and_then(|oldest| oldest.timeout);
    bundle.heartbeat_timeout = oldest.and_then(|oldest| oldest.heartbeat_timeout);
    bundle.retry = oldest.and_then(|oldest| oldest.retry);
    bundle.retention = members.iter().filter_map(|member| member.retention).max();
    bundle.priority = members.iter().map(|member| member.priority).max().unwrap_or_default();
    for (member, kind) in members.iter().flat_map(|member| IoKind::ALL.map(|kind| (member, kind))) {
        bundle.io.set(kind, bundle.io.get(kind).saturating_add(member.io.get(kind)));
    }
}

/// The refusal to try a bundle again that has no members any more.
#[must_use]
pub fn without_members(bundle: TaskId) -> Refusal {
    Refusal::Invalid(format!(
        "task {bundle} is a bundle without members: they were removed, or tried again by themselves; submit what is to be done"
    ))
}

/// How a member ends with its bundle.
#[must_use]
pub fn end_of_member(bundle: Ended) -> TaskState {
    match bundle {
        Some(state @ (TaskState::Completed | TaskState::Failed | TaskState::Dead)) => state,
        _ => TaskState::Cancelled,
    }
}

/// What a member says that ended with its bundle, given the bundle's own last error; nothing if
/// that completed.
#[must_use]
pub fn error(bundle: TaskId, ended: Ended, last_error: Option<&str>) -> Option<String> {
    let why = last_error.map(|error| format!(": {error}")).unwrap_or_default();
    match ended {
        Some(TaskState::Completed) => None,
        Some(state) => Some(format!("task {bundle}, its bundle, ended as {state}{why}")),
        None => Some(format!("task {bundle}, its bundle, was removed")),
    }
}

/// Whether a member's time to live is over for good because its bundle has started: it runs, or an
/// attempt of it was counted. `attempts` are those of the bundle.
#[must_use]
pub fn has_started(bundle: TaskState, attempts: u32) -> bool {
    matches!(bundle, TaskState::Running | TaskState::Blocked) || attempts > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_microseconds(seconds * 1_000_000)
    }

    fn aggregate(size: u32, delay: u64, grace: u64) -> Aggregate {
        Aggregate { size, delay: Duration::from_secs(delay), grace: Duration::from_secs(grace) }
    }

    /// Tasks that join one after the other: when, and what each says.
    fn collect(joined: &[(i64, Aggregate)]) -> Collection {
        let join = |before, (number, (now, aggregate)): (i64, &(i64, Aggregate))| {
            Some(Collection::joined(before, TaskId(number), *aggregate, 1, at(*now)))
        };
        (1..).zip(joined).fold(None, join).unwrap()
    }

    #[test]
    fn each_member_puts_the_end_of_the_grace_off_until_the_delay_is_over() {
        let all = aggregate(10, 8, 3);
        assert_eq!(collect(&[(0, all)]).ripe_at, at(3));
        assert_eq!(collect(&[(0, all), (2, all)]).ripe_at, at(5));
        assert_eq!(collect(&[(0, all), (2, all), (4, all), (6, all)]).ripe_at, at(8));
    }

    #[test]
    fn the_newest_member_says_how_many_are_enough_and_how_long_the_grace_is() {
        let collection = collect(&[(0, aggregate(10, 20, 5)), (1, aggregate(2, 20, 9))]);
        assert_eq!((collection.is_full(), collection.ripe_at), (true, at(10)));
    }

    #[test]
    fn no_member_waits_longer_than_its_own_delay_allows() {
        assert_eq!(collect(&[(0, aggregate(10, 4, 4)), (1, aggregate(10, 60, 60))]).ripe_at, at(4));
        assert_eq!(collect(&[(0, aggregate(10, 60, 60)), (1, aggregate(10, 4, 4))]).ripe_at, at(4));
    }

    #[test]
    fn what_is_there_is_not_handed_over_later_because_a_member_left() {
        let before = collect(&[(0, aggregate(3, 9, 9)), (1, aggregate(3, 9, 9))]);
        let after = before.left(1).unwrap();
        assert_eq!((after.members, after.bytes, after.ripe_at), (1, 1, before.ripe_at));
        assert_eq!(after.left(1), None);
    }

    #[test]
    fn a_bundle_is_full_when_its_payloads_are_large() {
        let one = |bytes| Collection::joined(None, TaskId(1), aggregate(10, 9, 9), bytes, at(0));
        assert!(one(bounds::BUNDLE_BYTES).is_full());
        assert!(!one(bounds::BUNDLE_BYTES - 1).is_full());
        assert!(one(bounds::BUNDLE_BYTES - 1).has_room_for(1));
        assert!(!one(bounds::BUNDLE_BYTES - 1).has_room_for(2));
    }

    #[test]
    fn only_a_bundle_that_came_to_an_end_of_its_own_gives_that_to_its_members() {
        let ends = [Some(TaskState::Completed), Some(TaskState::Dead), Some(TaskState::Cancelled), None];
        let expected = [TaskState::Completed, TaskState::Dead, TaskState::Cancelled, TaskState::Cancelled];
        assert_eq!(ends.map(end_of_member), expected);
    }

    proptest! {
        /// Whatever joins and when: it is handed over within the delay of each member since the
        /// first, and within the newest's grace.
        #[test]
        fn promises_are_kept(joined in proptest::collection::vec((0i64..20, 1u64..30, 1u64..30), 1..8)) {
            let mut now = 0;
            let joined: Vec<(i64, Aggregate)> = joined.into_iter().map(|(after, delay, grace)| {
                now += after;
                (now, aggregate(100, delay, grace.min(delay)))
            }).collect();
            let (collection, first) = (collect(&joined), at(joined[0].0));
            prop_assert!(joined.iter().all(|(_, aggregate)| collection.ripe_at <= first.plus(aggregate.delay)));
            let (last, newest) = joined[joined.len() - 1];
            prop_assert!(collection.ripe_at <= at(last).plus(newest.grace));
            prop_assert!(collection.ripe_at == collection.deadline || collection.ripe_at == at(last).plus(newest.grace));
        }
    }
}
