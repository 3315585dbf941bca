//! Statements that several modules need, and the names of a store's tables.

/// A store's schema, with methods that put its name into statements.
#[derive(Debug, Clone)]
pub(super) struct Sql {
    pub(super) schema: String,
}

/// The columns of a task.
pub(super) const COLUMNS: &str = "t.id, t.state, t.queue, t.kind, t.grp, t.series, t.place, t.priority, t.run_at, t.expires_at, \
     t.overdue_at, t.session, t.cancel_requested, t.parent, t.submitted_at, t.key, t.payload, t.result, t.finished_at, \
     t.end_number, t.end_entry, t.body::text, t.instance, t.orchestration";

/// The relations of a task, and the first four unread messages, which is as many as nearly every
/// turn consumes.
///
/// Each is a subquery, so that it is an index lookup whatever sizes the planner assumes for the
/// tables. Each table is tested for being empty once per statement: in most stores most of these
/// tables are empty, and eight lookups cost more than the row itself.
const LINKS: &str = "CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.wait)) THEN (SELECT array_agg(w.task) FROM {s}.wait w WHERE w.dependent = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.wait)) THEN (SELECT array_agg(w.dependent) FROM {s}.wait w WHERE w.task = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.member)) THEN (SELECT m.bundle FROM {s}.member m WHERE m.member = t.id) END, \
     CASE WHEN (SELECT EXISTS (SELECT 1 FROM {s}.member)) THEN (SELECT array_agg(m.member) FROM {s}.member m WHERE m.bundle = t.id) END, \
     CASE WHEN t.key IS NOT NULL THEN (SELECT k.task FROM {s}.taken k WHERE k.kind = t.kind AND k.key = t.key) END, \
     CASE WHEN t.key IS NOT NULL THEN (SELECT k.until FROM {s}.taken k WHERE k.kind = t.kind AND k.key = t.key) END, \
     (SELECT EXISTS (SELECT 1 FROM {s}.task WHERE parent IS NOT NULL) OR EXISTS (SELECT 1 FROM {s}.ended WHERE parent IS NOT NULL)) \
       AND (EXISTS (SELECT 1 FROM {s}.task c WHERE c.parent = t.id) OR EXISTS (SELECT 1 FROM {s}.ended c WHERE c.parent = t.id)), \
     CASE WHEN t.instance IS NOT NULL THEN ARRAY(SELECT m.body FROM {s}.message m WHERE m.task = t.id ORDER BY m.number LIMIT 4) END";

/// The columns in place of [`COLUMNS`] and [`LINKS`] for a sub-queue `l` without a loaded task.
const NO_TASK: &str = "l.id, NULL, l.queue, l.kind, l.grp, l.series, l.place, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
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

    /// Returns a query for tasks of a table (`task` or `ended`) with their relations; `rest`
    /// follows the table.
    pub(super) fn tasks(&self, table: &str, rest: &str) -> String {
        self.text(&format!("SELECT {COLUMNS}, {LINKS} FROM {{s}}.{table} t {rest}"))
    }

    /// Returns the same query over both tables.
    pub(super) fn all_tasks(&self, rest: &str) -> String {
        format!("({}) UNION ALL ({})", self.tasks("task", rest), self.tasks("ended", rest))
    }

    /// Returns the query for the first `$1` waiting tasks, sub-queue by sub-queue.
    pub(super) fn waiting(&self) -> String {
        self.tasks(
            "task",
            "WHERE t.state = 2 ORDER BY t.queue, t.kind, t.grp, t.orchestration, t.series, t.place, t.id LIMIT $1",
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
            "WITH RECURSIVE lane AS (\
               (SELECT queue, kind, grp, orchestration, series, place, id FROM {{s}}.task WHERE state = 2 \
                ORDER BY queue, kind, grp, orchestration, series, place, id LIMIT 1) \
               UNION ALL \
               SELECT n.* FROM lane l CROSS JOIN LATERAL (\
                 SELECT queue, kind, grp, orchestration, series, place, id FROM {{s}}.task \
                 WHERE state = 2 AND (queue, kind, grp, orchestration, series) > (l.queue, l.kind, l.grp, l.orchestration, l.series) \
                 ORDER BY queue, kind, grp, orchestration, series, place, id LIMIT 1) n), \
             ranked AS MATERIALIZED (\
               SELECT lane.*, row_number() OVER (PARTITION BY queue, kind ORDER BY place, id) AS rank FROM lane), \
             size AS (SELECT greatest(2, least($1, 4 * $1 / greatest(count(*), 1))) AS rows FROM ranked WHERE rank <= $2), \
             bound AS MATERIALIZED (SELECT queue, kind, place, id FROM ranked WHERE rank - 1 = $2) \
             SELECT {tasks}, (SELECT rows FROM size) FROM ranked lane LEFT JOIN bound b ON b.queue = lane.queue AND b.kind = lane.kind \
             CROSS JOIN LATERAL (\
               SELECT * FROM {{s}}.task w WHERE w.state = 2 AND w.queue = lane.queue AND w.kind = lane.kind \
                 AND w.grp = lane.grp AND w.orchestration = lane.orchestration AND w.series = lane.series AND (w.place, w.id) >= (lane.place, lane.id) \
                 AND (w.place, w.id) < (coalesce(b.place, {END}), coalesce(b.id, {END})) \
               ORDER BY w.place, w.id LIMIT (SELECT rows FROM size)) t WHERE lane.rank <= $2 \
             UNION ALL \
             SELECT {nothing} FROM ranked l WHERE l.rank > $2 \
             ORDER BY queue, kind, grp, orchestration, series, place, id"
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

/// The settings of a connection that writes. Plans are made once, without a look at the parameters.
pub(super) const SETTINGS: &str = concat!(settings!("SET", "false"), "; SET plan_cache_mode = force_generic_plan");

/// Begins a transaction that only reads, from one snapshot.
pub(super) const BEGIN_TO_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Commits nothing, and waits until everything committed before is on disk, as far as the server is
/// configured to wait.
pub(super) const SYNC: &str = "SELECT pg_logical_emit_message(true, 'onward', '')";

/// The settings of a connection that reads.
pub(super) const READER_SETTINGS: &str = "SET jit = off";
