//! The retry budget: the time for which a failed operation is retried.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::api::error::Error;
use crate::clock::{Clock, SystemClock};
use crate::postgres::connect::error::driver_error;
use crate::postgres::connect::error::is_retryable;

/// The first pause before a retry. Each further pause is twice as long.
pub(in crate::postgres) const PAUSE: Duration = Duration::from_millis(5);

/// The longest pause before a retry.
pub(in crate::postgres) const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The remaining time for retries, counted from the first failure.
#[derive(Debug)]
pub(in crate::postgres) struct RetryBudget {
    /// The whole budget.
    whole: Duration,
    /// The end of the budget by this machine's steady clock, set at the first failure.
    until: Option<Duration>,
    /// The next pause.
    pause: Duration,
}

impl RetryBudget {
    /// Creates a budget, which starts to run out at the first failure.
    pub(in crate::postgres) fn new(whole: Duration) -> Self {
        Self { whole, until: None, pause: PAUSE }
    }

    /// Records a failure, and returns true if a retry is allowed.
    pub(in crate::postgres) fn lasts(&mut self) -> bool {
        let now = SystemClock.steady();
        now < *self.until.get_or_insert(now.saturating_add(self.whole))
    }

    /// Records a failure, and pauses before the retry. Returns false if none is allowed.
    pub(in crate::postgres) async fn wait(&mut self) -> bool {
        if !self.lasts() {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONG_PAUSE);
        true
    }
}

/// Returns whether a store could not be opened because its server starts, or has no free
/// connection: both pass by themselves.
pub(in crate::postgres) fn is_not_ready(error: &Error) -> bool {
    let passes = [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW];
    driver_error(error).and_then(tokio_postgres::Error::code).is_some_and(|code| passes.contains(code))
}

/// Returns true if a failed read may succeed when the server is back.
pub(in crate::postgres) fn is_passing(error: &Error) -> bool {
    driver_error(error).is_some_and(is_retryable)
}
