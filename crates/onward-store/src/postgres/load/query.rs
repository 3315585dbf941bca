//! The queries that load requests become.

use tokio_postgres::types::{ToSql, Type};

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::TaskState;
use crate::bounds;
use crate::model::{DocumentId, LoadRequest, SubQueue};
use crate::postgres::connect::connection::{RowHandler, ServerConnection};
use crate::postgres::sql::Sql;

/// How many tasks of a chain are loaded at once: more than one write, or one sweep, follows.
pub(super) const DEEP: usize = 4 * bounds::CASCADE;

/// Wants of one sort, as one query.
#[derive(Debug)]
pub(in crate::postgres) enum LoadQuery {
    /// Those with these numbers; where `deep`, also all that wait for them, and for those.
    Tasks {
        ids: Vec<i64>,
        deep: bool,
    },
    Keys(Vec<(Name, String)>),
    ExpiredKeys(i64),
    /// The children of these; where `deep`, also theirs.
    Children {
        parents: Vec<i64>,
        deep: bool,
    },
    /// The first messages of each of these.
    Messages(Vec<i64>, usize),
    HeldBy(Vec<i64>),
    CancelRequested(Vec<i64>),
    RunningCounts,
    /// A task of each session that runs any, but for these.
    RunningSessions(Vec<i64>),
    /// Everything that waits, unless it is more than so much.
    Waiting(usize),
    SubQueues {
        limit: usize,
        /// How many sub-queues of a queue and a kind are looked into, those with the first tasks.
        sub_queues: usize,
    },
    SubQueue(SubQueue, usize),
    Order(LoadRequest, usize),
    EndedCount,
    LiveCount(Name),
    Documents(Vec<DocumentId>),
    IdRange(i64, i64),
}

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
            let text = sql.text("SELECT kind, key, task, until FROM {s}.taken WHERE until <= $1");
            client.each_typed(&text, &[(now, Type::INT8)], each).await
        }
        LoadQuery::RunningCounts => {
            let text = sql.text(
                "SELECT session, queue, kind, grp, count(*) FROM {s}.task WHERE session IS NOT NULL \
                 GROUP BY session, queue, kind, grp",
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
            let text = sql.text("SELECT count(*) FROM {s}.ended WHERE overdue_at IS NULL");
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

/// Reads which tasks hold keys of kinds.
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
         CROSS JOIN LATERAL (SELECT * FROM {s}.taken k WHERE k.kind = u.kind AND k.key = u.key) k",
    );
    client.each_typed(&text, &[(&kinds, Type::TEXT_ARRAY), (&texts, Type::BYTEA_ARRAY)], each).await
}

/// Reads documents; for each that is asked for a row, with the numbers that bound a new one.
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

/// A task of each session that runs any, but for those with the numbers `$1`: from the newest
/// session on, each with one look into the index, and there of the newest tasks first, for the old
/// ones are those that have ended and are in the index still. What stands in place of `session =
/// h.session` has the planner use no other index.
const RUNNING_SESSIONS: &str = "WITH RECURSIVE holder (session) AS (\
       (SELECT session FROM {s}.task WHERE session IS NOT NULL ORDER BY session DESC LIMIT 1) \
       UNION ALL \
       SELECT n.session FROM holder h CROSS JOIN LATERAL (\
         SELECT session FROM {s}.task WHERE session < h.session ORDER BY session DESC LIMIT 1) n) \
     SELECT h.session, n.id FROM holder h CROSS JOIN LATERAL (\
       SELECT id FROM {s}.task WHERE session >= h.session AND session <= h.session AND id NOT IN (SELECT unnest($1)) \
       ORDER BY session DESC, cancel_requested DESC, id DESC LIMIT 1) n";

/// Those with the numbers `$1`, who waits for them, and so on.
fn dependents() -> String {
    format!(
        "WHERE t.id = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT w.dependent FROM down d JOIN {{s}}.wait w ON w.task = d.id) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

/// The children of those with the numbers `$1`, theirs, and so on.
fn descendants() -> String {
    format!(
        "WHERE t.parent = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT c.id FROM down d CROSS JOIN LATERAL (\
             SELECT id FROM {{s}}.task WHERE parent = d.id UNION ALL \
             SELECT id FROM {{s}}.ended WHERE parent = d.id) c) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

async fn by_ids(client: &ServerConnection<'_>, sql: &str, ids: &Vec<i64>, each: &mut RowHandler<'_>) -> Result<()> {
    client.each_typed(sql, &[(ids, Type::INT8_ARRAY)], each).await
}

async fn one_sub_queue(
    client: &ServerConnection<'_>,
    sql: &Sql,
    sub_queue: &SubQueue,
    limit: usize,
    each: &mut RowHandler<'_>,
) -> Result<()> {
    let rest = "WHERE t.state = 2 AND t.queue = $1 AND t.kind = $2 AND t.grp = $3 AND t.series = $4 AND t.orchestration = $6 \
                ORDER BY t.place, t.id LIMIT $5";
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
            sql.tasks("ended", "WHERE t.overdue_at IS NOT NULL ORDER BY t.overdue_at, t.id LIMIT $1")
        }
        _ => sql.tasks("ended", "WHERE t.overdue_at IS NULL ORDER BY t.end_number LIMIT $1"),
    };
    client.each_typed(&text, &[(&limit, Type::INT8)], each).await
}

/// The number of a state, as the tables have it.
pub(in crate::postgres) fn code(state: &TaskState) -> i16 {
    i16::try_from(state.code()).unwrap_or_default()
}

pub(in crate::postgres) fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
