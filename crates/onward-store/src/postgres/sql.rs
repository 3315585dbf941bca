//! Statements that several modules need, and the names of a store's tables.

/// A store's schema, with methods that put its name into statements.
#[derive(Debug, Clone)]
pub(super) struct Sql {
    pub(super) schema: String,
}

/// The columns of a task.
pub(super) const COLUMNS: &str = "t.id, t.state, t.queue, t.kind, t.task_group, t.affinity, t.sort_key, t.priority, t.run_at, t.expires_at, \
     t.overdue_at, t.session, t.cancel_requested, t.parent, t.submitted_at, t.key, t.payload, t.result, t.finished_at, \
     t.end_number, t.ended_in, t.body::text, t.instance, t.orchestration";

/// The relations of a task, and the first four unread messages, which is as many as nearly every
/// turn consumes.
///
/// Each is a subquery, so that it is an index lookup for any table sizes that the planner assumes.
/// Each table is tested for being empty once per statement: in most stores most of these tables are
/// empty, and eight lookups cost more than the row itself.
const LINKS: &str = "CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.dependency)) THEN (SELECT array_agg(w.task) FROM {s}.dependency w WHERE w.dependent = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.dependency)) THEN (SELECT array_agg(w.dependent) FROM {s}.dependency w WHERE w.task = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.batch_item)) THEN (SELECT m.batch FROM {s}.batch_item m WHERE m.task = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.batch_item)) THEN (SELECT array_agg(m.task) FROM {s}.batch_item m WHERE m.batch = t.id) END, \
     CASE WHEN t.key IS NOT NULL THEN (SELECT k.task FROM {s}.unique_key k WHERE k.kind = t.kind AND k.key = t.key) END, \
     CASE WHEN t.key IS NOT NULL THEN (SELECT k.until FROM {s}.unique_key k WHERE k.kind = t.kind AND k.key = t.key) END, \
     (SELECT EXISTS (SELECT 1 FROM {s}.task WHERE parent IS NOT NULL) OR EXISTS (SELECT 1 FROM {s}.history WHERE parent IS NOT NULL)) \
       AND (EXISTS (SELECT 1 FROM {s}.task c WHERE c.parent = t.id) OR EXISTS (SELECT 1 FROM {s}.history c WHERE c.parent = t.id)), \
     CASE WHEN t.instance IS NOT NULL THEN ARRAY(SELECT m.body FROM {s}.message m WHERE m.task = t.id ORDER BY m.number LIMIT 4) END";

/// The columns in place of [`COLUMNS`] and [`LINKS`] for a sub-queue `l` without a loaded task.
const NO_TASK: &str = "l.id, NULL, l.queue, l.kind, l.task_group, l.affinity, l.sort_key, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     l.orchestration, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL";

/// A bound above every sort key and number.
const END: i64 = i64::MAX;

impl Sql {
    /// Returns a statement with `{s}` replaced by the schema.
    pub(super) fn text(&self, statement: &str) -> String {
        statement.replace("{s}", &self.schema)
    }

    /// Returns the statements in `before`, if any, followed by the one that takes the store's lock
    /// until the end of the transaction.
    pub(super) fn and_lock(&self, before: &str) -> String {
        let statements: Vec<&str> = [before, LOCK].into_iter().filter(|text| !text.is_empty()).collect();
        self.text(&statements.join("; "))
    }

    /// Returns a query for tasks of a table (`task` or `history`) with their relations; `rest`
    /// follows the table.
    pub(super) fn tasks(&self, table: &str, rest: &str) -> String {
        self.text(&format!("SELECT {COLUMNS}, {LINKS} FROM {{s}}.{table} t {rest}"))
    }

    /// Returns the same query over both tables.
    pub(super) fn all_tasks(&self, rest: &str) -> String {
        format!("({}) UNION ALL ({})", self.tasks("task", rest), self.tasks("history", rest))
    }

    /// Returns the query for the first `$1` waiting tasks, sub-queue by sub-queue.
    pub(super) fn waiting(&self) -> String {
        self.tasks(
            "task",
            "WHERE t.state = 2 ORDER BY t.queue, t.kind, t.task_group, t.orchestration, t.affinity, t.sort_key, t.id LIMIT $1",
        )
    }

    /// Returns the query for the first tasks of each sub-queue: at most `$1` of each, fewer if
    /// there are many sub-queues.
    ///
    /// * The recursive part skips from one sub-queue to the next in the index, so its cost depends
    ///   on the number of sub-queues and not on the number of tasks.
    /// * Each search begins at the first task found: while an old snapshot is open, the index still
    ///   has entries of tasks that waited before it.
    /// * For each queue and kind, only the `$2` sub-queues with the earliest first tasks are
    ///   searched, and only up to the first task of the next sub-queue. Every other sub-queue
    ///   yields one row without a state, with its name and the sort key of its first task. A row
    ///   with all relations costs far more than that.
    pub(super) fn sub_queues(&self) -> String {
        let tasks = format!("{COLUMNS}, {LINKS}");
        let nothing = format!("{NO_TASK}, NULL");
        self.text(&format!(
            "WITH RECURSIVE sub_queue AS (\
               (SELECT queue, kind, task_group, orchestration, affinity, sort_key, id FROM {{s}}.task WHERE state = 2 \
                ORDER BY queue, kind, task_group, orchestration, affinity, sort_key, id LIMIT 1) \
               UNION ALL \
               SELECT n.* FROM sub_queue l CROSS JOIN LATERAL (\
                 SELECT queue, kind, task_group, orchestration, affinity, sort_key, id FROM {{s}}.task \
                 WHERE state = 2 AND (queue, kind, task_group, orchestration, affinity) > (l.queue, l.kind, l.task_group, l.orchestration, l.affinity) \
                 ORDER BY queue, kind, task_group, orchestration, affinity, sort_key, id LIMIT 1) n), \
             ranked AS MATERIALIZED (\
               SELECT sub_queue.*, row_number() OVER (PARTITION BY queue, kind ORDER BY sort_key, id) AS rank FROM sub_queue), \
             size AS (SELECT greatest(2, least($1, 4 * $1 / greatest(count(*), 1))) AS rows FROM ranked WHERE rank <= $2), \
             bound AS MATERIALIZED (SELECT queue, kind, sort_key, id FROM ranked WHERE rank - 1 = $2) \
             SELECT {tasks}, (SELECT rows FROM size) FROM ranked sub_queue LEFT JOIN bound b ON b.queue = sub_queue.queue AND b.kind = sub_queue.kind \
             CROSS JOIN LATERAL (\
               SELECT * FROM {{s}}.task w WHERE w.state = 2 AND w.queue = sub_queue.queue AND w.kind = sub_queue.kind \
                 AND w.task_group = sub_queue.task_group AND w.orchestration = sub_queue.orchestration AND w.affinity = sub_queue.affinity AND (w.sort_key, w.id) >= (sub_queue.sort_key, sub_queue.id) \
                 AND (w.sort_key, w.id) < (coalesce(b.sort_key, {END}), coalesce(b.id, {END})) \
               ORDER BY w.sort_key, w.id LIMIT (SELECT rows FROM size)) t WHERE sub_queue.rank <= $2 \
             UNION ALL \
             SELECT {nothing} FROM ranked l WHERE l.rank > $2 \
             ORDER BY queue, kind, task_group, orchestration, affinity, sort_key, id"
        ))
    }
}

/// Takes the store's lock. It serializes all writers of a store.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('onward {s}', 0))";

/// Begins a transaction under the lock. Each statement must see what was committed before it. A
/// snapshot of the whole transaction, which the role, the database or the server may have as a
/// default, would predate the lock and miss the last commits of other writers.
macro_rules! begin {
    () => {
        "BEGIN ISOLATION LEVEL READ COMMITTED"
    };
}

/// The settings of a connection that writes (`SET`, `false`), or of one transaction on a connection
/// that keeps none (`SET LOCAL`, `true`).
///
/// A process that hangs gives up the lock after a while, unless the role, the database or the
/// server has another timeout. Plans use the indexes and their order: a table that was small or
/// empty when a plan was made may be large when it is used.
macro_rules! settings {
    ($set:literal, $is_local:literal) => {
        concat!(
            $set,
            " jit = off; ",
            $set,
            " enable_seqscan = off; ",
            $set,
            " enable_bitmapscan = off; SELECT set_config(name, value, ",
            $is_local,
            ") FROM (VALUES ('lock_timeout', '30s'), ('idle_in_transaction_session_timeout', '5s')) AS setting (name, value) \
             WHERE current_setting(name) = '0'"
        )
    };
}

/// Begins a transaction under the lock on a connection that keeps its [settings](SETTINGS) or needs
/// none.
pub(super) const BEGIN: &str = begin!();

/// Begins a transaction under the lock on a connection that keeps no settings.
pub(super) const BEGIN_WITH_SETTINGS: &str = concat!(begin!(), "; ", settings!("SET LOCAL", "true"));

/// The settings of a connection that writes. Its plans are made once, and for any parameters.
pub(super) const SETTINGS: &str = concat!(settings!("SET", "false"), "; SET plan_cache_mode = force_generic_plan");

/// Begins a transaction that only reads, from one snapshot.
pub(super) const BEGIN_TO_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Commits nothing, and waits until everything committed before is on disk, as far as the server is
/// configured to wait.
pub(super) const SYNC: &str = "SELECT pg_logical_emit_message(true, 'onward', '')";

/// The settings of a connection that reads.
pub(super) const READER_SETTINGS: &str = "SET jit = off";
