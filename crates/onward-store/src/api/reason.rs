//! Why a task waits.

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

/// How many of the tasks that another waits for are named in a text.
const SHOWN_TASKS: usize = 10;

/// One reason why a live task does not run now. As text it says what holds the task back and what
/// would release it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum WaitReason {
    /// It is not due yet.
    NotDue {
        /// When it will be.
        run_at: Timestamp,
    },
    /// It runs when other tasks have ended: those it depends on, or its children.
    Blocked {
        /// Which of them have not ended.
        by: Vec<TaskId>,
    },
    /// It is an orchestration whose code waits for something.
    Parked {
        /// When its next timer is due, if it has one.
        until: Option<Timestamp>,
        /// The names of the events that it waits for, so far as it has told; at most
        /// [`bounds::AWAITED_NAMES`].
        events: Vec<Name>,
        /// The activities and orchestrations that it has started and that have not ended, by
        /// number; at most [`bounds::NAMED_TASKS`].
        tasks: Vec<TaskId>,
    },
    /// It is no more than what was sent to a key, and is kept for an orchestration that starts with
    /// it.
    Unstarted {
        /// Until when it is kept.
        until: Option<Timestamp>,
    },
    /// It is an orchestration that somebody has paused.
    OrchestrationPaused {
        /// Its number.
        task: TaskId,
    },
    /// It falls under a pause.
    Paused {
        /// What is paused.
        #[serde(flatten)]
        scope: Scope,
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// As many tasks run as a limit allows.
    Concurrency {
        /// What the limit was set on.
        limit_on: LimitScope,
        /// The limit.
        concurrency: u32,
        /// How many tasks under it run.
        running: u64,
    },
    /// A rate lets nothing start now.
    Rate {
        /// What the rate was set on.
        limit_on: LimitScope,
        /// The rate.
        rate: Rate,
        /// How long until it lets another task start.
        next: Duration,
    },
    /// It is reserved for the session that ran its [series](crate::NewTask::affinity) last.
    Reserved {
        /// The session.
        session: SessionId,
        /// When it goes to any session.
        until: Timestamp,
    },
    /// Others of its queue, kind, group and series go first.
    Behind {
        /// How many; [`bounds::AHEAD`] stands for that many and more.
        tasks: u64,
    },
    /// Groups share the queue, and it is the turn of others.
    Turn {
        /// How many groups with tasks of its queue and kind go before its own, the tasks without a
        /// group counted as one; [`bounds::AHEAD`] stands for that many and more.
        groups: u64,
    },
    /// Nothing else holds it back but those before it, and every worker that
    /// [serves](crate::Served) it has tasks in hand. How many slots a worker has, a store does not
    /// know.
    Slot {
        /// How many workers serve it.
        workers: u64,
        /// How many tasks they have in hand.
        running: u64,
    },
    /// No worker has the store open.
    NoWorker,
    /// It is an orchestration, and no worker that serves its queue has code that goes on with it.
    NoCode {
        /// Its kind.
        kind: Name,
        /// Its queue.
        queue: Name,
        /// The version of the code that began it; `None` if it has not begun.
        version: Option<u32>,
        /// The versions of the code of its kind that workers of its queue have; at most
        /// [`bounds::NAMED_WORKERS`].
        versions: Vec<ServedCode>,
        /// The names of workers that have code that goes on with it, in other queues; at most
        /// [`bounds::NAMED_WORKERS`].
        code_served_by: Vec<String>,
    },
    /// It expires unless an attempt has started by then. This stands behind the reasons for which
    /// none starts.
    Expires {
        /// When.
        at: Timestamp,
        /// True if that is its deadline, and false if it is the end of its time to live.
        deadline: bool,
    },
    /// It has expired and will not run.
    Expired {
        /// When.
        at: Timestamp,
        /// True if that was its deadline, and false if it was the end of its time to live.
        deadline: bool,
    },
    /// The engine that was asked is under pressure and starts nothing that is so little urgent.
    /// Only an engine tells it, not a store.
    Pressure {
        /// The source of the pressure.
        source: String,
        /// How high it is, in percent.
        percent: u8,
        /// How urgent a task must be to start.
        least: Priority,
        /// When the task will count as that urgent, by waiting.
        until: Timestamp,
    },
    /// Its handler has let go of it, and somebody is to finish it from elsewhere.
    Completion {
        /// What names the attempt for that.
        token: CompletionToken,
        /// When the attempt has failed unless it was finished or extended.
        until: Option<Timestamp>,
    },
    /// It is collected with others, to be handed over with them as one.
    Collecting {
        /// How many there are, with it.
        members: u32,
        /// How many are enough.
        size: u32,
        /// When they are handed over if no more come.
        ripe_at: Timestamp,
    },
    /// It ends with the bundle of which it is a member.
    InBundle {
        /// The bundle.
        bundle: TaskId,
    },
    /// Workers have the store open, and none of them [serves](crate::Served) its kind in its queue.
    NotServed {
        /// Its kind.
        kind: Name,
        /// Its queue.
        queue: Name,
        /// The names of workers that serve the kind, in other queues; at most
        /// [`bounds::NAMED_WORKERS`].
        kind_served_by: Vec<String>,
        /// The names of workers that serve the queue, for other kinds; at most
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
            Self::Collecting { members, size, ripe_at } => write!(
                f,
                "it is an item of a pending batch, which has {members} of {size} items and is ready at {ripe_at} if no more arrive"
            ),
            Self::InBundle { bundle } => {
                write!(f, "it is an item of task {bundle}, a batch, and ends with it")
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

/// That the pressure is too high for a task that is no more urgent.
fn pressure(f: &mut fmt::Formatter<'_>, source: &str, percent: u8, least: Priority, until: Timestamp) -> fmt::Result {
    write!(
        f,
        "the pressure of `{}` is at {percent} %, and nothing starts that is less urgent than {}; from {until} on the task \
         counts as that urgent, and it starts sooner when the pressure falls",
        Shown(source),
        least.0
    )
}

/// What the code of an orchestration waits for.
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

/// An event, or an update, which is an event that is answered.
fn event(name: &Name) -> String {
    match name.strip_prefix("update.") {
        Some(update) => format!("the update `{update}`"),
        None => format!("the event `{name}`"),
    }
}

/// For which tasks it waits.
fn blocked(f: &mut fmt::Formatter<'_>, by: &[TaskId]) -> fmt::Result {
    let shown: Vec<String> = by.iter().take(SHOWN_TASKS).map(ToString::to_string).collect();
    let more = if by.len() > SHOWN_TASKS { format!(" and {} more", by.len() - SHOWN_TASKS) } else { String::new() };
    write!(f, "it waits for the end of {} tasks: {}{more}", by.len(), shown.join(", "))
}

/// What is paused, and for how long.
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

/// That those who serve a task are at work.
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

/// Writes when a task expired, and what has it run all the same.
fn expired(f: &mut fmt::Formatter<'_>, at: Timestamp, deadline: bool) -> fmt::Result {
    if deadline {
        write!(f, "it expired at {at}, its deadline, and will not run; submit it again with a later one")
    } else {
        write!(f, "it expired at {at}, when its time to live was over, and will not run unless it is retried")
    }
}

/// Writes that no worker has the code of an orchestration, and which other versions there are.
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

/// Returns the version of some code, and from which one on it goes on with orchestrations.
fn version_text(code: &ServedCode) -> String {
    if code.since == code.version {
        format!("version {}", code.version)
    } else {
        format!("version {}, which goes on with those since {}", code.version, code.since)
    }
}

/// That no worker serves a task, and who serves its kind or its queue alone.
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
