//! Limits on running tasks and on starts.
//!
//! A token bucket is stored as one time: when it will be full again. This is the generic cell rate
//! algorithm (ITU-T I.371, "virtual scheduling"). An idle bucket needs no updates, and taking any
//! number of tokens has constant cost.
//!
//! [`room`] is the one decision: the number of further tasks that may start. Every store calls it
//! in its claim, before it starts a task, and counts the start in the same transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::limit::{GroupShare, Limit, LimitScope, Rate, RateLimit, SetLimit};
use crate::api::name::{Name, check_seen};
use crate::api::outcome::Refusal;
use crate::api::queue::ConcurrencyLimit;
use crate::bounds;
use crate::rules::queue;

/// Checks a change before it is applied.
///
/// # Errors
/// [`Refusal::Invalid`] for a reserved queue, for a value out of its range, for a weight or a
/// minimum of a scope that is not of groups, and for a change without values.
pub fn check(set: &SetLimit) -> Result<(), Refusal> {
    let scope = &set.scope;
    if set.concurrency.is_none() && set.rate.is_none() && set.weight.is_none() && set.minimum.is_none() {
        return Err(Refusal::Invalid(format!(
            "the change of the limit on {scope} sets no value; set a concurrency or a rate, or for groups a weight or a minimum"
        )));
    }
    if let LimitScope::Queue(queue) = scope {
        queue::check_own(queue)?;
    }
    check_share(set)?;
    check_beginning(scope)?;
    if let Some(concurrency) = set.concurrency.and_then(ConcurrencyLimit::limit) {
        let remedy = "pause it to run no task, or remove the limit";
        in_range(scope, "the concurrency", concurrency, bounds::QUEUE_CONCURRENCY, remedy)?;
    }
    set.rate.and_then(RateLimit::limit).map_or(Ok(()), |rate| check_rate(scope, rate))
}

/// Checks the prefix of the names of groups.
fn check_beginning(scope: &LimitScope) -> Result<(), Refusal> {
    let LimitScope::Groups(beginning) = scope else { return Ok(()) };
    if beginning.len() > bounds::NAME_BYTES {
        let bytes = beginning.len();
        let most = bounds::NAME_BYTES;
        return Err(Refusal::Invalid(format!(
            "the beginning of the names of groups has {bytes} bytes, and must have at most {most}; shorten it"
        )));
    }
    check_seen("beginning of names", beginning).map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Checks the weight and the minimum, which only groups have.
fn check_share(set: &SetLimit) -> Result<(), Refusal> {
    let scope = &set.scope;
    if (set.weight.is_some() || set.minimum.is_some()) && !scope.is_of_groups() {
        return Err(Refusal::Invalid(format!(
            "a weight or a minimum cannot be set on {scope}, because only groups have them; name a group, or the beginning of the names of several"
        )));
    }
    if let Some(weight) = set.weight.and_then(GroupShare::value) {
        in_range(scope, "the weight", weight, bounds::GROUP_WEIGHT, "pause it to run no task")?;
    }
    let minimum = set.minimum.and_then(GroupShare::value);
    minimum.map_or(Ok(()), |minimum| {
        in_range(scope, "the minimum", minimum, bounds::QUEUE_CONCURRENCY, "leave it out to guarantee nothing")
    })
}

/// Checks a rate: the number of tasks, the burst and the period, and that a token takes at least a
/// microsecond.
fn check_rate(scope: &LimitScope, rate: Rate) -> Result<(), Refusal> {
    let remedy = "pause it to run no task, or remove the limit";
    in_range(scope, "the rate in tasks", rate.tasks, bounds::RATE_TASKS, remedy)?;
    in_range(scope, "the burst", rate.burst, bounds::RATE_BURST, "leave it out to allow the starts of one second")?;
    if !(bounds::RATE_PER_MINIMUM..=bounds::RATE_PER_MAXIMUM).contains(&rate.per) {
        return Err(Refusal::Invalid(format!(
            "the rate on {scope} is per {:?}, and must be per 1 ms to 30 days; change the number of tasks instead",
            rate.per
        )));
    }
    // Fewer than 1000 nanoseconds a token are more than a million tokens a second.
    if interval(rate) < 1000 {
        return Err(Refusal::Invalid(format!(
            "the rate on {scope} is {} tasks in {:?}, which is more than a million a second; remove the limit instead",
            rate.tasks, rate.per
        )));
    }
    Ok(())
}

/// Checks that a value is from 1 to `most`.
fn in_range(scope: &LimitScope, what: &str, value: u32, most: u32, remedy: &str) -> Result<(), Refusal> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Refusal::Invalid(format!("{what} on {scope} is {value}, and must be from 1 to {most}; {remedy}")))
}

/// Returns the refusal of one more limit on groups than [`bounds::GROUP_LIMITS`].
#[must_use]
pub fn too_many_group_limits() -> Refusal {
    let most = bounds::GROUP_LIMITS;
    Refusal::Invalid(format!(
        "the store has {most} limits on groups, which is the limit; set one on the beginning of the names of many groups"
    ))
}

/// Returns the limit after a change.
#[must_use]
pub fn after(before: Limit, set: &SetLimit) -> Limit {
    Limit {
        concurrency: set.concurrency.map_or(before.concurrency, ConcurrencyLimit::limit),
        rate: set.rate.map_or(before.rate, RateLimit::limit),
        weight: set.weight.map_or(before.weight, GroupShare::value),
        minimum: set.minimum.map_or(before.minimum, GroupShare::value),
    }
}

/// Returns the limit of a group: its own, or that of the longest prefix of its name that has one.
#[must_use]
pub fn limit_of_group<'a>(
    limits: &'a BTreeMap<LimitScope, Limit>,
    group: &Name,
) -> Option<(&'a LimitScope, &'a Limit)> {
    let own = limits.get_key_value(&LimitScope::Group(group.clone()));
    own.or_else(|| limit_of_beginning(limits, group))
}

/// Returns the limit of the longest prefix of a group's name.
///
/// A claim calls this several times for each task that it examines, so it tries few prefixes. It
/// takes the last prefix in text order that is not greater than the name. If the name does not
/// begin with that prefix, it continues with the part that both have in common.
fn limit_of_beginning<'a>(limits: &'a BTreeMap<LimitScope, Limit>, group: &str) -> Option<(&'a LimitScope, &'a Limit)> {
    let mut begins = group;
    loop {
        let not_behind = ..=LimitScope::Groups(begins.to_owned());
        let (scope, limit) = limits.range(not_behind).next_back()?;
        let LimitScope::Groups(beginning) = scope else { return None };
        if begins.starts_with(beginning) {
            return Some((scope, limit));
        }
        let parting = begins.char_indices().zip(beginning.chars()).find(|((_, one), other)| one != other);
        begins = begins.get(..parting.map_or(0, |((at, _), _)| at))?;
    }
}

/// A token bucket. Its times are steady time, which no clock change moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// The time at which it is full, with nanosecond precision. If the time has passed, it is full.
    pub full_at: Duration,
}

/// Returns the time that one token takes, in nanoseconds, rounded up so that the rate is not
/// exceeded.
fn interval(rate: Rate) -> u64 {
    in_nanoseconds(rate.per).div_ceil(u64::from(rate.tasks.max(1)))
}

/// Returns the time in which an empty bucket becomes full, in nanoseconds.
fn empty(rate: Rate) -> u64 {
    interval(rate).saturating_mul(u64::from(rate.burst))
}

/// Returns a duration in nanoseconds. 64 bits are enough for 584 years, and divide far faster than
/// 128.
fn in_nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time by which an empty bucket may seem to lack more than its burst, because processes read
/// slightly different times. A bucket that seems to lack more was written under another steady
/// clock: the machine was restarted, the clock of a server was set back, or the store was copied.
const TOLERANCE: u64 = 60_000_000_000;

impl Bucket {
    /// Returns the time until the bucket is full, in nanoseconds: at most that of an empty bucket.
    /// A bucket that was written under another steady clock is full, because its time has no
    /// meaning under this one.
    fn missing(self, rate: Rate, now: Duration) -> u64 {
        let (missing, empty) = (in_nanoseconds(self.full_at.saturating_sub(now)), empty(rate));
        if missing > empty.saturating_add(TOLERANCE) { 0 } else { missing.min(empty) }
    }

    /// Returns the bucket after its rate was changed. It lacks as many tokens as before, at most
    /// the new burst: a token is not returned because the rate changed, and its time is that of the
    /// new rate.
    #[must_use]
    pub fn under(self, before: Rate, after: Rate, now: Duration) -> Self {
        let lacking = u128::from(self.missing(before, now)) * u128::from(interval(after));
        let missing = u64::try_from(lacking.div_ceil(u128::from(interval(before).max(1)))).unwrap_or(u64::MAX);
        Self { full_at: now.saturating_add(Duration::from_nanos(missing.min(empty(after)))) }
    }

    /// Returns the number of tokens in the bucket.
    #[must_use]
    pub fn tokens(self, rate: Rate, now: Duration) -> u32 {
        let taken = self.missing(rate, now).div_ceil(interval(rate));
        rate.burst.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    /// Returns the bucket after `tokens` tokens were taken.
    #[must_use]
    pub fn take(self, rate: Rate, tokens: u32, now: Duration) -> Self {
        let missing = self.missing(rate, now).saturating_add(interval(rate).saturating_mul(u64::from(tokens)));
        Self { full_at: now.saturating_add(Duration::from_nanos(missing)) }
    }

    /// Returns the time before the bucket is full at which it already has a token.
    pub(crate) fn spare(rate: Rate) -> Duration {
        Duration::from_nanos(interval(rate).saturating_mul(u64::from(rate.burst.saturating_sub(1))))
    }

    /// Returns the time until the bucket has a token, in whole microseconds; zero if it has one.
    #[must_use]
    pub fn until_token(self, rate: Rate, now: Duration) -> Duration {
        let for_the_rest = interval(rate).saturating_mul(u64::from(rate.burst.saturating_sub(1)));
        Duration::from_micros(self.missing(rate, now).saturating_sub(for_the_rest).div_ceil(1000))
    }
}

/// Returns the number of further tasks that may start under a limit. `running` is the number of its
/// running tasks, and `bucket` its token bucket.
#[must_use]
pub fn room(limit: Limit, running: u64, bucket: Bucket, now: Duration) -> usize {
    let slots = limit
        .concurrency
        .map_or(usize::MAX, |most| usize::try_from(u64::from(most).saturating_sub(running)).unwrap_or(usize::MAX));
    let tokens = limit.rate.map_or(usize::MAX, |rate| bucket.tokens(rate, now) as usize);
    slots.min(tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::name::Name;

    fn rate(tasks: u32, milliseconds: u64, burst: u32) -> Rate {
        Rate { tasks, per: Duration::from_millis(milliseconds), burst }
    }

    fn at(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    #[test]
    fn a_bucket_that_was_never_used_is_full() {
        assert_eq!(Bucket::default().tokens(rate(1, 1000, 5), at(0)), 5);
    }

    #[test]
    fn a_token_comes_back_after_its_interval_and_not_before() {
        let rate = rate(10, 1000, 2);
        let bucket = Bucket::default().take(rate, 2, at(0));
        assert_eq!(bucket.until_token(rate, at(0)), Duration::from_millis(100));
        assert_eq!([99_999, 100_000, 200_000, 900_000].map(|now| bucket.tokens(rate, at(now))), [0, 1, 2, 2]);
    }

    #[test]
    fn a_bucket_from_before_a_restart_of_the_machine_is_full() {
        let rate = rate(1, 1000, 3);
        let bucket = Bucket::default().take(rate, 3, at(3_600_000_000));
        assert_eq!(bucket.tokens(rate, at(0)), 3);
    }

    #[test]
    fn a_bucket_that_another_process_wrote_a_little_later_is_empty_at_most() {
        let rate = rate(1, 1000, 3);
        let bucket = Bucket::default().take(rate, 3, at(1_000_000));
        assert_eq!(bucket.until_token(rate, at(0)), Duration::from_secs(1));
    }

    #[test]
    fn a_faster_rate_holds_at_once_for_tokens_that_a_slower_one_took() {
        let (slow, fast) = (rate(1, 60_000, 3), rate(1, 300, 3));
        let bucket = Bucket::default().take(slow, 3, at(0)).under(slow, fast, at(0));
        assert_eq!([0, 300_000, 600_000, 900_000].map(|now| bucket.tokens(fast, at(now))), [0, 1, 2, 3]);
    }

    #[test]
    fn a_larger_burst_is_given_at_once() {
        let (before, after) = (rate(1, 1000, 1), rate(1, 1000, 10));
        let bucket = Bucket::default().take(before, 1, at(0)).under(before, after, at(0));
        assert_eq!(bucket.tokens(after, at(0)), 9);
    }

    #[test]
    fn a_slower_rate_gives_no_token_for_the_time_of_the_faster_one() {
        let (fast, slow) = (rate(10, 1000, 10), rate(1, 60_000, 10));
        let bucket = Bucket::default().take(fast, 10, at(0)).under(fast, slow, at(0));
        assert_eq!([0, 59_999_999, 60_000_000].map(|now| bucket.tokens(slow, at(now))), [0, 0, 1]);
    }

    #[test]
    fn the_longest_beginning_counts_and_the_name_itself_before_it() {
        let limit = |concurrency| Limit { concurrency: Some(concurrency), ..Limit::default() };
        let name = |text| Name::new(text).unwrap();
        let limits = BTreeMap::from([
            (LimitScope::Groups(String::new()), limit(1)),
            (LimitScope::Groups("tenant-".into()), limit(2)),
            (LimitScope::Group(name("tenant-7")), limit(3)),
        ]);
        let found = ["tenant-7", "tenant-77", "other"]
            .map(|group| limit_of_group(&limits, &name(group)).and_then(|(_, limit)| limit.concurrency));
        assert_eq!(found, [Some(3), Some(2), Some(1)]);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let set = || SetLimit::new(LimitScope::All);
        for (set, said) in [
            (set(), "set a concurrency"),
            (set().concurrency(0), "1 to 1000000"),
            (set().rate(rate(0, 1000, 1)), "1 to 1000000"),
            (set().rate(rate(1, 1000, 0)), "1 to 1000000"),
            (set().rate(rate(1, 0, 1)), "1 ms to 30 days"),
            (set().rate(rate(1_000_000, 1, 1)), "a million a second"),
            (set().weight(2), "name a group"),
            (set().minimum(2), "name a group"),
        ] {
            let text = check(&set).unwrap_err().to_string();
            assert!(text.contains(said) && text.contains("everything"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_longer_beginning_of_a_name_has_a_limit_than_the_one_that_is_found(
            beginnings in proptest::collection::btree_set("[abé]{0,4}", 0..12), group in "[abé]{1,5}",
        ) {
            let limits: BTreeMap<LimitScope, Limit> =
                beginnings.iter().map(|beginning| (LimitScope::Groups(beginning.clone()), Limit::default())).collect();
            let longest = beginnings.iter().filter(|beginning| group.starts_with(*beginning)).max_by_key(|beginning| beginning.len());
            let found = limit_of_group(&limits, &Name::new(&group).unwrap()).map(|(scope, _)| scope.clone());
            prop_assert_eq!(found, longest.cloned().map(LimitScope::Groups));
        }

        /// For any tokens taken at any times, never more than the burst and the tokens gained are
        /// taken.
        #[test]
        fn no_window_sees_more_than_the_burst_and_what_its_time_brings(
            tasks in 1..50u32, per in 1..3000u64, burst in 1..20u32, steps in proptest::collection::vec((0..400_000u64, 1..8u32), 1..60),
        ) {
            let rate = rate(tasks, per, burst);
            let (mut bucket, mut now, mut taken) = (Bucket::default(), 0, Vec::new());
            for (step, wanted) in steps {
                now += step;
                let got = wanted.min(bucket.tokens(rate, at(now)));
                bucket = bucket.take(rate, got, at(now));
                taken.push((now, got));
            }
            for first in 0..taken.len() {
                let mut sum = 0;
                for (when, got) in &taken[first..] {
                    sum += i128::from(*got);
                    let brought = i128::from(when - taken[first].0) * i128::from(tasks);
                    prop_assert!((sum - i128::from(burst)) * i128::from(per) * 1000 <= brought);
                }
            }
        }

        /// Changes the rate of a bucket that was used in any way. It never gives more than the
        /// burst of the new rate. It gives its first token after one interval at the latest, and
        /// is full after the time that an empty one needs.
        #[test]
        fn a_changed_rate_bounds_the_time_and_the_number_of_tokens(
            rates in proptest::array::uniform2((1..50u32, 1..3000u64, 1..20u32)),
            taken in 0..25u32, later in 0..4_000_000u64,
        ) {
            let [before, after] = rates.map(|(tasks, per, burst)| rate(tasks, per, burst));
            let bucket = Bucket::default().take(before, taken.min(before.burst), at(0));
            let (now, lacked) = (at(later), before.burst - bucket.tokens(before, at(later)));
            let changed = bucket.under(before, after, now);
            prop_assert_eq!(changed.tokens(after, now), after.burst.saturating_sub(lacked));
            prop_assert!(changed.until_token(after, now) <= Duration::from_nanos(interval(after)) + at(1));
            prop_assert_eq!(changed.tokens(after, now + Duration::from_nanos(empty(after))), after.burst);
        }

        /// A caller that takes each token as soon as it arrives gets the rate, to a microsecond per
        /// token.
        #[test]
        fn who_waits_for_each_token_gets_the_rate(tasks in 1..1000u32, per in 1..3000u64, burst in 1..20u32) {
            let rate = rate(tasks, per, burst);
            let (mut bucket, mut now) = (Bucket::default().take(rate, burst, at(0)), at(0));
            for _ in 0..100 {
                now += bucket.until_token(rate, now);
                prop_assert!(bucket.tokens(rate, now) >= 1);
                bucket = bucket.take(rate, 1, now);
            }
            let ideal = 100 * u128::from(per) * 1000 / u128::from(tasks);
            prop_assert!(now.as_micros() <= ideal + 101);
        }
    }
}
