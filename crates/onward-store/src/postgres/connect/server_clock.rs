//! The server's clock, as seen from here.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::api::error::Result;
use crate::api::timestamp::Timestamp;
use crate::clock::{Clock, SystemClock};
use crate::model::Now;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;

/// Goes by what the server said last and by this machine's steady clock since then, so that nobody
/// depends on how this machine's wall clock is set. Within the store steady time is the server's
/// wall time, which all nodes share; who measures times here gets this machine's.
#[derive(Debug, Default)]
pub(in crate::postgres) struct ServerClock {
    /// Server's wall time less this machine's steady time, in microseconds.
    offset: AtomicI64,
}

impl ServerClock {
    /// Takes what the server said.
    pub(in crate::postgres) fn received(&self, microseconds: i64) -> Now {
        self.offset.store(microseconds.saturating_sub(here()), Ordering::Relaxed);
        now(microseconds)
    }

    /// What the server would say now, as far as can be told from what it said last: not more.
    pub(in crate::postgres) fn about_now(&self) -> Now {
        now(here().saturating_add(self.offset.load(Ordering::Relaxed)))
    }
}

const READ: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Returns the server's wall time in microseconds.
pub(in crate::postgres) async fn read(client: &OwnedConnection) -> Result<i64> {
    let rows = client.query_typed(READ, &[]).await.map_err(classified)?;
    rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.ok_or_else(nothing_said)
}

fn here() -> i64 {
    i64::try_from(SystemClock.steady().as_micros()).unwrap_or(i64::MAX)
}

fn now(microseconds: i64) -> Now {
    let steady = Duration::from_micros(u64::try_from(microseconds).unwrap_or_default());
    Now { wall: Timestamp::from_microseconds(microseconds), steady }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.about_now().wall
    }

    /// This machine's: what the server says comes late, now more and now less, and would have it
    /// jump.
    fn steady(&self) -> Duration {
        SystemClock.steady()
    }
}
