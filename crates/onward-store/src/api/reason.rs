//! Reasons for which a task waits.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::completion::CompletionToken;
use crate::api::limit::{LimitScope, Rate};
use crate::api::name::Name;
use crate::api::served::ServedCode;
use crate::api::task::{Priority, SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::bounds;
use crate::text::Shown;

/// The largest number of awaited tasks that a text names.
const SHOWN_TASKS: usize = 10;

/// A reason for which a live task does not run now. Its text states what holds the task back and
/// what releases it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
#[non_exhaustive]
pub enum WaitReason {
    /// The task is not due yet.
    NotDue {
        /// The time at which it is due.
        run_at: Timestamp,
    },
    /// The task waits until other tasks have ended: its dependencies or its children.
    Blocked {
        /// The tasks that have not ended.
        by: Vec<TaskId>,
    },
    /// The task is an orchestration whose code waits for something.
    Parked {
        /// The time at which its next timer is due, if it has one.
        until: Option<Timestamp>,
        /// The names of the events for which it waits, as far as its turns stated them; at most
        /// [`bounds::AWAITED_NAMES`]. [`bounds::AWAITED_CANCELLATION`] stands for a request to
        /// cancel.
        events: Vec<Name>,
        /// The live activities and orchestrations that it started, by number; at most
        /// [`bounds::NAMED_TASKS`].
        tasks: Vec<TaskId>,
    },
    /// The orchestration was never started. It keeps signals to a key for the orchestration that is
    /// submitted with it.
    Unstarted {
        /// The time until which the signals are kept.
        until: Option<Timestamp>,
    },
    /// The orchestration is paused.
    OrchestrationPaused {
        /// Its number.
        task: TaskId,
    },
    /// A pause applies to the task.
    Paused {
        /// The scope of the pause.
        #[serde(flatten)]
        scope: Scope,
        /// The time at which the pause ends by itself; `None` if it has to be resumed.
        until: Option<Timestamp>,
    },
    /// As many tasks run as a limit allows.
    Concurrency {
        /// The scope on which the limit was set.
        limit_on: LimitScope,
        /// The limit.
        concurrency: u32,
        /// The number of running tasks that count towards it.
        running: u64,
    },
    /// A rate allows no start now.
    Rate {
        /// The scope on which the rate was set.
        limit_on: LimitScope,
        /// The rate.
        rate: Rate,
        /// The time until it allows another start.
        next: Duration,
    },
    /// The limit lets the task start, but other tasks that share the limit can use it up first:
    /// tasks of other kinds, groups or affinity keys of its queue that go before it, or tasks of
    /// other queues.
    Contended {
        /// The scope on which the limit was set.
        limit_on: LimitScope,
        /// The number of tasks that the limit lets start now.
        room: u64,
    },
    /// The task is reserved for the session that last ran its [affinity
    /// key](crate::NewTask::affinity).
    Reserved {
        /// The session.
        session: SessionId,
        /// The time from which on any session can take the task.
        until: Timestamp,
    },
    /// Other tasks of its queue, kind, group and affinity key go first.
    Behind {
        /// The number of these tasks. [`bounds::AHEAD`] stands for that many or more.
        tasks: u64,
    },
    /// Groups share the queue, and other groups go first.
    Turn {
        /// The number of groups with tasks of its queue and kind that go before its own. The tasks
        /// without a group count as one group. [`bounds::AHEAD`] stands for that many or more.
        groups: u64,
    },
    /// Only tasks before it hold the task back, and every worker that [serves](crate::Served) it
    /// runs tasks. A store does not know the number of slots of a worker.
    Slot {
        /// The number of workers that serve the task.
        workers: u64,
        /// The number of tasks that they run.
        running: u64,
    },
    /// No worker has the store open.
    NoWorker,
    /// The task is an orchestration, and no worker that serves its queue has code that continues
    /// it.
    NoCode {
        /// The kind.
        kind: Name,
        /// The queue.
        queue: Name,
        /// The version of the code that began it; `None` if it has not begun.
        version: Option<u32>,
        /// The versions of the code of its kind that workers of its queue have; at most
        /// [`bounds::NAMED_WORKERS`].
        versions: Vec<ServedCode>,
        /// The names of workers of other queues that have code which continues it; at most
        /// [`bounds::NAMED_WORKERS`].
        code_served_by: Vec<String>,
    },
    /// The task expires unless an attempt has started by then. This reason follows those that
    /// prevent a start.
    Expires {
        /// The time.
        at: Timestamp,
        /// True if the time is its deadline, false if it is the end of its time to live.
        deadline: bool,
    },
    /// The task has expired and will not run.
    Expired {
        /// The time.
        at: Timestamp,
        /// True if the time was its deadline, false if it was the end of its time to live.
        deadline: bool,
    },
    /// The engine is under pressure and starts no task of this urgency. Only engines report this
    /// reason; stores do not.
    Pressure {
        /// The source of the pressure.
        source: String,
        /// The pressure, in percent.
        percent: u8,
        /// The lowest priority that starts.
        least: Priority,
        /// The time at which the task, by waiting, counts as that urgent.
        until: Timestamp,
    },
    /// The handler has left the task to an external completion.
    Completion {
        /// The token of the attempt.
        token: CompletionToken,
        /// The time at which the attempt has failed, unless it is completed or extended before;
        /// `None` for no limit.
        until: Option<Timestamp>,
    },
    /// The task is an item of a pending batch.
    PendingBatch {
        /// The number of items, including the task.
        items: u32,
        /// The number of items that makes the batch ready.
        size: u32,
        /// The time at which the batch is ready if no more items arrive.
        ready_at: Timestamp,
    },
    /// The task is an item of a batch and ends with it.
    InBatch {
        /// The batch.
        batch: TaskId,
    },
    /// Workers have the store open, but none of them [serves](crate::Served) its kind in its queue.
    NotServed {
        /// The kind.
        kind: Name,
        /// The queue.
        queue: Name,
        /// The names of workers that serve the kind in other queues; at most
        /// [`bounds::NAMED_WORKERS`].
        kind_served_by: Vec<String>,
        /// The names of workers that serve the queue for other kinds; at most
        /// [`bounds::NAMED_WORKERS`].
        queue_served_by: Vec<String>,
    },
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDue { run_at } => write!(f, "it is not due until {run_at}"),
            Self::Pressure { source, percent, least, until } => pressure(f, source, *percent, *least, *until),
            Self::Blocked { by } => blocked(f, by),
            Self::Parked { until, events, tasks } => parked(f, *until, events, tasks),
            Self::Unstarted { until } => {
                let until = until.map_or_else(|| "forever".to_owned(), |until| format!("until {until}"));
                write!(
                    f,
                    "it was never started: signals to its key are kept {until} for the orchestration that is submitted with the key"
                )
            }
            Self::OrchestrationPaused { task } => {
                write!(f, "it is paused; resume it with `onward orchestration resume {task}`")
            }
            Self::Paused { scope, until } => paused(f, scope, *until),
            Self::Concurrency { limit_on, concurrency, running } => write!(
                f,
                "{running} tasks run under a limit of {concurrency} on {limit_on}; it waits until one of them ends, or for a higher limit"
            ),
            Self::Rate { limit_on, rate, next } => write!(
                f,
                "{limit_on} may start {} tasks in {:?}, and the next in {next:?}; it waits for that, or for a higher rate",
                rate.tasks, rate.per
            ),
            Self::Contended { limit_on, room } => write!(
                f,
                "the limit on {limit_on} has room for {room} more, but tasks that go first may take it; it waits for them or a higher limit"
            ),
            Self::Reserved { session, until } => write!(
                f,
                "it is reserved until {until} for session {session}, which ran its affinity key last; if that session ends, any session can take it at once"
            ),
            Self::Behind { tasks } => behind(f, *tasks),
            Self::Turn { groups } => {
                let more = if *groups >= bounds::AHEAD { " or more" } else { "" };
                write!(
                    f,
                    "{groups}{more} groups have their turn before its own; a greater weight or a minimum would give it more turns"
                )
            }
            Self::Completion { token, until } => {
                let limit = until.map_or_else(|| "forever".to_owned(), |until| format!("until {until}"));
                write!(f, "it waits {limit} for its external completion: `onward task complete {token}`, or `fail`")
            }
            Self::PendingBatch { items, size, ready_at } => write!(
                f,
                "it is an item of a pending batch, which has {items} of {size} items and is ready at {ready_at} if no more arrive"
            ),
            Self::InBatch { batch } => {
                write!(f, "it is an item of task {batch}, a batch, and ends with it")
            }
            Self::Slot { workers, running } => slot(f, *workers, *running),
            Self::NoWorker => f.write_str("no worker has the store open; start one"),
            Self::NoCode { kind, queue, version, versions, code_served_by } => {
                no_code(f, (kind, queue), *version, versions, code_served_by)
            }
            Self::Expires { at, deadline } => expires(f, *at, *deadline),
            Self::Expired { at, deadline } => expired(f, *at, *deadline),
            Self::NotServed { kind, queue, kind_served_by, queue_served_by } => {
                not_served(f, (kind, queue), kind_served_by, queue_served_by)
            }
        }
    }
}

/// Writes that the pressure is too high for the task.
fn pressure(f: &mut fmt::Formatter<'_>, source: &str, percent: u8, least: Priority, until: Timestamp) -> fmt::Result {
    write!(
        f,
        "the pressure of `{}` is at {percent} %, and nothing starts that is less urgent than {}; from {until} on the task \
         counts as that urgent, and it starts sooner when the pressure falls",
        Shown(source),
        least.0
    )
}

/// Writes for what an orchestration waits.
fn parked(f: &mut fmt::Formatter<'_>, until: Option<Timestamp>, events: &[Name], tasks: &[TaskId]) -> fmt::Result {
    let mut awaited: Vec<String> = events.iter().map(event).collect();
    if !tasks.is_empty() {
        let shown: Vec<String> = tasks.iter().take(SHOWN_TASKS).map(ToString::to_string).collect();
        let more = if tasks.len() > SHOWN_TASKS { " or of others" } else { "" };
        awaited.push(format!("the end of task {}{more}", shown.join(" or ")));
    }
    awaited.extend(until.map(|until| format!("its timer, which is due at {until}")));
    if awaited.is_empty() {
        return f.write_str("it waits for a message, such as an event");
    }
    write!(f, "it waits for {}", awaited.join(", or "))
}

/// Returns the name of an event, or of an update, which is an event with a reply. A request to
/// cancel has none.
fn event(name: &Name) -> String {
    if name.as_str() == bounds::AWAITED_CANCELLATION {
        return "a request to cancel".to_owned();
    }
    match name.strip_prefix("update.") {
        Some(update) => format!("the update `{update}`"),
        None => format!("the event `{name}`"),
    }
}

/// Writes for which tasks a task waits.
fn blocked(f: &mut fmt::Formatter<'_>, by: &[TaskId]) -> fmt::Result {
    let shown: Vec<String> = by.iter().take(SHOWN_TASKS).map(ToString::to_string).collect();
    let more = if by.len() > SHOWN_TASKS { format!(" and {} more", by.len() - SHOWN_TASKS) } else { String::new() };
    write!(f, "it waits for the end of {} tasks: {}{more}", by.len(), shown.join(", "))
}

/// Writes what is paused, and until when.
fn paused(f: &mut fmt::Formatter<'_>, scope: &Scope, until: Option<Timestamp>) -> fmt::Result {
    let what = match scope {
        Scope::All => "everything is paused".to_owned(),
        Scope::Queue(name) => format!("the queue `{name}` is paused"),
        Scope::Kind(name) => format!("the kind `{name}` is paused"),
        Scope::Group(name) => format!("the group `{name}` is paused"),
    };
    match until {
        Some(until) => write!(f, "{what} until {until}"),
        None => write!(f, "{what} until it is resumed"),
    }
}

/// Writes that all workers that serve a task are busy.
fn slot(f: &mut fmt::Formatter<'_>, workers: u64, running: u64) -> fmt::Result {
    write!(
        f,
        "every worker that serves it is at work (workers: {workers}, tasks in hand: {running}); it starts when one of them has a slot free, \
         sooner with more workers or slots"
    )
}

/// Writes how many tasks go first.
fn behind(f: &mut fmt::Formatter<'_>, tasks: u64) -> fmt::Result {
    let more = if tasks >= bounds::AHEAD { " or more" } else { "" };
    write!(f, "{tasks}{more} of its queue, kind and group go first; a higher priority would put it before them")
}

/// Writes when a task expires.
fn expires(f: &mut fmt::Formatter<'_>, at: Timestamp, deadline: bool) -> fmt::Result {
    let what = if deadline { "deadline is" } else { "time to live ends at" };
    write!(f, "its {what} {at}: it expires then unless an attempt has started")
}

/// Writes when a task expired, and how it can still run.
fn expired(f: &mut fmt::Formatter<'_>, at: Timestamp, deadline: bool) -> fmt::Result {
    if deadline {
        write!(f, "it expired at {at}, its deadline, and will not run; submit it again with a later one")
    } else {
        write!(f, "it expired at {at}, when its time to live was over, and will not run unless it is retried")
    }
}

/// Writes that no worker has the code of an orchestration, and which other versions workers have.
fn no_code(
    f: &mut fmt::Formatter<'_>,
    (kind, queue): (&Name, &Name),
    version: Option<u32>,
    versions: &[ServedCode],
    code_served_by: &[String],
) -> fmt::Result {
    let with = code_served_by.join("`, `");
    if !code_served_by.is_empty() {
        return write!(
            f,
            "no worker of the queue `{queue}` has the code of the orchestration `{kind}`; start one. `{with}` have it, in other queues"
        );
    }
    match version.filter(|_| !versions.is_empty()) {
        None => write!(f, "no worker has the code of the orchestration `{kind}`; start one that registers it"),
        Some(version) => {
            let others: Vec<String> = versions.iter().map(version_text).collect();
            write!(
                f,
                "version {version} of the orchestration `{kind}` began it, and no worker goes on with that (workers have {}); start one with \
                 that version, or have a later one say `since`",
                others.join(", ")
            )
        }
    }
}

/// Returns the version of some code, and the oldest version whose orchestrations it continues.
fn version_text(code: &ServedCode) -> String {
    if code.since == code.version {
        format!("version {}", code.version)
    } else {
        format!("version {}, which goes on with those since {}", code.version, code.since)
    }
}

/// Writes that no worker serves a task, and which workers serve only its kind or only its queue.
fn not_served(
    f: &mut fmt::Formatter<'_>,
    (kind, queue): (&Name, &Name),
    kind_served_by: &[String],
    queue_served_by: &[String],
) -> fmt::Result {
    let shown = |names: &[String]| names.iter().map(|name| Shown(name).to_string()).collect::<Vec<_>>().join("`, `");
    let (of_kind, of_queue) = (shown(kind_served_by), shown(queue_served_by));
    match (kind_served_by.is_empty(), queue_served_by.is_empty()) {
        (true, true) => write!(f, "no worker serves the kind `{kind}`, and none the queue `{queue}`; start one"),
        (true, false) => write!(
            f,
            "no worker serves the kind `{kind}`; start one. The queue `{queue}` is served, for other kinds, by `{of_queue}`"
        ),
        (false, true) => write!(
            f,
            "no worker serves the queue `{queue}`; start one, or move the task. The kind `{kind}` is served, in other queues, by `{of_kind}`"
        ),
        (false, false) => write!(
            f,
            "no worker serves the kind `{kind}` in the queue `{queue}`; start one, or move the task. The kind is served, in other \
             queues, by `{of_kind}`, and the queue, for other kinds, by `{of_queue}`"
        ),
    }
}
