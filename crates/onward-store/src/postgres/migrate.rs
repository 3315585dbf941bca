//! Making the tables of a store.

use tokio_postgres::types::{ToSql, Type};

use super::connection::Link;
use super::error::classified;
use super::save::save_rows;
use super::sql::{BEGIN, Sql};
use crate::error::{Error, Result};
use crate::memory::Difference;
use crate::orchestration::{decode_instance, encode_instance};

/// The number of the schema that this version reads and writes.
pub(super) const SCHEMA: u32 = 10;

/// Each version's script, oldest first. Never changed once released; a later version adds one.
const SCRIPTS: [&str; SCHEMA as usize] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
];

/// The version since which messages that wait for orchestrations are rows.
const MESSAGES_ARE_ROWS: u32 = 4;

/// How many orchestrations are looked at together when the tables are brought up to date.
const INSTANCES: usize = 500;

/// Brings the tables to this version, under the store's lock, so that of several processes that open a store at once one does it. Where there
/// are none, they are made if `create` says so.
pub(super) async fn migrate(client: &Link, sql: &Sql, create: bool) -> Result<()> {
    let version = version(client, sql).await?;
    check(sql, version)?;
    if version == 0 && !create {
        return Err(Error::not_found(format!(
            "there is no store in the schema `{}` of the database; submit something to make one, or name another schema behind `#`",
            sql.schema
        )));
    }
    if version == SCHEMA {
        return forget_writers(client, sql).await;
    }
    let outcome = under_lock(client, sql).await;
    if outcome.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
    }
    outcome
}

async fn under_lock(client: &Link, sql: &Sql) -> Result<()> {
    client.batch_execute(&sql.and_lock(BEGIN)).await.map_err(classified)?;
    within(client, sql).await?;
    client.batch_execute("COMMIT").await.map_err(classified)
}

/// Brings the tables to this version, or makes them, in a transaction that has the store's lock.
pub(super) async fn within(client: &Link, sql: &Sql) -> Result<()> {
    let from = version(client, sql).await?;
    check(sql, from)?;
    if from == 0 {
        make(client, sql).await?;
    }
    for script in SCRIPTS.iter().skip(from as usize) {
        let script = script.replace("{schema}", &sql.schema);
        client.batch_execute(&script).await.map_err(classified)?;
    }
    if from > 0 && from < MESSAGES_ARE_ROWS {
        move_messages(client, sql, "task").await?;
        move_messages(client, sql, "ended").await?;
    }
    let done = sql.text(&format!("UPDATE {{s}}.version SET version = {SCHEMA}"));
    client.batch_execute(&done).await.map_err(classified)
}

/// Makes rows of the messages that wait within what is kept of orchestrations.
async fn move_messages(client: &Link, sql: &Sql, table: &str) -> Result<()> {
    let text = format!(
        "SELECT id, instance FROM {{s}}.{table} WHERE instance IS NOT NULL AND id > $1 ORDER BY id LIMIT {INSTANCES}"
    );
    let update = format!(
        "UPDATE {{s}}.{table} t SET instance = u.instance FROM unnest($1, $2) AS u (id, instance) WHERE t.id = u.id"
    );
    let mut after = 0i64;
    loop {
        let rows = client.query_typed(&sql.text(&text), &[(&after, Type::INT8)]).await.map_err(classified)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.try_get(0).map_err(classified)?;
        let mut moved = Difference::default();
        let (mut ids, mut instances): (Vec<i64>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for row in &rows {
            let id = row.try_get(0).map_err(classified)?;
            let instance = decode_instance(row.try_get(1).map_err(classified)?)?;
            if !instance.mailbox.is_empty() {
                moved.put_messages(id, &instance.mailbox)?;
                ids.push(id);
                instances.push(encode_instance(&instance)?);
            }
        }
        save_rows(client, sql, &moved).await.map_err(classified)?;
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&ids, Type::INT8_ARRAY), (&instances, Type::BYTEA_ARRAY)];
        client.query_typed(&sql.text(&update), &values).await.map_err(classified)?;
    }
}

/// Writers that wrote last more than a day ago are gone: nobody asks for their last batch any more.
async fn forget_writers(client: &Link, sql: &Sql) -> Result<()> {
    let text = sql.text("DELETE FROM {s}.writer WHERE at < now() - interval '1 day'");
    client.query_typed(&text, &[]).await.map(drop).map_err(classified)
}

async fn make(client: &Link, sql: &Sql) -> Result<()> {
    // Who may not make schemas may use one that was made for it: `IF NOT EXISTS` asks for the right first.
    let is_there = client.query_typed(&sql.text("SELECT 1 FROM pg_namespace WHERE nspname = '{s}'"), &[]).await;
    if is_there.map_err(classified)?.is_empty() {
        client.batch_execute(&sql.text("CREATE SCHEMA {s}")).await.map_err(classified)?;
    }
    let make = "CREATE TABLE {s}.version (version integer NOT NULL); INSERT INTO {s}.version VALUES (0)";
    client.batch_execute(&sql.text(make)).await.map_err(classified)
}

/// Refuses a store of a newer program.
pub(super) fn check(sql: &Sql, version: u32) -> Result<()> {
    if version <= SCHEMA {
        return Ok(());
    }
    Err(Error::version(format!(
        "the store in the schema `{}` has version {version}, and this program knows up to {SCHEMA}; use a newer one",
        sql.schema
    )))
}

/// Finds the table `version`.
///
/// The catalog is read, since `to_regclass` answers from what the connection has cached: behind the
/// lock that may be that there is no store, which was so before another process made it.
const FIND: &str = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE n.nspname = '{s}' AND c.relname = 'version'";

/// Returns the number of the schema, or 0 where there is no store.
async fn version(client: &Link, sql: &Sql) -> Result<u32> {
    let there = client.query_typed(&sql.text(FIND), &[]).await.map_err(classified)?;
    if there.is_empty() {
        return Ok(0);
    }
    let rows = client.query_typed(&sql.text("SELECT version FROM {s}.version"), &[]).await.map_err(classified)?;
    let version: i32 = rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or(0);
    Ok(version.unsigned_abs())
}
