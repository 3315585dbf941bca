//! Making the tables of a store.

use tokio_postgres::Client;

use super::error::classified;
use super::sql::Sql;
use crate::error::{Error, Result};

/// The number of the schema that this version reads and writes.
pub(super) const SCHEMA: u32 = 1;

/// Each version's script, oldest first. Never changed once released; a later version adds one.
const SCRIPTS: [&str; SCHEMA as usize] = [include_str!("schema.sql")];

/// Brings the tables to this version, under the store's lock, so that of several processes that open a store at once one does it.
pub(super) async fn migrate(client: &Client, sql: &Sql) -> Result<()> {
    let version = version(client, sql).await?;
    check(sql, version)?;
    if version == SCHEMA {
        return Ok(());
    }
    let outcome = under_lock(client, sql).await;
    if outcome.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
    }
    outcome
}

async fn under_lock(client: &Client, sql: &Sql) -> Result<()> {
    client.batch_execute(&format!("BEGIN; {}", sql.text(LOCK))).await.map_err(classified)?;
    let from = version(client, sql).await?;
    check(sql, from)?;
    if from == 0 {
        let make = "CREATE SCHEMA IF NOT EXISTS {s}; CREATE TABLE {s}.version (version integer NOT NULL); \
                    INSERT INTO {s}.version VALUES (0)";
        client.batch_execute(&sql.text(make)).await.map_err(classified)?;
    }
    for script in SCRIPTS.iter().skip(from as usize) {
        let script = script.replace("{schema}", &sql.schema);
        client.batch_execute(&script).await.map_err(classified)?;
    }
    let done = sql.text(&format!("UPDATE {{s}}.version SET version = {SCHEMA}; COMMIT"));
    client.batch_execute(&done).await.map_err(classified)
}

/// The store's lock, held until the end of the transaction.
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('onward {s}', 0))";

fn check(sql: &Sql, version: u32) -> Result<()> {
    if version <= SCHEMA {
        return Ok(());
    }
    Err(Error::version(format!(
        "the store in the schema `{}` has version {version}, and this program knows up to {SCHEMA}; use a newer one",
        sql.schema
    )))
}

/// 0 where there is no store.
async fn version(client: &Client, sql: &Sql) -> Result<u32> {
    let there = client
        .query_typed(&sql.text("SELECT 1 WHERE to_regclass('{s}.version') IS NOT NULL"), &[])
        .await
        .map_err(classified)?;
    if there.is_empty() {
        return Ok(0);
    }
    let rows = client.query_typed(&sql.text("SELECT version FROM {s}.version"), &[]).await.map_err(classified)?;
    let version: i32 = rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or(0);
    Ok(version.unsigned_abs())
}
