//! Counts of ended tasks. The model counts by kind, and by day and queue. A file counts by queue
//! and kind together, and stores the counts at the beginning of each day. So this module divides
//! the count of each kind among the queues in proportion to their days. Every read of the file then
//! returns the counts of the model.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::target_settings::Waiting;
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::store::{EndedCounts, KindStatistics};
use crate::api::task::TaskState;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;

/// The states in which a task can end.
const STATES: [TaskState; 5] =
    [TaskState::Completed, TaskState::Failed, TaskState::Dead, TaskState::Cancelled, TaskState::Expired];

/// The numbers of tasks of a kind and a queue that ended in a state.
type Counted = BTreeMap<(Name, Name, i64), u64>;

/// Writes the statistics and the daily counts.
pub(in crate::sqlite) fn write(connection: &Connection, names: &mut Names, waiting: &Waiting) -> Result<()> {
    let counted = share_out(waiting)?;
    for ((kind, queue, state), ended) in &counted {
        let sub_queue = names.ensure_sub_queue(&Database::from(connection), queue, kind, None, false)?;
        add(connection, sub_queue, *state, *ended)?;
    }
    for kind in &waiting.statistics {
        sums(connection, names, kind, &counted)?;
    }
    connection.execute_batch(KEPT)?;
    days(connection, names, waiting, &counted)
}

/// Adds the numbers of tasks that are still in history, by sub-queues without a group.
const KEPT: &str = "
    INSERT INTO statistics (sub_queue, state, ended, in_history, attempts, wait, run, run_maximum)
    SELECT b.id, h.state, 0, count(*), 0, 0, 0, 0 FROM history h JOIN sub_queue l ON l.id = h.sub_queue
    JOIN sub_queue b ON b.queue = l.queue AND b.kind = l.kind AND b.task_group = 0
        AND b.orchestration = l.orchestration WHERE true GROUP BY b.id, h.state
    ON CONFLICT (sub_queue, state) DO UPDATE SET in_history = excluded.in_history;
";

/// Divides the counts of each kind among the queues of the daily counts. The sums by kind and by
/// queue stay the same.
fn share_out(waiting: &Waiting) -> Result<Counted> {
    let mut counted = Counted::new();
    for state in STATES {
        let mut asked: BTreeMap<Name, u64> = BTreeMap::new();
        for day in &waiting.days {
            *asked.entry(Name::new(&day.queue)?).or_default() += of(day.ended, state);
        }
        let mut asked: Vec<(Name, u64)> = asked.into_iter().collect();
        for kind in &waiting.statistics {
            let mut left = of(kind.ended, state);
            for (queue, wanted) in asked.iter_mut().filter(|(_, wanted)| *wanted > 0) {
                let share = left.min(*wanted);
                (left, *wanted) = (left - share, *wanted - share);
                if share > 0 {
                    counted.insert((kind.kind.clone(), queue.clone(), state.code()), share);
                }
            }
            if left > 0 {
                // These tasks ended before the days that are kept. No queue has a count left for
                // them.
                *counted.entry((kind.kind.clone(), Name::default_queue(), state.code())).or_default() += left;
            }
        }
    }
    Ok(counted)
}

/// Returns the count of one state.
fn of(mut ended: EndedCounts, state: TaskState) -> u64 {
    ended.of(state).map_or(0, |count| *count)
}

/// Adds a row with a count of ended tasks.
fn add(connection: &Connection, sub_queue: i64, state: i64, ended: u64) -> Result<()> {
    let sql = "INSERT INTO statistics (sub_queue, state, ended, in_history, attempts, wait, run, run_maximum) VALUES (?, ?, ?, 0, 0, 0, 0, 0)";
    connection.prepare_cached(sql)?.execute(params![sub_queue, state, ended])?;
    Ok(())
}

/// Writes the sums of a kind's times and attempts. They are in one row of the kind, whichever it
/// is.
fn sums(connection: &Connection, names: &mut Names, kind: &KindStatistics, counted: &Counted) -> Result<()> {
    let database = Database::from(connection);
    let completed = TaskState::Completed.code();
    let line = counted.keys().find(|(of, _, state)| *of == kind.kind && *state == completed);
    if let Some((_, queue, _)) = line {
        let sub_queue = names.ensure_sub_queue(&database, queue, &kind.kind, None, false)?;
        let micros = |duration: std::time::Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let sql =
            "UPDATE statistics SET attempts = ?, wait = ?, run = ?, run_maximum = ? WHERE sub_queue = ? AND state = ?";
        let (wait, run, maximum) = (micros(kind.wait), micros(kind.run), micros(kind.run_maximum));
        connection.execute(sql, params![kind.attempts, wait, run, maximum, sub_queue, completed])?;
    }
    if kind.io != crate::api::io::IoStatistics::default() {
        let number = names.ensure_kind(&database, &kind.kind)?;
        let text = serde_json::to_string(&kind.io).map_err(|error| Error::io(error.to_string()))?;
        connection.execute("INSERT INTO kind_io (kind, totals) VALUES (?, ?)", params![number, text])?;
    }
    Ok(())
}

/// Computes the counts at the beginning of each day: the present counts minus those of that day and
/// later days.
fn days(connection: &Connection, names: &mut Names, waiting: &Waiting, counted: &Counted) -> Result<()> {
    let mut so_far: BTreeMap<(Name, i64), u64> = BTreeMap::new();
    for ((_, queue, state), ended) in counted {
        *so_far.entry((queue.clone(), *state)).or_default() += ended;
    }
    let days: BTreeSet<i64> = waiting.days.iter().map(|day| day.day).collect();
    for day in days.into_iter().rev() {
        for counts in waiting.days.iter().filter(|counts| counts.day == day) {
            for state in STATES {
                if let Some(ended) = so_far.get_mut(&(Name::new(&counts.queue)?, state.code())) {
                    *ended = ended.saturating_sub(of(counts.ended, state));
                }
            }
        }
        connection.execute("INSERT INTO day (day) VALUES (?)", [day])?;
        for ((queue, state), ended) in &so_far {
            let queue = names.ensure_queue(&Database::from(connection), queue)?;
            let sql = "INSERT INTO day_start (day, queue, state, ended) VALUES (?, ?, ?, ?)";
            connection.execute(sql, params![day, queue, state, ended])?;
        }
    }
    Ok(())
}
