//! Retry policies: the number of attempts, and the delay between them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::write::AfterFailure;

/// The longest delay between two attempts: a year. Longer delays are cut to it, and no arithmetic
/// overflows.
pub const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// The delay between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "backoff")]
pub enum Backoff {
    /// A constant delay.
    Constant {
        /// The delay.
        delay: Duration,
    },
    /// `initial`, then `increment` longer each time, at most `maximum`.
    Linear {
        /// The first delay.
        initial: Duration,
        /// The increment.
        increment: Duration,
        /// The longest delay.
        maximum: Duration,
    },
    /// `initial`, then `factor` times as long each time, at most `maximum`.
    Exponential {
        /// The first delay.
        initial: Duration,
        /// The factor, at least 1.
        factor: f64,
        /// The longest delay.
        maximum: Duration,
    },
    /// A random delay between zero and that of `Exponential`, so that tasks which failed together
    /// are not retried together. ("Full jitter", as the AWS Architecture Blog describes it in
    /// *Exponential Backoff And Jitter*, 2015.)
    ExponentialJitter {
        /// The first upper bound.
        initial: Duration,
        /// The factor, at least 1.
        factor: f64,
        /// The largest upper bound.
        maximum: Duration,
    },
}

impl Default for Backoff {
    /// Returns the exponential back-off with jitter from 1 s, doubling, at most 10 min.
    fn default() -> Self {
        Self::ExponentialJitter { initial: Duration::from_secs(1), factor: 2.0, maximum: Duration::from_secs(600) }
    }
}

impl Backoff {
    /// Returns the delay after the `failures`-th failure, counted from 1; at most
    /// [`LONGEST_DELAY`]. `random` is a random number for the jitter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use onward_store::rules::retry::Backoff;
    ///
    /// let (initial, maximum) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let backoff = Backoff::Exponential { initial, factor: 2.0, maximum };
    /// assert_eq!(backoff.delay(4, 0), Duration::from_secs(8));
    /// assert_eq!(backoff.delay(u32::MAX, 0), Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn delay(&self, failures: u32, random: u64) -> Duration {
        let before = failures.saturating_sub(1);
        match *self {
            Self::Constant { delay } => delay.min(LONGEST_DELAY),
            Self::Linear { initial, increment, maximum } => {
                initial.saturating_add(increment.saturating_mul(before)).min(maximum).min(LONGEST_DELAY)
            }
            Self::Exponential { initial, factor, maximum } => exponential(initial, factor, maximum, before),
            Self::ExponentialJitter { initial, factor, maximum } => {
                jitter(exponential(initial, factor, maximum, before), random)
            }
        }
    }
}

/// Returns the delay after a failure that `before` others precede, without jitter.
fn exponential(initial: Duration, factor: f64, maximum: Duration, before: u32) -> Duration {
    let longest = maximum.min(LONGEST_DELAY);
    // A power that overflows is infinite, and infinity times zero is no number.
    if initial.is_zero() {
        return Duration::ZERO;
    }
    let exponent = i32::try_from(before).unwrap_or(i32::MAX);
    let seconds = initial.as_secs_f64() * factor.max(1.0).powi(exponent);
    // The conversion fails for a delay that is too long. Then the longest delay applies.
    Duration::try_from_secs_f64(seconds).map_or(longest, |delay| delay.min(longest))
}

/// Returns a time from zero to `bound`, uniform to within 2⁻³². It multiplies and shifts (Lemire,
/// *Fast Random Integer Generation in an Interval*, 2019) without the rejection step, which jitter
/// does not need.
fn jitter(bound: Duration, random: u64) -> Duration {
    let nanoseconds = (bound.as_nanos().saturating_add(1) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)).min(bound)
}

/// A retry policy: the number of attempts of a task, and the delay between them.
/// ```
/// use std::time::Duration;
/// use onward_store::rules::retry::{Backoff, RetryPolicy};
///
/// // Ten attempts, with 1, 2, 4 … seconds between them, and never more than a minute.
/// let (initial, maximum) = (Duration::from_secs(1), Duration::from_secs(60));
/// let backoff = Backoff::Exponential { initial, factor: 2.0, maximum };
/// let policy = RetryPolicy { attempts: 10, backoff };
/// assert!(policy.check("mail").is_ok());
/// assert!(RetryPolicy { attempts: 0, ..policy }.check("mail").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts, including the first one; at least 1.
    pub attempts: u32,
    /// The delay between attempts.
    #[serde(flatten)]
    pub backoff: Backoff,
}

impl Default for RetryPolicy {
    /// Returns 5 attempts with the default back-off.
    fn default() -> Self {
        Self { attempts: 5, backoff: Backoff::default() }
    }
}

impl RetryPolicy {
    /// A policy of one attempt without retries.
    pub const NEVER: Self = Self { attempts: 1, backoff: Backoff::Constant { delay: Duration::ZERO } };

    /// Checks the policy as a store does.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for 0 attempts, or a factor that is not a finite number of
    /// at least 1.
    pub fn check(&self, kind: &str) -> Result<()> {
        if self.attempts == 0 {
            return Err(Error::invalid(format!(
                "the retry policy of a task of kind `{kind}` allows no attempt; `attempts` counts the first one, so it is at least 1"
            )));
        }
        match self.backoff {
            Backoff::Exponential { factor, .. } | Backoff::ExponentialJitter { factor, .. }
                if !(factor.is_finite() && factor >= 1.0) =>
            {
                Err(Error::invalid(format!(
                    "the back-off factor of a task of kind `{kind}` is {factor}; it must be a number of at least 1"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The class of a failure, which a handler chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// A retry may help. The policy sets the delay. The default.
    #[default]
    Retryable,
    /// A retry may help, after this delay instead of that of the policy.
    RetryAfter(Duration),
    /// A retry cannot help. The task fails.
    Permanent,
    /// The task is not at fault. It is retried after this delay, and the attempt does not count.
    NotCounted(Duration),
}

/// Returns the effect of a failed attempt with number `attempt`, counted from 1. `random` is a
/// random number for the jitter.
#[must_use]
pub fn after_failure(policy: &RetryPolicy, attempt: u32, class: FailureClass, random: u64) -> AfterFailure {
    let retry = |after: Duration, uses_attempt| {
        let after = after.min(LONGEST_DELAY);
        AfterFailure::Retry { after, uses_attempt, hold: after.is_zero() }
    };
    match class {
        FailureClass::Permanent => AfterFailure::Fail,
        FailureClass::NotCounted(after) => retry(after, false),
        _ if attempt >= policy.attempts => AfterFailure::Dead,
        FailureClass::RetryAfter(after) => retry(after, true),
        FailureClass::Retryable => retry(policy.backoff.delay(attempt, random), true),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exponential_of(maximum: Duration) -> Backoff {
        Backoff::Exponential { initial: Duration::from_millis(100), factor: 3.0, maximum }
    }

    #[test]
    fn the_last_attempt_goes_to_the_dead_letters() {
        let policy = RetryPolicy { attempts: 3, ..RetryPolicy::default() };
        assert_eq!(after_failure(&policy, 3, FailureClass::Retryable, 0), AfterFailure::Dead);
    }

    #[test]
    fn a_failure_that_does_not_count_is_retried_beyond_the_last_attempt() {
        let next = after_failure(&RetryPolicy::NEVER, 9, FailureClass::NotCounted(Duration::from_secs(1)), 0);
        let expected = AfterFailure::Retry { after: Duration::from_secs(1), uses_attempt: false, hold: false };
        assert_eq!(next, expected);
    }

    #[test]
    fn a_permanent_failure_is_not_retried() {
        assert_eq!(after_failure(&RetryPolicy::default(), 1, FailureClass::Permanent, 0), AfterFailure::Fail);
    }

    #[test]
    fn a_first_delay_of_zero_stays_zero_however_often_an_attempt_fails() {
        let backoff = Backoff::Exponential { initial: Duration::ZERO, factor: 2.0, maximum: Duration::from_secs(60) };
        assert_eq!(backoff.delay(u32::MAX, 0), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn no_delay_overflows_or_passes_its_maximum(failures: u32, random: u64, maximum in 0u64..1_000_000_000_000) {
            let maximum = Duration::from_secs(maximum);
            for backoff in [
                exponential_of(maximum),
                Backoff::Linear { initial: Duration::MAX, increment: Duration::MAX, maximum },
                Backoff::ExponentialJitter { initial: Duration::MAX, factor: f64::MAX, maximum },
            ] {
                prop_assert!(backoff.delay(failures, random) <= maximum.min(LONGEST_DELAY));
            }
        }

        #[test]
        fn exponential_delays_never_shrink(failures in 1u32..1000) {
            let backoff = exponential_of(Duration::from_secs(3600));
            prop_assert!(backoff.delay(failures, 0) <= backoff.delay(failures + 1, 0));
        }
    }
}
