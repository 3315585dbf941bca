//! The check of a server for operators, as `onward doctor` prints it.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::api::error::Result;
use crate::clock::{Clock, SystemClock};
use crate::postgres::connect::connection::{OwnedConnection, connect};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::connect::pool::are_pooled;
use crate::postgres::connect::rights;
use crate::postgres::shared::Shared;
use crate::postgres::wake::Listener;

/// The number of commits to measure, of which the median counts.
const COMMITS: usize = 20;

/// A report on the server, as [`PostgresStore::check`](crate::PostgresStore::check) returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresReport {
    /// The server's version as the server formats it.
    pub version: String,
    /// The version as a number: 150018 for 15.18.
    pub version_number: u32,
    /// True if the server is a standby, which rejects writes.
    pub is_standby: bool,
    /// True if the server waits for its disk at all (`fsync`).
    pub syncs: bool,
    /// The value of `synchronous_commit` for this role and database.
    pub synchronous_commit: String,
    /// The rights that the role lacks, as the statements that grant them: see
    /// [`PostgresOptions::missing_rights`](crate::PostgresOptions::missing_rights).
    pub missing_rights: Vec<String>,
    /// True if a pooler may change the server process between two transactions.
    pub is_pooled: bool,
    /// The time from a notification until this process receives it. `None` if none arrives, so that
    /// this process polls for changes.
    pub message: Option<Duration>,
    /// The time of a commit that waits for the disk: the median of 20.
    pub commit: Duration,
    /// The number of connections to the server, from all programs.
    pub connections: u32,
    /// The most connections that the server accepts.
    pub connections_limit: u32,
    /// The number of rows of live tasks, as the server estimates it.
    pub live_rows: u64,
    /// The number of rows of tasks that no transaction sees any more and that are not vacuumed yet,
    /// as the server estimates it.
    pub dead_rows: u64,
    /// The number of rows in the inbox that cannot be submitted. The column `error` of the table
    /// `inbox` has the reason. 0 if the role lacks rights, because it may be unable to look.
    pub inbox_refused: u64,
    /// True if the role can see when other roles' transactions began (`pg_read_all_stats`).
    pub sees_others: bool,
    /// The time for which the oldest open snapshot has kept the server from removing dead rows;
    /// `None` if there is none. A transaction, a replica or a prepared transaction can hold one.
    pub oldest_snapshot: Option<Duration>,
}

/// Checks the server over a new connection, so that the store's own connections keep serving
/// callers.
pub(in crate::postgres) async fn check(shared: &Arc<Shared>) -> Result<PostgresReport> {
    let client = connect(&shared.address).await?;
    let server = client.query_typed(SERVER, &[]).await.map_err(classified)?;
    let missing_rights = rights::missing(&client, &shared.sql, shared.options.migrations).await?;
    let inbox_refused = if missing_rights.is_empty() { refused(&client, shared).await? } else { 0 };
    let tables = client.query_typed(&shared.sql.text(TABLES), &[]).await.map_err(classified)?;
    let (Some(server), Some(tables)) = (server.first(), tables.first()) else {
        return Err(nothing_said());
    };
    Ok(PostgresReport {
        version: get(server, 0)?,
        version_number: get::<i32>(server, 1)?.unsigned_abs(),
        is_standby: get(server, 2)?,
        syncs: get(server, 3)?,
        synchronous_commit: get(server, 4)?,
        connections: get::<i32>(server, 5)?.unsigned_abs(),
        connections_limit: get::<i32>(server, 6)?.unsigned_abs(),
        oldest_snapshot: get::<Option<i64>>(server, 7)?.map(|seconds| Duration::from_secs(seconds.unsigned_abs())),
        live_rows: get::<i64>(tables, 0)?.unsigned_abs(),
        dead_rows: get::<i64>(tables, 1)?.unsigned_abs(),
        inbox_refused,
        missing_rights,
        sees_others: get(server, 8)?,
        is_pooled: are_pooled(&client, &connect(&shared.address).await?).await?,
        message: message(&client, shared).await?,
        commit: commit(&client).await?,
    })
}

/// The query for everything about the server.
const SERVER: &str = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(), \
     current_setting('fsync')::bool, current_setting('synchronous_commit'), \
     (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'), \
     current_setting('max_connections')::int, \
     (SELECT max(extract(epoch FROM clock_timestamp() - coalesce(xact_start, backend_start)))::bigint FROM pg_stat_activity \
      WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), pg_has_role('pg_read_all_stats', 'USAGE')";

/// The query for the sizes of the table of live tasks.
const TABLES: &str = "SELECT coalesce(sum(n_live_tup), 0)::bigint, coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables \
     WHERE relid = '{s}.task'::regclass";

/// Counts the rows of the inbox that cannot be submitted.
async fn refused(client: &OwnedConnection, shared: &Shared) -> Result<u64> {
    let text = "SELECT count(*) FROM {s}.inbox WHERE error IS NOT NULL";
    let rows = client.query_typed(&shared.sql.text(text), &[]).await.map_err(classified)?;
    Ok(get::<i64>(rows.first().ok_or_else(nothing_said)?, 0)?.unsigned_abs())
}

/// Decodes a column.
fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(classified)
}

/// Measures a notification from one connection to another.
async fn message(client: &OwnedConnection, shared: &Shared) -> Result<Option<Duration>> {
    let (sql, node) = (&shared.sql, shared.node);
    let Some(mut listener) = Listener::new(&shared.address, sql, node, client).await? else { return Ok(None) };
    let before = SystemClock.steady();
    let came = listener.test(sql, node, client).await?;
    Ok(came.then(|| SystemClock.steady().saturating_sub(before)))
}

/// Measures commits that change nothing and still wait for the disk.
async fn commit(client: &OwnedConnection) -> Result<Duration> {
    let mut costs = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let before = SystemClock.steady();
        client.batch_execute(crate::postgres::sql::SYNC).await.map_err(classified)?;
        costs.push(SystemClock.steady().saturating_sub(before));
    }
    costs.sort_unstable();
    Ok(costs.get(COMMITS / 2).copied().unwrap_or_default())
}
