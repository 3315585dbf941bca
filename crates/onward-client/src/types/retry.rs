//! Retry policies.

use serde::{Deserialize, Serialize};

use super::DurationText;

/// A retry policy: the number of attempts, and the delay between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts, at least 1.
    pub attempts: u32,
    /// The delay between attempts.
    pub backoff: Backoff,
}

/// The delay between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Backoff {
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
