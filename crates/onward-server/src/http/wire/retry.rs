//! Retry policies.

use onward_store::rules::retry::{Backoff, RetryPolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::duration::DurationText;

/// A retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryBody {
    /// The number of attempts, at least 1.
    attempts: u32,
    /// The delay between attempts.
    backoff: BackoffBody,
}

/// The delay between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum BackoffBody {
    /// A constant delay.
    Constant {
        /// The delay.
        delay: DurationText,
    },
    /// A delay that grows by an amount.
    Linear {
        /// The first delay.
        initial: DurationText,
        /// The growth.
        increment: DurationText,
        /// The longest delay.
        maximum: DurationText,
    },
    /// A delay that grows by a factor.
    Exponential {
        /// The first delay.
        initial: DurationText,
        /// The factor, at least 1.
        factor: f64,
        /// The longest delay.
        maximum: DurationText,
    },
    /// A random part of a delay that grows by a factor.
    ExponentialJitter {
        /// The first delay.
        initial: DurationText,
        /// The factor, at least 1.
        factor: f64,
        /// The longest delay.
        maximum: DurationText,
    },
}

impl From<RetryBody> for RetryPolicy {
    fn from(body: RetryBody) -> Self {
        let backoff = match body.backoff {
            BackoffBody::Constant { delay } => Backoff::Constant { delay: delay.0 },
            BackoffBody::Linear { initial, increment, maximum } => {
                Backoff::Linear { initial: initial.0, increment: increment.0, maximum: maximum.0 }
            }
            BackoffBody::Exponential { initial, factor, maximum } => {
                Backoff::Exponential { initial: initial.0, factor, maximum: maximum.0 }
            }
            BackoffBody::ExponentialJitter { initial, factor, maximum } => {
                Backoff::ExponentialJitter { initial: initial.0, factor, maximum: maximum.0 }
            }
        };
        Self { attempts: body.attempts, backoff }
    }
}

impl From<RetryPolicy> for RetryBody {
    fn from(policy: RetryPolicy) -> Self {
        let text = DurationText;
        let backoff = match policy.backoff {
            Backoff::Constant { delay } => BackoffBody::Constant { delay: text(delay) },
            Backoff::Linear { initial, increment, maximum } => {
                BackoffBody::Linear { initial: text(initial), increment: text(increment), maximum: text(maximum) }
            }
            Backoff::Exponential { initial, factor, maximum } => {
                BackoffBody::Exponential { initial: text(initial), factor, maximum: text(maximum) }
            }
            Backoff::ExponentialJitter { initial, factor, maximum } => {
                BackoffBody::ExponentialJitter { initial: text(initial), factor, maximum: text(maximum) }
            }
        };
        Self { attempts: policy.attempts, backoff }
    }
}
