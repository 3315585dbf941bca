//! The server's clock, as replies show it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::api::error::Result;
use crate::api::timestamp::Timestamp;
use crate::clock::{Clock, SystemClock};
use crate::model::Now;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;

/// A clock that continues the server's last known time by this machine's steady clock, so that
/// nothing depends on this machine's wall clock.
///
/// Within the store the steady time is the server's wall time, which all nodes share. A caller that
/// measures durations with [`Clock::steady`] gets this machine's.
#[derive(Debug, Default)]
pub(in crate::postgres) struct ServerClock {
    /// The server's wall time minus this machine's steady time, in microseconds.
    offset: AtomicI64,
}

impl ServerClock {
    /// Records the server's time from a reply, and returns it.
    pub(in crate::postgres) fn received(&self, microseconds: i64) -> Now {
        self.offset.store(microseconds.saturating_sub(here()), Ordering::Relaxed);
        now(microseconds)
    }

    /// Returns the server's time without asking it. The result is never ahead of the server,
    /// because the last reply was late.
    pub(in crate::postgres) fn about_now(&self) -> Now {
        now(here().saturating_add(self.offset.load(Ordering::Relaxed)))
    }
}

/// The query for the server's time.
const READ: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Returns the server's wall time in microseconds.
pub(in crate::postgres) async fn read(client: &OwnedConnection) -> Result<i64> {
    let rows = client.query_typed(READ, &[]).await.map_err(classified)?;
    rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.ok_or_else(nothing_said)
}

/// Returns this machine's steady time in microseconds.
fn here() -> i64 {
    i64::try_from(SystemClock.steady().as_micros()).unwrap_or(i64::MAX)
}

/// Returns a server's time as the store uses it.
fn now(microseconds: i64) -> Now {
    let steady = Duration::from_micros(u64::try_from(microseconds).unwrap_or_default());
    Now { wall: Timestamp::from_microseconds(microseconds), steady }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.about_now().wall
    }

    /// Returns this machine's steady time. The server's arrives with varying delays, and would
    /// jump.
    fn steady(&self) -> Duration {
        SystemClock.steady()
    }
}
