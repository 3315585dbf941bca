//! Changes of the settings of a queue.

use crate::api::name::Name;
use crate::api::outcome::Refusal;
use crate::api::queue::{ConcurrencyLimit, QueueSettings, SetQueue};
use crate::bounds;

/// Checks that a queue to change, or to move tasks to, is not reserved for Onward.
///
/// # Errors
/// [`Refusal::Invalid`] if its name is [reserved](Name::is_reserved).
pub fn check_own(queue: &Name) -> Result<(), Refusal> {
    queue.check_own("queue").map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Checks a change before it is applied.
///
/// # Errors
/// [`Refusal::Invalid`] for a reserved queue, a weight, a concurrency or a wait for affinity out of
/// its range, and for a change without values.
pub fn check(set: &SetQueue) -> Result<(), Refusal> {
    check_own(&set.queue)?;
    if set.weight.is_none() && set.concurrency.is_none() && set.affinity_wait.is_none() {
        let text = "sets no value; set a weight, a concurrency or a wait for affinity";
        return Err(Refusal::Invalid(format!("the change of the queue `{}` {text}", set.queue)));
    }
    if let Some(weight) = set.weight.filter(|weight| !(1..=bounds::QUEUE_WEIGHT).contains(weight)) {
        let remedy = "pause a queue to run none of its tasks";
        return Err(out_of_range(&set.queue, "weight", weight, bounds::QUEUE_WEIGHT, remedy));
    }
    let concurrency = set.concurrency.and_then(ConcurrencyLimit::limit);
    if let Some(concurrency) = concurrency.filter(|tasks| !(1..=bounds::QUEUE_CONCURRENCY).contains(tasks)) {
        let remedy = "pause a queue to run none of its tasks, or remove its limit";
        return Err(out_of_range(&set.queue, "concurrency", concurrency, bounds::QUEUE_CONCURRENCY, remedy));
    }
    if let Some(wait) = set.affinity_wait.filter(|wait| *wait > bounds::AFFINITY_WAIT_MAXIMUM) {
        return Err(Refusal::Invalid(format!(
            "the wait for affinity of the queue `{}` is {wait:?}, and must be at most {:?}; if tasks must run on one worker, give them \
             a queue that only this worker serves",
            set.queue,
            bounds::AFFINITY_WAIT_MAXIMUM
        )));
    }
    Ok(())
}

/// Returns the refusal of a setting that is out of its range.
fn out_of_range(queue: &Name, what: &str, value: u32, most: u32, remedy: &str) -> Refusal {
    Refusal::Invalid(format!("the {what} of the queue `{queue}` is {value}, and must be from 1 to {most}; {remedy}"))
}

/// Returns the settings after a change.
#[must_use]
pub fn after(before: QueueSettings, set: &SetQueue) -> QueueSettings {
    QueueSettings {
        weight: set.weight.unwrap_or(before.weight),
        concurrency: set.concurrency.map_or(before.concurrency, ConcurrencyLimit::limit),
        affinity_wait: set.affinity_wait.unwrap_or(before.affinity_wait),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn queue() -> SetQueue {
        SetQueue::new(Name::default_queue())
    }

    #[test]
    fn the_ends_of_the_ranges_are_taken() {
        let ends = [
            queue().weight(1).concurrency(1),
            queue().weight(bounds::QUEUE_WEIGHT).concurrency(bounds::QUEUE_CONCURRENCY),
            queue().affinity_wait(Duration::ZERO),
            queue().affinity_wait(bounds::AFFINITY_WAIT_MAXIMUM),
        ];
        assert!(ends.iter().all(|set| check(set).is_ok()));
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        for (set, range) in [
            (queue().weight(0), "1 to 1000"),
            (queue().weight(1001), "1 to 1000"),
            (queue().concurrency(0), "1 to 1000000"),
            (queue().concurrency(1_000_001), "1 to 1000000"),
            (queue().affinity_wait(bounds::AFFINITY_WAIT_MAXIMUM + Duration::from_micros(1)), "at most 3600s"),
        ] {
            let text = check(&set).unwrap_err().to_string();
            assert!(text.contains(range) && text.contains("`default`"), "{text}");
        }
    }

    #[test]
    fn a_change_of_nothing_is_refused() {
        assert!(check(&queue()).is_err());
    }

    #[test]
    fn what_is_not_named_stays() {
        let before = QueueSettings { weight: 3, concurrency: Some(2), ..QueueSettings::default() };
        assert_eq!(after(before, &queue().weight(5)), QueueSettings { weight: 5, ..before });
        assert_eq!(after(before, &queue().unlimited()), QueueSettings { concurrency: None, ..before });
        let never = QueueSettings { affinity_wait: Duration::ZERO, ..before };
        assert_eq!(after(before, &queue().affinity_wait(Duration::ZERO)), never);
    }
}
