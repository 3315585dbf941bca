//! For how long something is tried again.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::api::error::Error;
use crate::clock::{Clock, SystemClock};
use crate::postgres::connect::error::driver_error;
use crate::postgres::connect::error::is_to_be_repeated;

/// The first pause before the next try; each is twice as long as the one before.
pub(in crate::postgres) const PAUSE: Duration = Duration::from_millis(5);

/// The longest pause.
pub(in crate::postgres) const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How much longer something is tried again; it counts from the first failure.
#[derive(Debug)]
pub(in crate::postgres) struct RetryBudget {
    whole: Duration,
    until: Option<Duration>,
    pause: Duration,
}

impl RetryBudget {
    pub(in crate::postgres) fn new(whole: Duration) -> Self {
        Self { whole, until: None, pause: PAUSE }
    }

    /// Takes note of a failure; answers whether to try again.
    pub(in crate::postgres) fn lasts(&mut self) -> bool {
        let now = SystemClock.steady();
        now < *self.until.get_or_insert(now.saturating_add(self.whole))
    }

    /// Takes note of a failure, and waits before the next try; `false` if there is to be none.
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

/// Whether what failed only read, and may be answered when the server is back.
pub(in crate::postgres) fn is_passing(error: &Error) -> bool {
    driver_error(error).is_some_and(is_to_be_repeated)
}
