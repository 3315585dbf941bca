//! The queries for load requests.

use tokio_postgres::types::{ToSql, Type};

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::TaskState;
use crate::bounds;
use crate::model::{DocumentId, LoadRequest, SubQueue};
use crate::postgres::connect::connection::{RowHandler, ServerConnection};
use crate::postgres::sql::Sql;

/// The most tasks of a chain in one query: more than one write or one sweep follows.
pub(super) const DEEP: usize = 4 * bounds::CASCADE;

/// Requests of one kind, as one query.
#[derive(Debug)]
pub(in crate::postgres) enum LoadQuery {
    /// The tasks with these numbers; with `deep`, all their direct and indirect dependents as well.
    Tasks {
        ids: Vec<i64>,
        deep: bool,
    },
    /// The holders of these unique keys.
    Keys(Vec<(Name, String)>),
    /// The unique keys that have expired at this time.
    ExpiredKeys(i64),
    /// The children of these tasks; with `deep`, all their descendants as well.
    Children {
        parents: Vec<i64>,
        deep: bool,
    },
    /// The live children of each of these tasks.
    LiveChildren(Vec<i64>),
    /// The first messages of each of these orchestrations, at most this many.
    Messages(Vec<i64>, usize),
    /// All tasks that these sessions run.
    HeldBy(Vec<i64>),
    /// The tasks of these sessions that are asked to stop.
    CancelRequested(Vec<i64>),
    /// The numbers of running tasks by session, queue, kind and group.
    RunningCounts,
    /// One task of each session that runs any; these tasks are skipped.
    RunningSessions(Vec<i64>),
    /// All waiting tasks, at most this many.
    Waiting(usize),
    /// The first tasks of each sub-queue, at most `limit` of each.
    SubQueues {
        limit: usize,
        /// The most sub-queues of each queue and kind whose tasks are read, those with the earliest
        /// first tasks.
        sub_queues: usize,
    },
    /// The first tasks of one sub-queue, at most this many.
    SubQueue(SubQueue, usize),
    /// The first tasks of an order, at most this many.
    Order(LoadRequest, usize),
    /// The number of ended tasks without a retention of their own.
    EndedCount,
    /// The number of live tasks of a queue.
    LiveCount(Name),
    Documents(Vec<DocumentId>),
    /// All tasks from the first number up to, but not including, the second.
    IdRange(i64, i64),
}

/// Runs a query, and passes each row to `each`.
pub(in crate::postgres) async fn rows(
    client: &ServerConnection<'_>,
    sql: &Sql,
    query: &LoadQuery,
    each: &mut RowHandler<'_>,
) -> Result<()> {
    match query {
        LoadQuery::Tasks { ids, deep: false } => {
            by_ids(client, &sql.all_tasks("WHERE t.id = ANY($1)"), ids, each).await
        }
        LoadQuery::Tasks { ids, .. } => by_ids(client, &sql.all_tasks(&dependents()), ids, each).await,
        LoadQuery::Children { parents, deep: false } => {
            by_ids(client, &sql.all_tasks("WHERE t.parent = ANY($1)"), parents, each).await
        }
        LoadQuery::Children { parents, .. } => by_ids(client, &sql.all_tasks(&descendants()), parents, each).await,
        LoadQuery::LiveChildren(parents) => {
            by_ids(client, &sql.tasks("task", "WHERE t.parent = ANY($1)"), parents, each).await
        }
        LoadQuery::Messages(tasks, most) => {
            let text = sql.text(
                "SELECT m.task, m.body FROM unnest($1) AS u (id) CROSS JOIN LATERAL (\
                   SELECT task, number, body FROM {s}.message WHERE task = u.id ORDER BY number LIMIT $2) m \
                 ORDER BY m.task, m.number",
            );
            client.each_typed(&text, &[(tasks, Type::INT8_ARRAY), (&number(*most), Type::INT8)], each).await
        }
        LoadQuery::HeldBy(sessions) => {
            by_ids(client, &sql.tasks("task", "WHERE t.session = ANY($1)"), sessions, each).await
        }
        LoadQuery::CancelRequested(sessions) => {
            by_ids(client, &sql.tasks("task", "WHERE t.session = ANY($1) AND t.cancel_requested"), sessions, each).await
        }
        LoadQuery::Keys(keys) => taken_keys(client, sql, keys, each).await,
        LoadQuery::ExpiredKeys(now) => {
            let text = sql.text("SELECT kind, key, task, until FROM {s}.unique_key WHERE until <= $1");
            client.each_typed(&text, &[(now, Type::INT8)], each).await
        }
        LoadQuery::RunningCounts => {
            let text = sql.text(
                "SELECT session, queue, kind, task_group, count(*) FROM {s}.task WHERE session IS NOT NULL \
                 GROUP BY session, queue, kind, task_group",
            );
            client.each_typed(&text, &[], each).await
        }
        LoadQuery::RunningSessions(but) => {
            client.each_typed(&sql.text(RUNNING_SESSIONS), &[(but, Type::INT8_ARRAY)], each).await
        }
        LoadQuery::Waiting(limit) => client.each_typed(&sql.waiting(), &[(&number(*limit), Type::INT8)], each).await,
        LoadQuery::SubQueues { limit, sub_queues } => {
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&number(*limit), Type::INT8), (&number(*sub_queues), Type::INT8)];
            client.each_typed(&sql.sub_queues(), &parameters, each).await
        }
        LoadQuery::SubQueue(sub_queue, limit) => one_sub_queue(client, sql, sub_queue, *limit, each).await,
        LoadQuery::Order(request, limit) => order(client, sql, request, *limit, each).await,
        LoadQuery::EndedCount => {
            let text = sql.text("SELECT count(*) FROM {s}.history WHERE overdue_at IS NULL");
            client.each_typed(&text, &[], each).await
        }
        LoadQuery::LiveCount(queue) => {
            let text = sql.text("SELECT count(*) FROM {s}.task WHERE queue = $1");
            client.each_typed(&text, &[(&queue.as_str(), Type::TEXT)], each).await
        }
        LoadQuery::Documents(ids) => documents(client, sql, ids, each).await,
        LoadQuery::IdRange(from, before) => {
            let text = sql.all_tasks("WHERE t.id >= $1 AND t.id < $2");
            client.each_typed(&text, &[(from, Type::INT8), (before, Type::INT8)], each).await
        }
    }
}

/// Reads the tasks that hold some keys of kinds.
async fn taken_keys(
    client: &ServerConnection<'_>,
    sql: &Sql,
    keys: &[(Name, String)],
    each: &mut RowHandler<'_>,
) -> Result<()> {
    let kinds: Vec<&str> = keys.iter().map(|(kind, _)| kind.as_str()).collect();
    let texts: Vec<&[u8]> = keys.iter().map(|(_, key)| key.as_bytes()).collect();
    let text = sql.text(
        "SELECT k.kind, k.key, k.task, k.until FROM unnest($1, $2) AS u (kind, key) \
         CROSS JOIN LATERAL (SELECT * FROM {s}.unique_key k WHERE k.kind = u.kind AND k.key = u.key) k",
    );
    client.each_typed(&text, &[(&kinds, Type::TEXT_ARRAY), (&texts, Type::BYTEA_ARRAY)], each).await
}

/// Reads documents. Each requested document has a row, with the numbers that bound a new one.
async fn documents(
    client: &ServerConnection<'_>,
    sql: &Sql,
    ids: &[DocumentId],
    each: &mut RowHandler<'_>,
) -> Result<()> {
    let collections: Vec<&str> = ids.iter().map(|(collection, _)| collection.as_str()).collect();
    let keys: Vec<&[u8]> = ids.iter().map(|(_, key)| key.as_bytes()).collect();
    let text = sql.text(
        "SELECT u.collection, u.key, d.version, d.changed_at, d.content_type, d.value0, d.value1, d.value2, d.value3, d.content, \
           coalesce(c.documents, 0), (SELECT count(*) FROM {s}.document_collection) \
         FROM unnest($1, $2) AS u (collection, key) \
         LEFT JOIN {s}.document d ON d.collection = u.collection AND d.key = u.key \
         LEFT JOIN {s}.document_collection c ON c.name = u.collection",
    );
    client.each_typed(&text, &[(&collections, Type::TEXT_ARRAY), (&keys, Type::BYTEA_ARRAY)], each).await
}

/// Returns one running task of each session, except the tasks `$1`.
///
/// It walks the index from the newest session on, with one lookup each. Within a session it begins
/// with the newest task, because entries of old ones belong to tasks that have ended and are still
/// in the index. The range in place of `session = h.session` keeps the planner from choosing
/// another index.
const RUNNING_SESSIONS: &str = "WITH RECURSIVE holder (session) AS (\
       (SELECT session FROM {s}.task WHERE session IS NOT NULL ORDER BY session DESC LIMIT 1) \
       UNION ALL \
       SELECT n.session FROM holder h CROSS JOIN LATERAL (\
         SELECT session FROM {s}.task WHERE session < h.session ORDER BY session DESC LIMIT 1) n) \
     SELECT h.session, n.id FROM holder h CROSS JOIN LATERAL (\
       SELECT id FROM {s}.task WHERE session >= h.session AND session <= h.session AND id NOT IN (SELECT unnest($1)) \
       ORDER BY session DESC, cancel_requested DESC, id DESC LIMIT 1) n";

/// Returns the condition for the tasks `$1` and all their direct and indirect dependents.
fn dependents() -> String {
    format!(
        "WHERE t.id = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT w.dependent FROM down d JOIN {{s}}.dependency w ON w.task = d.id) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

/// Returns the condition for all descendants of the tasks `$1`.
fn descendants() -> String {
    format!(
        "WHERE t.parent = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT c.id FROM down d CROSS JOIN LATERAL (\
             SELECT id FROM {{s}}.task WHERE parent = d.id UNION ALL \
             SELECT id FROM {{s}}.history WHERE parent = d.id) c) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

/// Runs a query with a list of numbers.
async fn by_ids(client: &ServerConnection<'_>, sql: &str, ids: &Vec<i64>, each: &mut RowHandler<'_>) -> Result<()> {
    client.each_typed(sql, &[(ids, Type::INT8_ARRAY)], each).await
}

/// Reads the first tasks of one sub-queue.
async fn one_sub_queue(
    client: &ServerConnection<'_>,
    sql: &Sql,
    sub_queue: &SubQueue,
    limit: usize,
    each: &mut RowHandler<'_>,
) -> Result<()> {
    let rest = "WHERE t.state = 2 AND t.queue = $1 AND t.kind = $2 AND t.task_group = $3 AND t.affinity = $4 AND t.orchestration = $6 \
                ORDER BY t.sort_key, t.id LIMIT $5";
    let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    let (group, affinity_key) = (name(&sub_queue.group), name(&sub_queue.affinity_key));
    let (queue, kind) = (sub_queue.queue.as_str(), sub_queue.kind.as_str());
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&queue, Type::TEXT),
        (&kind, Type::TEXT),
        (&group, Type::TEXT),
        (&affinity_key, Type::TEXT),
        (&number(limit), Type::INT8),
        (&sub_queue.orchestration, Type::BOOL),
    ];
    client.each_typed(&sql.tasks("task", rest), &parameters, each).await
}

/// Reads the first tasks of an order. Except for a queue's tasks, an index has each order.
async fn order(
    client: &ServerConnection<'_>,
    sql: &Sql,
    request: &LoadRequest,
    limit: usize,
    each: &mut RowHandler<'_>,
) -> Result<()> {
    let limit = number(limit);
    let text = match request {
        LoadRequest::Scheduled => sql.tasks("task", "WHERE t.state = 1 ORDER BY t.run_at, t.id LIMIT $1"),
        LoadRequest::Expiring => sql
            .tasks("task", "WHERE t.expires_at IS NOT NULL AND t.session IS NULL ORDER BY t.expires_at, t.id LIMIT $1"),
        LoadRequest::Overdue => {
            sql.tasks("task", "WHERE t.overdue_at IS NOT NULL ORDER BY t.overdue_at, t.id LIMIT $1")
        }
        LoadRequest::QueueTasks(queue, states) => {
            let states: Vec<i16> = states.iter().map(code).collect();
            let both = sql.all_tasks("WHERE t.queue = $2 AND t.state = ANY($3)");
            let text = format!("{both} ORDER BY 1 LIMIT $1");
            let queue = queue.as_str();
            return client
                .each_typed(&text, &[(&limit, Type::INT8), (&queue, Type::TEXT), (&states, Type::INT2_ARRAY)], each)
                .await;
        }
        LoadRequest::Retained => {
            sql.tasks("history", "WHERE t.overdue_at IS NOT NULL ORDER BY t.overdue_at, t.id LIMIT $1")
        }
        _ => sql.tasks("history", "WHERE t.overdue_at IS NULL ORDER BY t.end_number LIMIT $1"),
    };
    client.each_typed(&text, &[(&limit, Type::INT8)], each).await
}

/// Returns the number of a state in the tables.
pub(in crate::postgres) fn code(state: &TaskState) -> i16 {
    i16::try_from(state.code()).unwrap_or_default()
}

/// Returns a count as a parameter.
pub(in crate::postgres) fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
