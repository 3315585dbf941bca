//! What somebody who runs a store should know of its server.

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

/// How many commits are measured; the median counts.
const COMMITS: usize = 20;

/// What a look at the server found; made by [`PostgresStore::check`](crate::PostgresStore::check).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresReport {
    /// The server's version as it says it.
    pub version: String,
    /// The same as a number: 150018 for 15.18.
    pub version_number: u32,
    /// Whether the server is a standby, which takes no writes.
    pub is_standby: bool,
    /// Whether the server waits for its disk at all (`fsync`).
    pub syncs: bool,
    /// What `synchronous_commit` is for this role and database.
    pub synchronous_commit: String,
    /// What the role lacks, as the statements that give it: see
    /// [`PostgresOptions::missing_rights`](crate::PostgresOptions::missing_rights).
    pub missing_rights: Vec<String>,
    /// Whether a pooler gives away the connection between two transactions.
    pub is_pooled: bool,
    /// How long a message to oneself takes; `None` where none comes through, so that this process
    /// looks for changes instead.
    pub message: Option<Duration>,
    /// How long a commit that waits for the disk takes: the median of 20.
    pub commit: Duration,
    /// How many connections the server has, of this and of others.
    pub connections: u32,
    /// How many it takes at the most.
    pub connections_limit: u32,
    /// Rows of live tasks, as the server estimates them.
    pub live_rows: u64,
    /// Rows of tasks that are no longer seen by anyone and not yet cleared away, as the server
    /// estimates them.
    pub dead_rows: u64,
    /// Tasks in the inbox that cannot be submitted: why stands beside each, in the column `error`
    /// of the table `inbox`. 0 where the role lacks rights, for it may not look then.
    pub inbox_refused: u64,
    /// Whether the role sees since when other roles' transactions are open (`pg_read_all_stats`).
    pub sees_others: bool,
    /// For how long somebody has kept the server from clearing rows away, if anybody has: a
    /// transaction, a replica or a prepared transaction.
    pub oldest_snapshot: Option<Duration>,
}

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

const SERVER: &str = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(), \
     current_setting('fsync')::bool, current_setting('synchronous_commit'), \
     (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'), \
     current_setting('max_connections')::int, \
     (SELECT max(extract(epoch FROM clock_timestamp() - coalesce(xact_start, backend_start)))::bigint FROM pg_stat_activity \
      WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), pg_has_role('pg_read_all_stats', 'USAGE')";

const TABLES: &str = "SELECT coalesce(sum(n_live_tup), 0)::bigint, coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables \
     WHERE relid = '{s}.task'::regclass";

async fn refused(client: &OwnedConnection, shared: &Shared) -> Result<u64> {
    let text = "SELECT count(*) FROM {s}.inbox WHERE error IS NOT NULL";
    let rows = client.query_typed(&shared.sql.text(text), &[]).await.map_err(classified)?;
    Ok(get::<i64>(rows.first().ok_or_else(nothing_said)?, 0)?.unsigned_abs())
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(classified)
}

async fn message(client: &OwnedConnection, shared: &Shared) -> Result<Option<Duration>> {
    let (sql, node) = (&shared.sql, shared.node);
    let Some(mut listener) = Listener::new(&shared.address, sql, node, client).await? else { return Ok(None) };
    let before = SystemClock.steady();
    let came = listener.test(sql, node, client).await?;
    Ok(came.then(|| SystemClock.steady().saturating_sub(before)))
}

/// Commits that change nothing and are synced all the same.
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
