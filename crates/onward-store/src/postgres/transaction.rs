//! One transaction: the lock, what calls look for, what they change.

use std::collections::BTreeSet;

use futures_util::future::join4;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::error::{classified, driver_error, is_lost, is_to_be_repeated};
use super::fetch::{Fetcher, take};
use super::migrate::LOCK;
use super::save::save_and_commit;
use super::store::Shared;
use crate::error::{Error, Result};
use crate::memory::{Counters, ItemRow, Now, Partial, Ran, Want, claimed_by, wanted_by};
use crate::outcome::Outcome;
use crate::store::{Durability, Hint};
use crate::write::Write;

/// How often what writes look for is loaded at the most. Each time brings them further, so that this is reached by a defect alone.
const ROUNDS: usize = 10_000;

/// What came of a transaction.
pub(super) enum Fate {
    Committed(Ran),
    /// It did not happen. `again` if the same may go through now.
    Failed {
        error: Error,
        again: bool,
    },
    /// The connection was lost while it was committed: the server knows of it by this number.
    Unknown {
        ran: Ran,
        transaction: String,
        error: Error,
    },
}

/// What the store says of itself at the beginning of a transaction.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) now: Now,
    pub(super) partial: Partial,
    transaction: Option<String>,
}

/// Applies calls in one transaction.
pub(super) async fn apply(client: &Client, shared: &Shared, calls: &[&[Write]]) -> Fate {
    let decided = match decide(client, shared, calls).await {
        Ok(decided) => decided,
        Err(error) => {
            // A connection on which this fails is not used again.
            let is_over = client.batch_execute("ROLLBACK").await.is_err();
            let again = is_over || driver_error(&error).is_some_and(is_to_be_repeated);
            return Fate::Failed { error, again };
        }
    };
    let (header, mut ran) = decided;
    let difference = match header.partial.difference(&mut ran) {
        Ok(difference) => difference,
        Err(error) => return Fate::Failed { error, again: false },
    };
    let notify = (ran.hint != Hint::default()).then(|| shared.message(ran.hint));
    match save_and_commit(client, &shared.sql, &difference, notify.as_deref()).await {
        Ok(()) => Fate::Committed(ran),
        Err(error) if is_lost(&error) => match header.transaction {
            Some(transaction) => Fate::Unknown { ran, transaction, error: classified(error) },
            None => Fate::Failed { error: classified(error), again: false },
        },
        Err(error) => {
            let again = is_to_be_repeated(&error);
            let _ = client.batch_execute("ROLLBACK").await;
            Fate::Failed { error: classified(error), again }
        }
    }
}

async fn decide(client: &Client, shared: &Shared, calls: &[&[Write]]) -> Result<(Header, Ran)> {
    let mut first = Vec::new();
    calls.iter().copied().flatten().for_each(|write| wanted_by(write, &mut first));
    let claimed = calls.iter().map(|call| claimed_by(call)).fold(0, usize::saturating_add);
    let begin = format!("{}; {}", shared.begin(), shared.sql.text(LOCK));
    // Keys that are over are looked for by this machine's idea of the time, which is as good.
    let now = shared.clock().now().as_microseconds();
    let mut fetcher = Fetcher::new(client, &shared.sql, claimed, now);
    let mut header = begin_with(client, shared, &begin, &mut fetcher, first.into_iter().collect()).await?;
    shared.saw(header.partial.stamp());
    for _ in 0..ROUNDS {
        match header.partial.run(calls, header.now)? {
            Ok(ran) => return Ok((header, ran)),
            Err(wants) => {
                let fetched = fetcher.fetch(wants).await?;
                take(&mut header.partial, fetched)?;
            }
        }
    }
    Err(Error::io("what writes look for cannot be loaded; this is a defect of the PostgreSQL store"))
}

/// Begins a transaction, and reads what every one needs and what is wanted first, in one round trip.
pub(super) async fn begin_with(
    client: &Client,
    shared: &Shared,
    begin: &str,
    fetcher: &mut Fetcher<'_>,
    wants: BTreeSet<Want>,
) -> Result<Header> {
    let writes = begin.contains("pg_advisory");
    let counters = shared.sql.text(if writes { COUNTERS_TO_WRITE } else { COUNTERS_TO_READ });
    let items = shared.sql.text("SELECT sort, name, body FROM {s}.item");
    let none: &[(&(dyn ToSql + Sync), Type)] = &[];
    let (begun, counters, items, fetched) = join4(
        client.batch_execute(begin),
        client.query_typed(&counters, none),
        client.query_typed(&items, none),
        fetcher.fetch(wants),
    )
    .await;
    begun.map_err(classified)?;
    let mut header = header(shared, &counters.map_err(classified)?)?;
    for row in items.map_err(classified)? {
        header.partial.item(&ItemRow { sort: row.get(0), name: row.get(1), body: row.get(2) })?;
    }
    take(&mut header.partial, fetched?)?;
    Ok(header)
}

const COUNTERS_TO_WRITE: &str = "SELECT (SELECT last_value FROM {s}.last_task), (SELECT last_value FROM {s}.last_session), \
     (SELECT last_value FROM {s}.ends), (SELECT last_value FROM {s}.last_entry), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
     (SELECT day FROM {s}.day ORDER BY day DESC LIMIT 1), (SELECT queue FROM {s}.day ORDER BY day DESC LIMIT 1), \
     pg_current_xact_id()::text";

const COUNTERS_TO_READ: &str = "SELECT (SELECT last_value FROM {s}.last_task), (SELECT last_value FROM {s}.last_session), \
     (SELECT last_value FROM {s}.ends), (SELECT last_value FROM {s}.last_entry), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, NULL::bigint, NULL::text, NULL::text";

fn header(shared: &Shared, rows: &[Row]) -> Result<Header> {
    let Some(row) = rows.first() else { return Err(Error::io("PostgreSQL did not say where the store stands")) };
    let get = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    let counters = Counters { last_task: get(0)?, last_session: get(1)?, ends: get(2)?, last_entry: get(3)? };
    let latest: (Option<i64>, Option<String>) =
        (row.try_get(5).map_err(classified)?, row.try_get(6).map_err(classified)?);
    let partial = Partial::new(counters, latest.0.zip(latest.1), shared.options.payload_limit)?;
    Ok(Header { now: shared.now(get(4)?), partial, transaction: row.try_get(7).map_err(classified)? })
}

/// Whether a transaction whose commit was not answered happened. Asked on another connection.
pub(super) async fn has_happened(client: &Client, transaction: &str) -> Result<Option<bool>> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&transaction, Type::TEXT)];
    let rows = client.query_typed("SELECT pg_xact_status($1::text::xid8)", &parameters).await.map_err(classified)?;
    let status: Option<String> = rows.first().and_then(|row| row.get(0));
    Ok(match status.as_deref() {
        Some("committed") => Some(true),
        Some("aborted") => Some(false),
        _ => None,
    })
}

impl Shared {
    /// How a transaction that writes begins. One whose process stands still gives way to the others after a while.
    fn begin(&self) -> String {
        let synchronous =
            if self.options.durability == Durability::Full { "" } else { "; SET LOCAL synchronous_commit = off" };
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL jit = off; SET LOCAL lock_timeout = '30s'; \
             SET LOCAL idle_in_transaction_session_timeout = '5s'{synchronous}"
        )
    }
}

/// The outcomes of calls.
pub(super) type Outcomes = Vec<Vec<Outcome>>;
