//! Statements that are compiled when a store is opened.
//!
//! Compiling one takes longer than running it. Without this, the first tasks after an open, and the
//! first with dependencies, would cost several times as much as later ones. Rarer statements are
//! compiled when they are first used.

/// Adds a queue, or restores a deleted one.
pub(super) const ADD_QUEUE: &str = "INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET deleted = 0";
/// Finds a queue's number.
pub(super) const QUEUE_NUMBER: &str = "SELECT id FROM queue WHERE name = ?";
/// Adds a kind.
pub(super) const ADD_KIND: &str = "INSERT INTO kind (name) VALUES (?)";
/// Adds a sub-queue.
pub(super) const ADD_SUB_QUEUE: &str =
    "INSERT INTO sub_queue (id, queue, kind, task_group, orchestration) VALUES (?, ?, ?, ?, ?)";
/// Adds a dependency. A task may name the same dependency twice.
pub(in crate::sqlite) const ADD_DEPENDENCY: &str = "INSERT OR IGNORE INTO dependency (task, dependent) VALUES (?, ?)";
/// Records a kind of link in a task's row, so that the end of a task without links needs no lookup.
pub(in crate::sqlite) const ADD_LINK: &str = "UPDATE task SET links = links | ? WHERE id = ?";
/// Finds the first dependents of an ended task.
pub(in crate::sqlite) const FIRST_DEPENDENTS: &str = include_str!("../sql/relations/first_dependents.sql");
/// Removes a dependency.
pub(in crate::sqlite) const DROP_DEPENDENCY: &str = "DELETE FROM dependency WHERE task = ? AND dependent = ?";
/// Makes a blocked task waiting or scheduled.
pub(in crate::sqlite) const UNBLOCK: &str = "UPDATE task SET scheduled = ?, run_at = ? WHERE id = ?";
/// Finds the end and the length of a session's lease.
pub(in crate::sqlite) const LEASE_OF_SESSION: &str = "SELECT lease_until, lease FROM session WHERE id = ?";
/// Removes a session.
pub(in crate::sqlite) const FORGET_SESSION: &str = "DELETE FROM session WHERE id = ?";
/// Finds sessions whose lease is over.
pub(in crate::sqlite) const SESSIONS_OVER: &str =
    "SELECT id, lease_until FROM session WHERE lease_until <= ? ORDER BY id";
/// Lists sessions by the end of their lease, the earliest first.
pub(in crate::sqlite) const SESSIONS_BY_END: &str = "SELECT id, lease_until FROM session ORDER BY lease_until";
/// Records a claim: one row for a range of tasks, so that a batch of claims costs one row.
pub(in crate::sqlite) const ADD_LEASE: &str =
    "INSERT INTO lease (first, last, session, claim, started_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)";
/// Adds a row of the log.
pub(super) const ADD_LOG_ENTRY: &str = "INSERT INTO log (id, at, next_task, changes) VALUES (?, ?, ?, ?)";
/// Removes a range of tasks.
pub(in crate::sqlite) const DELETE_RANGE: &str = "DELETE FROM task WHERE id BETWEEN ? AND ?";
/// Removes listed tasks.
pub(in crate::sqlite) const DELETE_TASKS: &str = "DELETE FROM task WHERE id IN rarray(?)";
/// Finds the latest day on which a task ended.
pub(super) const LATEST_DAY: &str = "SELECT max(day) FROM day";
/// Adds a day.
pub(super) const ADD_DAY: &str = "INSERT INTO day (day) VALUES (?)";
/// Removes days before the one given.
pub(super) const DROP_DAYS: &str = "DELETE FROM day WHERE day < ?";
/// Removes the counts from the beginnings of days before the one given.
pub(super) const DROP_DAY_STARTS: &str = "DELETE FROM day_start WHERE day < ?";

/// The statements above, and those in files.
pub(super) const PREPARED: [&str; 36] = [
    ADD_DAY,
    ADD_DEPENDENCY,
    ADD_KIND,
    ADD_SUB_QUEUE,
    ADD_LEASE,
    ADD_LINK,
    ADD_LOG_ENTRY,
    ADD_QUEUE,
    DELETE_RANGE,
    DELETE_TASKS,
    DROP_DAYS,
    DROP_DAY_STARTS,
    DROP_DEPENDENCY,
    FIRST_DEPENDENTS,
    FORGET_SESSION,
    LATEST_DAY,
    LEASE_OF_SESSION,
    QUEUE_NUMBER,
    SESSIONS_BY_END,
    SESSIONS_OVER,
    UNBLOCK,
    include_str!("../sql/ready/add_queue_sizes.sql"),
    include_str!("../sql/commit/add_statistics.sql"),
    include_str!("../sql/commit/begin_day.sql"),
    include_str!("../sql/sessions/cancel_requests.sql"),
    include_str!("../sql/attempts/complete_range.sql"),
    include_str!("../sql/attempts/complete_tasks.sql"),
    include_str!("../sql/attempts/complete_with_result.sql"),
    include_str!("../sql/attempts/drop_empty_leases.sql"),
    include_str!("../sql/attempts/drop_empty_leases_of_tasks.sql"),
    include_str!("../sql/sessions/tasks_of_session.sql"),
    include_str!("../sql/tasks/insert_plain_task.sql"),
    include_str!("../sql/tasks/insert_task.sql"),
    include_str!("../sql/attempts/lease_of_task.sql"),
    include_str!("../sql/attempts/move_to_history.sql"),
    include_str!("../sql/sessions/open_session.sql"),
];
