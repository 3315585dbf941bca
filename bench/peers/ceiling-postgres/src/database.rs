//! The tables: live tasks with an index of the waiting ones, and a history of ended tasks.

use anyhow::{Context as _, Result};
use bench_protocol::{Order, Row};
use tokio_postgres::{Client, NoTls, Statement, connect};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS task (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state smallint NOT NULL, priority smallint NOT NULL,
        submitted_at bigint NOT NULL, payload bytea NOT NULL)
        WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
    CREATE TABLE IF NOT EXISTS history (
        id bigint PRIMARY KEY, state smallint NOT NULL, submitted_at bigint NOT NULL, finished_at bigint NOT NULL,
        attempts integer NOT NULL, payload bytea NOT NULL);
    CREATE INDEX IF NOT EXISTS waiting ON task (priority, id) WHERE state = 0;
    TRUNCATE task, history;";

const INSERT: &str = "INSERT INTO task (state, priority, submitted_at, payload)
    SELECT 0, 128, $1, payload FROM unnest($2::bytea[]) AS payload";
const CLAIM: &str = "UPDATE task SET state = 1 WHERE id = ANY(ARRAY(
        SELECT id FROM task WHERE state = 0 ORDER BY priority, id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, payload";
const TO_HISTORY: &str = "WITH done AS (DELETE FROM task WHERE id = ANY($1) RETURNING id, submitted_at, payload)
    INSERT INTO history SELECT id, 4, submitted_at, $2, 1, payload FROM done";

/// The timestamp of all rows, because the ceiling does not read the clock.
const MOMENT: i64 = 1_750_000_000_000_000;

/// A connection with its prepared statements.
pub(crate) struct Database {
    pub(crate) client: Client,
    insert: Statement,
    claim: Statement,
    to_history: Statement,
}

/// Creates or empties the tables, and inserts the backlog of the row.
pub(crate) async fn make(url: &str, row: &Row) -> Result<()> {
    let client = client(url).await?;
    client.batch_execute(SCHEMA).await?;
    let payload = payload(row)?;
    let waiting = "INSERT INTO task (state, priority, submitted_at, payload)
        SELECT 0, 128, $2, $3 FROM generate_series(1, $1::bigint)";
    client.execute(waiting, &[&i64::try_from(row.backlog.waiting)?, &MOMENT, &payload]).await?;
    let finished = "INSERT INTO history SELECT -n, 4, $2, $2, 1, $3 FROM generate_series(1, $1::bigint) AS n";
    client.execute(finished, &[&i64::try_from(row.backlog.finished)?, &MOMENT, &payload]).await?;
    Ok(())
}

/// Returns the payload of all tasks.
pub(crate) fn payload(row: &Row) -> Result<Vec<u8>> {
    Order::new(0, 0, row.payload_bytes)?.to_json()
}

async fn client(url: &str) -> Result<Client> {
    let (client, connection) = connect(url, NoTls).await.context("the server cannot be reached")?;
    tokio::spawn(connection);
    Ok(client)
}

impl Database {
    /// Opens a connection, with plans that suit growing tables.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let client = client(url).await?;
        let plans = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off";
        client.batch_execute(plans).await?;
        let insert = client.prepare(INSERT).await?;
        let claim = client.prepare(CLAIM).await?;
        let to_history = client.prepare(TO_HISTORY).await?;
        Ok(Self { client, insert, claim, to_history })
    }

    /// Inserts tasks in one commit.
    pub(crate) async fn submit(&self, payloads: &[&[u8]]) -> Result<()> {
        self.client.execute(&self.insert, &[&MOMENT, &payloads]).await?;
        Ok(())
    }

    /// Claims up to `limit` tasks in one commit and returns their ids.
    pub(crate) async fn claim(&self, limit: usize) -> Result<Vec<i64>> {
        let rows = self.client.query(&self.claim, &[&i64::try_from(limit)?]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Moves tasks to the history in one commit and returns their number.
    pub(crate) async fn complete(&self, ids: &[i64]) -> Result<u64> {
        Ok(self.client.execute(&self.to_history, &[&ids, &MOMENT]).await?)
    }

    /// Returns the number of rows of a table.
    pub(crate) async fn count(&self, table: &str) -> Result<u64> {
        let row = self.client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }
}
