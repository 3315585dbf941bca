//! The panes, and the rows that each shows of a reading.

use std::time::Duration;

use onward_store::{LimitRecord, Name, QueueRecord, SessionRecord, TaskRecord, Timestamp};

use super::group::{Group, groups};
use super::reading::{Reading, ReadingTime};
use crate::commands::limit;
use crate::output::{Align, duration_text, one_line, optional};

/// The widest user text in a cell, in columns.
const TEXT_COLUMNS: usize = 60;

/// A pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Queues,
    Running,
    Dead,
    Limits,
    Sessions,
    Groups,
}

/// The appearance of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RowStyle {
    #[default]
    Plain,
    /// Paused, at its limit, or asked to cancel.
    Held,
    /// Needs the operator's attention.
    Alarm,
}

/// A row of a pane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The identity of the item: the name of a queue, the number of a task.
    pub(super) id: String,
    /// One cell per column of the pane.
    pub(super) cells: Vec<String>,
    pub(super) style: RowStyle,
}

/// Columns by importance: the last ones are left out on a narrow terminal.
type Columns = &'static [(&'static str, Align)];

const QUEUES: Columns = &[
    ("QUEUE", Align::Left),
    ("WAITING", Align::Right),
    ("RUNNING", Align::Right),
    ("SCHEDULED", Align::Right),
    ("BLOCKED", Align::Right),
    ("DEAD", Align::Right),
    ("PAUSED", Align::Left),
    ("WEIGHT", Align::Right),
    ("OLDEST", Align::Right),
    ("LIMIT", Align::Right),
    ("COMPLETED", Align::Right),
    ("FAILED", Align::Right),
    ("CANCELLED", Align::Right),
    ("EXPIRED", Align::Right),
];

const RUNNING: Columns = &[
    ("TASK", Align::Right),
    ("KIND", Align::Left),
    ("QUEUE", Align::Left),
    ("AGE", Align::Right),
    ("PROGRESS", Align::Right),
    ("ATTEMPT", Align::Right),
    ("SESSION", Align::Right),
    ("GROUP", Align::Left),
    ("DOING", Align::Left),
];

const DEAD: Columns = &[
    ("TASK", Align::Right),
    ("KIND", Align::Left),
    ("QUEUE", Align::Left),
    ("ENDED", Align::Right),
    ("ATTEMPTS", Align::Right),
    ("ERROR", Align::Left),
];

const LIMITS: Columns = &[
    ("LIMIT ON", Align::Left),
    ("RUNNING", Align::Right),
    ("CONCURRENCY", Align::Right),
    ("USED", Align::Right),
    ("TOKENS", Align::Right),
    ("RATE", Align::Right),
    ("BURST", Align::Right),
];

const SESSIONS: Columns = &[
    ("SESSION", Align::Right),
    ("NAME", Align::Left),
    ("RUNNING", Align::Right),
    ("OPEN FOR", Align::Right),
    ("LEASE", Align::Right),
    ("SERVES", Align::Left),
];

const GROUPS: Columns = &[
    ("GROUP", Align::Left),
    ("RUNNING", Align::Right),
    ("CONCURRENCY", Align::Right),
    ("USED", Align::Right),
    ("TOKENS", Align::Right),
    ("RATE", Align::Right),
    ("BURST", Align::Right),
    ("WEIGHT", Align::Right),
    ("MINIMUM", Align::Right),
];

impl Pane {
    /// The panes in the order of the tab key.
    pub(super) const ALL: [Self; 6] =
        [Self::Queues, Self::Running, Self::Dead, Self::Limits, Self::Sessions, Self::Groups];

    /// Returns its index in [`ALL`](Self::ALL).
    pub(super) fn index(self) -> usize {
        self as usize
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Running => "running",
            Self::Dead => "dead letters",
            Self::Limits => "limits",
            Self::Sessions => "sessions",
            Self::Groups => "groups",
        }
    }

    pub(super) fn columns(self) -> Columns {
        match self {
            Self::Queues => QUEUES,
            Self::Running => RUNNING,
            Self::Dead => DEAD,
            Self::Limits => LIMITS,
            Self::Sessions => SESSIONS,
            Self::Groups => GROUPS,
        }
    }

    /// Returns the rows that the pane shows of a reading.
    pub(super) fn rows(self, reading: &Reading, now: ReadingTime) -> Vec<Row> {
        match self {
            Self::Queues => reading.queues.iter().map(|queue| of_queue(queue, now.wall)).collect(),
            // The task that has run longest comes first.
            Self::Running => {
                let mut running: Vec<_> = reading.running.iter().collect();
                running.sort_by_key(|task| (task.started_at, task.id));
                let output = |task: &TaskRecord| reading.output.get(&task.id).map(String::as_str);
                running.into_iter().map(|task| of_running(task, output(task), now.wall)).collect()
            }
            Self::Dead => reading.dead.iter().map(|task| of_dead(task, now.wall)).collect(),
            Self::Limits => reading.limits.iter().map(of_limit).collect(),
            Self::Sessions => reading.sessions.iter().map(|session| of_session(session, now.wall)).collect(),
            Self::Groups => groups(reading).into_iter().map(|(name, group)| of_group(name, group)).collect(),
        }
    }
}

fn of_queue(queue: &QueueRecord, now: Timestamp) -> Row {
    let ended = queue.ended;
    let number = |count: u64| count.to_string();
    let cells = vec![
        queue.name.to_string(),
        number(queue.waiting),
        number(queue.running),
        number(queue.scheduled),
        number(queue.blocked),
        number(ended.dead),
        if queue.paused { "paused" } else { "" }.to_owned(),
        queue.weight.to_string(),
        age(queue.oldest_waiting, now),
        optional(queue.concurrency, |limit| limit.to_string()),
        number(ended.completed),
        number(ended.failed),
        number(ended.cancelled),
        number(ended.expired),
    ];
    Row { id: queue.name.to_string(), cells, style: if queue.paused { RowStyle::Held } else { RowStyle::Plain } }
}

fn of_running(task: &TaskRecord, output: Option<&str>, now: Timestamp) -> Row {
    let progress = task.progress.as_ref();
    let fraction = progress.and_then(|progress| progress.fraction);
    let cells = vec![
        task.id.to_string(),
        task.kind.to_string(),
        task.queue.to_string(),
        age(task.started_at, now),
        optional(fraction, |fraction| format!("{:.0}%", fraction * 100.0)),
        task.attempts.to_string(),
        optional(task.session, |session| session.to_string()),
        optional(task.group.as_ref(), ToString::to_string),
        progress.and_then(|progress| progress.message.as_deref()).or(output).map_or_else(String::new, text),
    ];
    Row { id: task.id.to_string(), cells, style: if task.cancel_requested { RowStyle::Held } else { RowStyle::Plain } }
}

fn of_dead(task: &TaskRecord, now: Timestamp) -> Row {
    let cells = vec![
        task.id.to_string(),
        task.kind.to_string(),
        task.queue.to_string(),
        format!("{} ago", age(task.finished_at, now)),
        task.attempts.to_string(),
        task.errors.last().map_or_else(String::new, |error| text(&error.message)),
    ];
    Row { id: task.id.to_string(), cells, style: RowStyle::Alarm }
}

fn of_limit(record: &LimitRecord) -> Row {
    let LimitRecord { scope, limit, running, tokens } = record;
    let used = running.and_then(|running| used(running, limit.concurrency));
    let is_full = used.is_some_and(|used| used >= 100) || *tokens == Some(0);
    let scope = limit::scope_text(scope);
    let cells = vec![
        scope.clone(),
        optional(*running, |running| running.to_string()),
        optional(limit.concurrency, |limit| limit.to_string()),
        optional(used, |used| format!("{used}%")),
        optional(*tokens, |tokens| tokens.to_string()),
        optional(limit.rate, limit::rate_text),
        optional(limit.rate, |rate| rate.burst.to_string()),
    ];
    Row { id: scope, cells, style: if is_full { RowStyle::Held } else { RowStyle::Plain } }
}

fn of_group(name: &Name, group: Group) -> Row {
    let Group { running, is_cut, limit, tokens } = group;
    let used = used(running, limit.concurrency);
    let is_full = used.is_some_and(|used| used >= 100) || tokens == Some(0);
    let cells = vec![
        name.to_string(),
        format!("{running}{}", if is_cut { "+" } else { "" }),
        optional(limit.concurrency, |limit| limit.to_string()),
        optional(used, |used| format!("{used}%")),
        optional(tokens, |tokens| tokens.to_string()),
        optional(limit.rate, limit::rate_text),
        optional(limit.rate, |rate| rate.burst.to_string()),
        optional(limit.weight, |weight| weight.to_string()),
        optional(limit.minimum, |minimum| minimum.to_string()),
    ];
    Row { id: name.to_string(), cells, style: if is_full { RowStyle::Held } else { RowStyle::Plain } }
}

/// Returns the used share of a limit in percent.
fn used(running: u64, concurrency: Option<u32>) -> Option<u64> {
    concurrency.map(|limit| running * 100 / u64::from(limit.max(1)))
}

fn of_session(session: &SessionRecord, now: Timestamp) -> Row {
    let cells = vec![
        session.id.to_string(),
        text(&session.name),
        session.running.to_string(),
        age(Some(session.opened_at), now),
        whole_seconds(session.lease),
        text(&session.serves.to_string()),
    ];
    Row { id: session.id.to_string(), cells, style: RowStyle::Plain }
}

fn text(text: &str) -> String {
    one_line(text, TEXT_COLUMNS)
}

/// Returns the time since a moment, or a dash for `None`.
fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    optional(since, |since| whole_seconds(now - since))
}

/// Returns a duration that does not flicker: to the second, and from one hour on to the minute.
fn whole_seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => duration_text(Duration::from_secs(seconds)),
    }
}
