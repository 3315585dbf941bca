//! Reads of tags: keys, and values of a key.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::filter::Condition;
use super::model_reads::ask;
use crate::api::error::{Error, Result};
use crate::api::store::TaskFilter;
use crate::api::tag::{TagKeyPage, TagPage, TagValue, TagValuePage};
use crate::bounds;
use crate::postgres::connect::error::classified;
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;

/// Returns a page of a key's values, each with the number of matching tasks.
pub(in crate::postgres) async fn values(
    shared: &Shared,
    key: String,
    filter: TaskFilter,
    page: TagPage,
) -> Result<TagValuePage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let mut condition = Condition::of(&filter);
    let conditions = condition.text();
    let key = format!("{key}=").into_bytes();
    let length = key.len();
    let after = page.after.as_ref().map(|after| [key.as_slice(), after.as_bytes()].concat());
    let key = condition.parameter(Box::new(key), Type::BYTEA);
    let rows = condition.parameter(Box::new(number(limit + 1)), Type::INT8);
    let behind = after.map(|after| condition.parameter(Box::new(after), Type::BYTEA));
    let behind = behind.map_or(String::new(), |after| format!("AND v.tag > {after}"));
    let shown = if conditions == "true" {
        String::new()
    } else {
        format!(
            "AND (EXISTS (SELECT 1 FROM {{s}}.task t WHERE t.id = v.task AND {conditions}) \
             OR EXISTS (SELECT 1 FROM {{s}}.history t WHERE t.id = v.task AND {conditions}))"
        )
    };
    let statement = format!(
        "SELECT substring(v.tag FROM {}), count(*) FROM {{s}}.task_tag v \
         WHERE v.tag >= {key} AND substring(v.tag FROM 1 FOR {length}) = {key} {behind} {shown} \
         GROUP BY v.tag ORDER BY v.tag LIMIT {rows}",
        length + 1
    );
    let client = shared.pool.get().await?;
    let rows = ask(&client, shared, &statement, &condition.parameters()).await?;
    client.give_back();
    let value = |row: &Row| Ok(TagValue { value: text(row)?, tasks: row.get::<_, i64>(1).cast_unsigned() });
    Ok(TagValuePage::of(rows.iter().map(value).collect::<Result<_>>()?, limit))
}

/// Returns a page of tag keys with a prefix.
pub(in crate::postgres) async fn keys(shared: &Shared, prefix: String, page: TagPage) -> Result<TagKeyPage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let prefix = prefix.into_bytes();
    let statement = format!(
        "SELECT DISTINCT substring(tag FROM 1 FOR position('\\x3d'::bytea IN tag) - 1) AS found FROM {{s}}.task_tag \
         WHERE substring(tag FROM 1 FOR position('\\x3d'::bytea IN tag) - 1) > $1 \
           AND substring(substring(tag FROM 1 FOR position('\\x3d'::bytea IN tag) - 1) FROM 1 FOR {}) = $2 \
         ORDER BY found LIMIT $3",
        prefix.len()
    );
    let after = page.after.unwrap_or_default().into_bytes();
    let client = shared.pool.get().await?;
    let limited = number(limit + 1);
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&after, Type::BYTEA), (&prefix, Type::BYTEA), (&limited, Type::INT8)];
    let rows = ask(&client, shared, &statement, &parameters).await?;
    client.give_back();
    Ok(TagKeyPage::of(rows.iter().map(text).collect::<Result<_>>()?, limit))
}

/// Decodes a text.
fn text(row: &Row) -> Result<String> {
    let bytes: Vec<u8> = row.try_get(0).map_err(classified)?;
    String::from_utf8(bytes).map_err(|_| Error::corrupt("a tag of the store is not text; restore a backup"))
}
