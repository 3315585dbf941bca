//! Retry policies.

use serde::{Deserialize, Serialize};

/// The growth of the delay between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always `initial_ms`.
    Constant,
    /// `increment_ms` longer each time.
    Linear,
    /// `factor` times as long each time.
    Exponential,
    /// A random part of the exponential delay.
    #[default]
    Jitter,
}

/// A retry policy. An absent field has the default that its method returns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts, with the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The growth of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The first delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<u64>,
    /// The growth of a linear delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increment_ms: Option<u64>,
    /// The factor of an exponential delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ms: Option<u64>,
}

impl RetryPolicy {
    /// Returns the number of attempts; default: 5.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts.unwrap_or(5)
    }

    /// Returns the first delay in milliseconds; default: 1000.
    #[must_use]
    pub fn initial_ms(&self) -> u64 {
        self.initial_ms.unwrap_or(1000)
    }

    /// Returns the growth of a linear delay in milliseconds; default: the first delay.
    #[must_use]
    pub fn increment_ms(&self) -> u64 {
        self.increment_ms.unwrap_or_else(|| self.initial_ms())
    }

    /// Returns the factor of an exponential delay; default: 2.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor.unwrap_or(2.0)
    }

    /// Returns the longest delay in milliseconds; default: 600 000.
    #[must_use]
    pub fn maximum_ms(&self) -> u64 {
        self.maximum_ms.unwrap_or(600_000)
    }
}
