//! Decoding of the driver's rows.

use bytes::Bytes;
use tokio_postgres::Row;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::model::SubQueue;
use crate::postgres::connect::error::classified;
use crate::postgres::working_set::small_state::SmallStateRow;
use crate::postgres::working_set::sub_queues::SubQueueHead;
use crate::postgres::working_set::task_row::{LoadedTask, Relations, TaskRow};
use crate::rules::order::SortKey;

/// The position of the first relation, after the columns of the task.
const LINKS: usize = 24;

/// The position after the last relation.
pub(super) const BEHIND_LINKS: usize = LINKS + 8;

/// Decodes a task with its relations from a row of [`tasks`](crate::postgres::sql::Sql::tasks).
pub(in crate::postgres) fn task(row: &Row) -> Result<LoadedTask> {
    let (row, links) = read(row).map_err(classified)?;
    LoadedTask::of(row, links)
}

/// Decodes a sub-queue and the sort key of its first task, from a row without a task.
pub(in crate::postgres) fn head(row: &Row) -> Result<SubQueueHead> {
    let text = |at: usize| row.try_get::<_, &str>(at).map_err(classified);
    let name = |at: usize| text(at).and_then(Name::new);
    let name_or_none =
        |at: usize| text(at).and_then(|text| if text.is_empty() { Ok(None) } else { Name::new(text).map(Some) });
    let orchestration = row.try_get(23).map_err(classified)?;
    let (queue, kind) = (name(2)?, name(3)?);
    let sub_queue = SubQueue { queue, kind, group: name_or_none(4)?, affinity_key: name_or_none(5)?, orchestration };
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    Ok(SubQueueHead { sub_queue, sort_key: SortKey { at: number(6)?, task: TaskId(number(0)?) } })
}

/// The query for the small state.
pub(in crate::postgres) const SMALL_STATE: &str = "SELECT sort, name, body FROM {s}.small_state";

/// Decodes a row of [`SMALL_STATE`].
pub(in crate::postgres) fn item(row: &Row) -> SmallStateRow {
    SmallStateRow { sort: row.get(0), name: row.get(1), body: row.get(2) }
}

/// Decodes a task from its columns alone.
pub(in crate::postgres) fn task_alone(row: &Row) -> Result<TaskRow> {
    columns(row).map_err(classified)
}

/// Decodes a row with relations.
fn read(row: &Row) -> std::result::Result<(TaskRow, Relations), tokio_postgres::Error> {
    let task = columns(row)?;
    let key_task: Option<i64> = row.try_get(LINKS + 4)?;
    let key_until: Option<i64> = row.try_get(LINKS + 5)?;
    let links = Relations {
        waits_for: row.try_get::<_, Option<Vec<i64>>>(LINKS)?.unwrap_or_default(),
        dependents: row.try_get::<_, Option<Vec<i64>>>(LINKS + 1)?.unwrap_or_default(),
        batch: row.try_get(LINKS + 2)?,
        batch_items: row.try_get::<_, Option<Vec<i64>>>(LINKS + 3)?.unwrap_or_default(),
        key: key_task.map(|task| (task, key_until)),
        has_children: row.try_get(LINKS + 6)?,
        messages: row.try_get::<_, Option<Vec<Vec<u8>>>>(LINKS + 7)?.unwrap_or_default(),
    };
    Ok((task, links))
}

/// Decodes the columns of [`COLUMNS`](crate::postgres::sql::COLUMNS), in their order.
fn columns(row: &Row) -> std::result::Result<TaskRow, tokio_postgres::Error> {
    let bytes = |at: usize| -> std::result::Result<Option<Bytes>, tokio_postgres::Error> {
        Ok(row.try_get::<_, Option<&[u8]>>(at)?.map(Bytes::copy_from_slice))
    };
    Ok(TaskRow {
        id: row.try_get(0)?,
        state: row.try_get(1)?,
        queue: row.try_get(2)?,
        kind: row.try_get(3)?,
        group: row.try_get(4)?,
        affinity_key: row.try_get(5)?,
        sort_key: row.try_get(6)?,
        priority: row.try_get(7)?,
        run_at: row.try_get(8)?,
        expires_at: row.try_get(9)?,
        overdue_at: row.try_get(10)?,
        session: row.try_get(11)?,
        cancel_requested: row.try_get(12)?,
        parent: row.try_get(13)?,
        submitted_at: row.try_get(14)?,
        key: row.try_get(15)?,
        payload: bytes(16)?,
        result: bytes(17)?,
        finished_at: row.try_get(18)?,
        end_number: row.try_get(19)?,
        ended_in: row.try_get(20)?,
        body: row.try_get(21)?,
        instance: row.try_get(22)?,
        orchestration: row.try_get(23)?,
    })
}
