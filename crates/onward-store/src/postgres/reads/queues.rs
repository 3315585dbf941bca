//! Reads of queues and their sizes.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use super::model_reads::{end, within};
use crate::api::error::Result;
use crate::api::store::QueueRecord;
use crate::api::task::TaskState;
use crate::api::timestamp::Timestamp;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::shared::Shared;
use crate::postgres::working_set::reads::state_of;

/// Returns all queues with their counts, from one snapshot.
pub(in crate::postgres) async fn queues(shared: &Shared) -> Result<Vec<QueueRecord>> {
    let client = shared.pool.get().await?;
    let (mut queues, is_unflushed) =
        within(&client, shared, BTreeSet::new(), |working_set, now| Ok(working_set.queues(now))).await?;
    let counts = "SELECT queue, state, count(*) FROM {s}.task GROUP BY queue, state UNION ALL \
                  SELECT queue, state, count(*) FROM {s}.history GROUP BY queue, state";
    for row in ask(&client, shared, counts).await? {
        let (queue, state, count): (&str, i16, i64) = (row.get(0), row.get(1), row.get(2));
        if let (Ok(name), Some(state)) = (crate::api::name::Name::new(queue), state_of(state))
            && let Some(record) = queues.get_mut(&name)
        {
            set(record, state, count.cast_unsigned());
        }
    }
    let first = "SELECT DISTINCT ON (queue) queue, run_at FROM {s}.task WHERE state = 2 ORDER BY queue, sort_key, id";
    for row in ask(&client, shared, first).await? {
        let (queue, run_at): (&str, i64) = (row.get(0), row.get(1));
        if let Ok(name) = crate::api::name::Name::new(queue)
            && let Some(record) = queues.get_mut(&name)
        {
            record.oldest_waiting = Some(Timestamp::from_microseconds(run_at));
        }
    }
    end(&client, shared, is_unflushed).await?;
    client.give_back();
    Ok(queues.into_values().collect())
}

/// Runs a query in the snapshot.
async fn ask(client: &OwnedConnection, shared: &Shared, statement: &str) -> Result<Vec<Row>> {
    client.query_typed(&shared.sql.text(statement), &[]).await.map_err(classified)
}

/// Sets the count of one state.
fn set(record: &mut QueueRecord, state: TaskState, tasks: u64) {
    match state {
        TaskState::Blocked => record.blocked = tasks,
        TaskState::Scheduled => record.scheduled = tasks,
        TaskState::Waiting => record.waiting = tasks,
        TaskState::Running => record.running = tasks,
        ended => record.ended.of(ended).into_iter().for_each(|count| *count = tasks),
    }
}
