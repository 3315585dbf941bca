//! The time limit and the retry policy of an attempt, as pure functions.

use std::time::Duration;

use onward_store::Timestamp;
use onward_store::rules::retry::RetryPolicy;

/// The time limit of an attempt that starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The attempt has no limit.
    Unlimited,
    /// The timeout comes first.
    Timeout(Duration),
    /// The deadline comes first.
    Deadline(Duration),
    /// The attempt may not start: the deadline has passed.
    Expired,
}

/// Returns the earlier of the timeout and the deadline.
pub(crate) fn time_limit(
    timeout: Option<Duration>,
    deadline: Option<Timestamp>,
    now: impl FnOnce() -> Timestamp,
) -> TimeLimit {
    let Some(deadline) = deadline else { return timeout.map_or(TimeLimit::Unlimited, TimeLimit::Timeout) };
    let left = deadline - now();
    match timeout {
        _ if left.is_zero() => TimeLimit::Expired,
        Some(timeout) if timeout <= left => TimeLimit::Timeout(timeout),
        _ => TimeLimit::Deadline(left),
    }
}

/// The policies that may apply to a task, the nearest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicies {
    pub(crate) task: Option<RetryPolicy>,
    pub(crate) kind: Option<RetryPolicy>,
    pub(crate) queue: Option<RetryPolicy>,
    pub(crate) engine: RetryPolicy,
}

impl RetryPolicies {
    /// Returns the nearest policy that is set.
    pub(crate) fn most_specific(self) -> RetryPolicy {
        self.task.or(self.kind).or(self.queue).unwrap_or(self.engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_timeout_and_deadline_counts() {
        let now = Timestamp::from_microseconds(1_000_000);
        let second = Duration::from_secs(1);
        let deadline = Some(now.plus(second));
        assert_eq!(time_limit(Some(second * 2), deadline, || now), TimeLimit::Deadline(second));
        assert_eq!(time_limit(Some(second / 2), deadline, || now), TimeLimit::Timeout(second / 2));
        assert_eq!(time_limit(Some(second), Some(now), || now), TimeLimit::Expired);
    }

    #[test]
    fn the_nearest_policy_holds() {
        let of = |attempts| RetryPolicy { attempts, ..RetryPolicy::default() };
        let policies = RetryPolicies { task: None, kind: None, queue: Some(of(3)), engine: of(4) };
        assert_eq!(policies.most_specific().attempts, 3);
        assert_eq!(RetryPolicies { kind: Some(of(2)), ..policies }.most_specific().attempts, 2);
        assert_eq!(RetryPolicies { kind: Some(of(2)), task: Some(of(1)), ..policies }.most_specific().attempts, 1);
        assert_eq!(RetryPolicies { queue: None, ..policies }.most_specific().attempts, 4);
    }
}
