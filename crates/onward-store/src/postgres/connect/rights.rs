//! The rights of a store's role.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::Result;
use crate::migrations::Migrations;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::sql::Sql;

/// The tables that every process reads and writes.
const TABLES: [&str; 18] = [
    "task",
    "history",
    "turn",
    "output_piece",
    "message",
    "task_tag",
    "unique_key",
    "dependency",
    "batch_item",
    "small_state",
    "document",
    "document_collection",
    "log",
    "statistics",
    "day",
    "writer",
    "inbox",
    "completion",
];

/// The sequences that every process reads and sets.
const SEQUENCES: [&str; 7] =
    ["last_task", "last_session", "ends", "last_entry", "last_small_state", "last_write", "last_invalidation"];

/// Returns the rights that the role lacks, as the statements that grant them. It reads only the
/// catalogs, so that a role without any right on the schema can call it.
pub(in crate::postgres) async fn missing(
    client: &OwnedConnection,
    sql: &Sql,
    migrations: Migrations,
) -> Result<Vec<String>> {
    let schema: [(&(dyn ToSql + Sync), Type); 1] = [(&sql.schema, Type::TEXT)];
    let of_schema = client.query_typed(OF_SCHEMA, &schema).await.map_err(classified)?;
    let mut missing = statements(&of_schema)?;
    let is_there = of_schema.first().map(|row| row.try_get(1)).transpose().map_err(classified)?.unwrap_or(false);
    let (tables, sequences): (Vec<&str>, Vec<&str>) = (TABLES.into(), SEQUENCES.into());
    let relations: [(&(dyn ToSql + Sync), Type); 3] =
        [(&sql.schema, Type::TEXT), (&tables, Type::TEXT_ARRAY), (&sequences, Type::TEXT_ARRAY)];
    missing.extend(statements(&client.query_typed(OF_RELATIONS, &relations).await.map_err(classified)?)?);
    missing.extend(statements(&client.query_typed(OF_FUNCTIONS, &[]).await.map_err(classified)?)?);
    if is_there && missing.is_empty() {
        let newest = migrations.newest().cast_signed();
        let known: [(&(dyn ToSql + Sync), Type); 1] = [(&newest, Type::INT4)];
        let upgrade = client.query_typed(&sql.text(TO_UPGRADE), &known).await.map_err(classified)?;
        missing.extend(statements(&upgrade)?);
    }
    Ok(missing)
}

/// Decodes a column of statements; rows without one are rights that the role has.
fn statements(rows: &[Row]) -> Result<Vec<String>> {
    let statements: Vec<Option<String>> =
        rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<_, _>>().map_err(classified)?;
    Ok(statements.into_iter().flatten().collect())
}

/// The query for rights on the schema. The second column is true if the schema contains a store.
const OF_SCHEMA: &str = "SELECT CASE \
       WHEN s.oid IS NULL THEN \
         CASE WHEN NOT has_database_privilege(current_database(), 'CREATE') THEN format('CREATE SCHEMA %I AUTHORIZATION %I', $1, current_user) END \
       WHEN NOT has_schema_privilege(s.oid, 'USAGE') THEN format('GRANT USAGE ON SCHEMA %I TO %I', $1, current_user) \
       WHEN NOT s.is_made AND NOT has_schema_privilege(s.oid, 'CREATE') THEN format('GRANT CREATE ON SCHEMA %I TO %I', $1, current_user) \
     END, s.is_made FROM (SELECT n.oid, \
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'version') AS is_made \
       FROM (SELECT to_regnamespace($1)::oid AS oid) n) s";

/// The query for rights on tables and sequences. Other tables in the schema are ignored. `INSERT`
/// into `inbox` and `completion` is not needed, because their rows come from functions.
const OF_RELATIONS: &str = "SELECT format('GRANT %s ON %s %I.%I TO %I', array_to_string(l.rights, ', '), \
       CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, $1, c.relname, current_user) \
     FROM pg_class c CROSS JOIN LATERAL (SELECT ARRAY(SELECT p FROM unnest(CASE \
         WHEN c.relkind = 'S' THEN '{SELECT,UPDATE}'::text[] \
         WHEN c.relname = 'version' THEN '{SELECT}' \
         WHEN c.relname = 'inbox' THEN '{SELECT,UPDATE,DELETE}' \
         WHEN c.relname = 'completion' THEN '{SELECT,DELETE}' \
         ELSE '{SELECT,INSERT,UPDATE,DELETE}' END) p \
       WHERE NOT CASE c.relkind WHEN 'S' THEN has_sequence_privilege(c.oid, p) ELSE has_table_privilege(c.oid, p) END) AS rights) l \
     WHERE c.relnamespace = to_regnamespace($1)::oid AND l.rights <> '{}' \
       AND (c.relkind = 'r' AND (c.relname = 'version' OR c.relname = ANY($2)) OR c.relkind = 'S' AND c.relname = ANY($3)) \
     ORDER BY c.relname";

/// The query for rights on functions, which every role has by default.
const OF_FUNCTIONS: &str = "SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', f, current_user) \
     FROM unnest(ARRAY['pg_catalog.pg_logical_emit_message(boolean,text,text)', 'pg_catalog.pg_current_wal_flush_lsn()', \
       'pg_catalog.pg_current_wal_insert_lsn()', 'pg_catalog.pg_notify(text,text)']) f \
     WHERE NOT has_function_privilege(f, 'EXECUTE')";

/// The query for the right to migrate: only the owner of tables can change them.
const TO_UPGRADE: &str = "SELECT format('GRANT %I TO %I', pg_get_userbyid(c.relowner), current_user) \
     FROM {s}.version v, pg_class c \
     WHERE c.oid = '{s}.task'::regclass AND v.version < $1 AND NOT pg_has_role(c.relowner, 'USAGE')";
