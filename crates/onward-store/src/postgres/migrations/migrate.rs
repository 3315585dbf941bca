//! Making the tables of a store, and bringing them up to date.

use crate::api::error::{Error, Result};
use crate::migrations::Migrations;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::sql::{BEGIN, Sql};

/// The scripts in order. A released one never changes: a change of the tables is a new one,
/// `migrations/0002.sql`.
pub(in crate::postgres) const MIGRATIONS: Migrations = Migrations::new(include_str!("schema.sql"), &[]);

/// Brings the tables to this version. It holds the store's lock, so that one of several processes
/// that open a store at once does it. If there are no tables, `create` decides if they are created.
pub(in crate::postgres) async fn migrate(
    client: &OwnedConnection,
    sql: &Sql,
    migrations: Migrations,
    create: bool,
) -> Result<()> {
    let version = version(client, sql, migrations).await?;
    check(sql, migrations, version)?;
    if version == 0 && !create {
        return Err(Error::not_found(format!(
            "there is no store in the schema `{}` of the database; submit something to make one, or name another schema behind `#`",
            sql.schema
        )));
    }
    if version == migrations.newest() {
        return forget_writers(client, sql).await;
    }
    let outcome = under_lock(client, sql, migrations).await;
    if outcome.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
    }
    outcome
}

/// Migrates in a transaction of its own that takes the store's lock.
async fn under_lock(client: &OwnedConnection, sql: &Sql, migrations: Migrations) -> Result<()> {
    client.batch_execute(&sql.and_lock(BEGIN)).await.map_err(classified)?;
    within(client, sql, migrations).await?;
    client.batch_execute("COMMIT").await.map_err(classified)
}

/// Brings the tables to this version, or makes them, in a transaction that has the store's lock.
pub(in crate::postgres) async fn within(client: &OwnedConnection, sql: &Sql, migrations: Migrations) -> Result<()> {
    // Read again under the lock: another process may have done it since.
    let from = version(client, sql, migrations).await?;
    check(sql, migrations, from)?;
    if from == 0 {
        make_schema(client, sql).await?;
    }
    for script in migrations.after(from) {
        let script = script.replace("{schema}", &sql.schema);
        client.batch_execute(&script).await.map_err(classified)?;
    }
    let done = sql.text(&format!("UPDATE {{s}}.version SET version = {}", migrations.newest()));
    client.batch_execute(&done).await.map_err(classified)
}

/// Removes the rows of writers that last wrote more than a day ago. Such writers have ended, so no
/// process asks for their last batch any more.
async fn forget_writers(client: &OwnedConnection, sql: &Sql) -> Result<()> {
    let text = sql.text("DELETE FROM {s}.writer WHERE at < now() - interval '1 day'");
    client.query_typed(&text, &[]).await.map(drop).map_err(classified)
}

/// Creates the schema, unless it exists.
async fn make_schema(client: &OwnedConnection, sql: &Sql) -> Result<()> {
    // `IF NOT EXISTS` would check the right to create schemas first. A role without it may use a
    // schema that an administrator has created for it.
    let is_there = client.query_typed(&sql.text("SELECT 1 FROM pg_namespace WHERE nspname = '{s}'"), &[]).await;
    if is_there.map_err(classified)?.is_empty() {
        client.batch_execute(&sql.text("CREATE SCHEMA {s}")).await.map_err(classified)?;
    }
    Ok(())
}

/// Rejects a store of a newer program.
pub(in crate::postgres) fn check(sql: &Sql, migrations: Migrations, version: u32) -> Result<()> {
    migrations.check(&name(sql), version)
}

/// Returns the name of the store in messages.
fn name(sql: &Sql) -> String {
    format!("the store in the schema `{}`", sql.schema)
}

/// Finds the table `version`, and tests if it belongs to a released version.
///
/// It reads the catalog, because `to_regclass` uses the connection's cache. After waiting for the
/// lock, that cache may still lack a store that another process has created.
const MARK: &str = "SELECT EXISTS (SELECT 1 FROM pg_attribute a \
     WHERE a.attrelid = c.oid AND a.attname = 'application' AND NOT a.attisdropped) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE n.nspname = '{s}' AND c.relname = 'version'";

/// Returns the number of the schema, or 0 if there is no store. Rejects a store of a development
/// version.
async fn version(client: &OwnedConnection, sql: &Sql, migrations: Migrations) -> Result<u32> {
    let there = client.query_typed(&sql.text(MARK), &[]).await.map_err(classified)?;
    let Some(mark) = there.first() else { return Ok(0) };
    let is_released: bool = mark.try_get(0).map_err(classified)?;
    let rows = client.query_typed(&sql.text("SELECT version FROM {s}.version"), &[]).await.map_err(classified)?;
    let version: i32 = rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or(0);
    if is_released {
        Ok(version.unsigned_abs())
    } else {
        Err(migrations.development_store(&name(sql), version.unsigned_abs()))
    }
}
