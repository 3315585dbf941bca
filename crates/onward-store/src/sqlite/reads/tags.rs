//! The tags in use.

use rusqlite::{Connection, OptionalExtension};

use crate::api::error::Result;
use crate::api::store::TaskFilter;
use crate::api::tag::{TagKeyPage, TagPage, TagValue, TagValuePage};
use crate::bounds;
use crate::sqlite::reads::list::count;

/// Returns a page of the values of a tag key.
pub(in crate::sqlite) fn tag_values(
    connection: &Connection,
    key: &str,
    filter: &TaskFilter,
    page: &TagPage,
) -> Result<TagValuePage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let is_any = TaskFilter { with_payload: filter.with_payload, ..TaskFilter::default() } == *filter;
    let sql = match page.after {
        Some(_) => "SELECT value, tasks FROM tag WHERE key = ? AND value > ? ORDER BY value",
        None => "SELECT value, tasks FROM tag WHERE key = ? AND value >= ? ORDER BY value",
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([key, page.after.as_deref().unwrap_or_default()])?;
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        let value: String = row.get(0)?;
        let tasks = if is_any { row.get(1)? } else { count_with(connection, filter, key, &value)? };
        if tasks > 0 {
            values.push(TagValue { value, tasks });
        }
        if values.len() > limit {
            break;
        }
    }
    Ok(TagValuePage::of(values, limit))
}

/// Returns the number of tasks that a filter selects and that have this tag.
fn count_with(connection: &Connection, filter: &TaskFilter, key: &str, value: &str) -> Result<u64> {
    if filter.tags.get(key).is_some_and(|wanted| wanted != value) {
        return Ok(0);
    }
    let mut filter = filter.clone();
    filter.tags.set(key, value);
    count(connection, &filter)
}

/// Returns a page of the keys with a prefix.
pub(in crate::sqlite) fn tag_keys(connection: &Connection, prefix: &str, page: &TagPage) -> Result<TagKeyPage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let mut keys: Vec<String> = Vec::new();
    let mut next = match &page.after {
        Some(after) if after.as_str() >= prefix => key_behind(connection, after)?,
        _ => first_key_from(connection, prefix)?,
    };
    while let Some(key) = next.filter(|key| key.starts_with(prefix)) {
        keys.push(key);
        if keys.len() > limit {
            break;
        }
        next = keys.last().map_or(Ok(None), |last| key_behind(connection, last))?;
    }
    Ok(TagKeyPage::of(keys, limit))
}

/// Returns the first tag key that is not before `text`.
fn first_key_from(connection: &Connection, text: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT key FROM tag WHERE key >= ? ORDER BY key LIMIT 1")?;
    Ok(statement.query_row([text], |row| row.get(0)).optional()?)
}

/// Returns the next key. It costs one seek, however many values the key has.
fn key_behind(connection: &Connection, key: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT key FROM tag WHERE key > ? ORDER BY key LIMIT 1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}
