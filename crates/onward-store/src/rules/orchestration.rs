//! The bounds of a turn of an orchestration, and the state of the orchestration after it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::name::{Name, check_seen};
use crate::api::orchestration::{AfterTurn, ChildTask, EndWithTurn, Hold, Signal, Turn};
use crate::api::outcome::{Refusal, Submitted};
use crate::api::tag::Tags;
use crate::api::task::{NewTask, OnDuplicate, TaskId, TaskState, Ttl, TtlFrom, UniqueKey, When, check_payload};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::due;

/// The facts about an orchestration that the check of a turn needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnFacts<'a> {
    /// The number of events in its history.
    pub length: u64,
    /// The number of messages that have arrived.
    pub received: u64,
    /// The kind.
    pub kind: &'a str,
    /// The largest payload, in bytes.
    pub payload_limit: usize,
}

/// Checks that a turn can be written.
///
/// # Errors
/// [`Refusal::HistoryMoved`] if the history has another length than the turn states;
/// [`Refusal::Invalid`] for input that is out of bounds.
pub fn check(turn: &Turn, facts: TurnFacts<'_>) -> Result<(), Refusal> {
    if turn.length != facts.length {
        return Err(Refusal::HistoryMoved { task: turn.lease.task, length: facts.length });
    }
    if turn.consumed > facts.received {
        return Err(invalid(
            facts,
            "has consumed messages that never arrived; consume only those that a claim returned",
        ));
    }
    let begins_with = match &turn.next {
        AfterTurn::ContinueAsNew { events, chunk, .. } => (*events, chunk),
        _ => (turn.events, &turn.chunk),
    };
    if [(turn.events, &turn.chunk), begins_with].iter().any(|(events, chunk)| (*events == 0) != chunk.is_empty()) {
        return Err(invalid(facts, "has events without bytes, or bytes without events; set the number of events"));
    }
    if turn.awaits.len() > bounds::AWAITED_NAMES {
        let text =
            format!("names more than {} events that it waits for; name the first of them", bounds::AWAITED_NAMES);
        return Err(invalid(facts, &text));
    }
    if turn.submits.len() > bounds::TURN_TASKS {
        let text = format!("submits more than {} tasks; let several turns do it", bounds::TURN_TASKS);
        return Err(invalid(facts, &text));
    }
    check_published(turn, facts)?;
    check_sizes(turn, facts)?;
    turn.submits.iter().try_for_each(|task| check_submit(task, turn, facts))
}

/// Checks that the events that a turn publishes are among those that it appends.
fn check_published(turn: &Turn, facts: TurnFacts<'_>) -> Result<(), Refusal> {
    if turn.publishes.len() > bounds::TURN_PUBLISHED {
        let text = format!("publishes more than {} events; let several turns do it", bounds::TURN_PUBLISHED);
        return Err(invalid(facts, &text));
    }
    let appended = turn.length..turn.length.saturating_add(turn.events);
    let are_appended = turn.publishes.iter().all(|position| appended.contains(position));
    if !are_appended || !turn.publishes.is_sorted_by(|before, after| before < after) {
        return Err(invalid(
            facts,
            "publishes events that it does not append, or not in their order; name positions of its own events",
        ));
    }
    if !turn.publishes.is_empty() && matches!(turn.next, AfterTurn::ContinueAsNew { .. }) {
        return Err(invalid(facts, "publishes events of a history that it discards; publish them in a turn before"));
    }
    Ok(())
}

/// Returns whether the code must have been given all messages in a turn. It must if the turn ends
/// the orchestration, because its mailbox is never read afterwards. A dead letter keeps its mailbox
/// for a retry.
#[must_use]
pub fn offers_all(turn: &Turn) -> bool {
    let ends = matches!(turn.next, AfterTurn::Complete { .. } | AfterTurn::Fail { .. } | AfterTurn::Cancelled { .. });
    ends && !turn.leaves_unread
}

/// Checks that a turn does not end an orchestration before its code was given all messages.
/// `received` is the number of the last message that arrived. Earlier turns have consumed the
/// messages up to `taken`.
///
/// # Errors
/// [`Refusal::Unread`] if messages wait.
pub fn check_offered(turn: &Turn, received: u64, taken: u64) -> Result<(), Refusal> {
    let waiting = received.saturating_sub(taken.max(turn.consumed));
    if waiting == 0 || !offers_all(turn) {
        return Ok(());
    }
    Err(Refusal::Unread { task: turn.lease.task, waiting })
}

/// Checks the sizes of the values that a turn writes.
fn check_sizes(turn: &Turn, facts: TurnFacts<'_>) -> Result<(), Refusal> {
    let begins_with = if let AfterTurn::ContinueAsNew { chunk, .. } = &turn.next { chunk.len() } else { 0 };
    let (bytes, most) = (turn.chunk.len().max(begins_with), bounds::TURN_BYTES);
    if bytes > most {
        let text = format!(
            "has {bytes} bytes of events, and may have {most}; keep what is large elsewhere and pass references"
        );
        return Err(invalid(facts, &text));
    }
    let check = |what: &str, bytes: usize| {
        check_payload(what, bytes, facts.payload_limit, facts.kind).map_err(|error| Refusal::Invalid(error.to_string()))
    };
    check("status", turn.status.as_ref().map_or(0, bytes::Bytes::len))?;
    for (key, value) in &turn.values {
        if key.is_empty() || key.len() > bounds::KEY_BYTES {
            let text = format!("has a value whose key is empty or longer than {} bytes", bounds::KEY_BYTES);
            return Err(invalid(facts, &text));
        }
        check_seen("key of a value", key).map_err(|error| Refusal::Invalid(error.to_string()))?;
        check("value", value.as_ref().map_or(0, bytes::Bytes::len))?;
    }
    match &turn.next {
        AfterTurn::Complete { result } => check("result", result.as_ref().map_or(0, bytes::Bytes::len)),
        AfterTurn::ContinueAsNew { payload, .. } => check("payload", payload.len()),
        _ => Ok(()),
    }
}

/// Checks that an orchestration has at most [`bounds::VALUES`] values after a turn. `kept` are the
/// keys before it.
///
/// # Errors
/// [`Refusal::Invalid`] if it has more.
pub fn check_values<'a>(turn: &'a Turn, kind: &str, kept: impl IntoIterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut keys: BTreeSet<&str> = kept.into_iter().collect();
    for (key, value) in &turn.values {
        if value.is_some() {
            keys.insert(key);
        } else {
            keys.remove(key.as_str());
        }
    }
    if keys.len() <= bounds::VALUES {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "an orchestration of kind `{kind}` would keep {} values, and may keep {}; remove unused values in its code, or combine several into one",
        keys.len(),
        bounds::VALUES
    )))
}

/// Returns the tags of an orchestration after a turn; `None` if they are unchanged.
///
/// # Errors
/// [`Refusal::Invalid`] if the turn changes more than [`bounds::TURN_TAGS`] tags, or if the new
/// tags are out of bounds.
pub fn tags_after(turn: &Turn, kind: &str, before: &Tags) -> Result<Option<Tags>, Refusal> {
    if turn.tags.is_empty() {
        return Ok(None);
    }
    if turn.tags.len() > bounds::TURN_TAGS {
        return Err(Refusal::Invalid(format!(
            "a turn of an orchestration of kind `{kind}` changes {} tags, and may change {}; name each key once",
            turn.tags.len(),
            bounds::TURN_TAGS
        )));
    }
    let mut tags = before.clone();
    for (key, value) in &turn.tags {
        match value {
            Some(value) => tags.set(key.as_str(), value.as_str()),
            None => drop(tags.remove(key)),
        }
    }
    if tags == *before {
        return Ok(None);
    }
    let wrong = |error| Refusal::Invalid(format!("an orchestration of kind `{kind}` cannot have such tags: {error}"));
    tags.check().map_err(wrong)?;
    Ok(Some(tags))
}

/// Returns whether a store has room for the names of the tasks of a turn, such as their queues. The
/// store has `known` names, and may have `most`.
#[must_use]
pub fn has_room(
    submits: &[NewTask],
    name_of: impl Fn(&NewTask) -> Option<&Name>,
    known: usize,
    is_known: impl Fn(&Name) -> bool,
    most: usize,
) -> bool {
    // Even if every name were new, all of them would fit.
    if known + submits.len() <= most {
        return true;
    }
    let new: BTreeSet<&Name> = submits.iter().filter_map(name_of).filter(|name| !is_known(name)).collect();
    new.is_empty() || known + new.len() <= most
}

/// Checks a task that a turn submits.
fn check_submit(task: &NewTask, turn: &Turn, facts: TurnFacts<'_>) -> Result<(), Refusal> {
    task.check(facts.payload_limit).map_err(|error| Refusal::Invalid(error.to_string()))?;
    unsubmittable(task, turn.lease.task).map_or(Ok(()), |what| Err(invalid(facts, what)))
}

/// Returns the reason why a turn may not submit a task; `None` if it may.
#[must_use]
pub fn unsubmittable(task: &NewTask, orchestration: TaskId) -> Option<&'static str> {
    if !task.depends_on.is_empty() || task.aggregate.is_some() {
        return Some(
            "submits a task with dependencies or for a batch; await the other tasks first, and submit it without them",
        );
    }
    let takes_over = |unique: &UniqueKey| matches!(unique.on_duplicate, OnDuplicate::TakeOver(_));
    if task.unique.as_ref().is_some_and(takes_over) {
        return Some("submits a task that takes over the key of another; submit it by itself");
    }
    let is_strange = task.parent.is_some_and(|parent| parent != orchestration);
    is_strange.then_some("submits a task as the child of another; leave the parent out, or name itself")
}

/// Returns the refusal of a turn. `what` completes "a turn of an orchestration …".
#[cold]
fn invalid(facts: TurnFacts<'_>, what: &str) -> Refusal {
    Refusal::Invalid(format!("a turn of an orchestration of kind `{}` {what}", facts.kind))
}

/// Returns the refusal of a turn that needs more queues, kinds or groups than a store holds.
#[cold]
#[must_use]
pub fn no_room() -> Refusal {
    Refusal::Invalid(
        "a turn submits tasks whose queues, kinds or groups are more than the store has room for; use fewer of them"
            .to_owned(),
    )
}

/// Returns whether a task that a turn submitted will run, now or after the task with its key has
/// ended. Its end is then reported to the orchestration.
#[must_use]
pub fn is_taken(submitted: Submitted) -> bool {
    submitted.is_new() || matches!(submitted, Submitted::Requeued { .. })
}

/// Returns the refusal for an orchestration that tries to wait other than by parking.
#[cold]
#[must_use]
pub fn waits_by_parking(kind: &str) -> Refusal {
    Refusal::Invalid(format!(
        "a task of kind `{kind}` is an orchestration, which waits by parking; write a turn instead"
    ))
}

/// Returns the refusal for a checkpoint of an orchestration, which has a history instead.
#[cold]
#[must_use]
pub fn saves_no_checkpoint(kind: &str) -> Refusal {
    Refusal::Invalid(format!(
        "a task of kind `{kind}` is an orchestration, which keeps a history; write a turn instead"
    ))
}

/// Returns the state of an orchestration that parks. If messages wait, it waits for a claim at
/// once.
#[must_use]
pub fn parked(until: Option<Timestamp>, has_messages: bool, now: Timestamp) -> TaskState {
    match until {
        _ if has_messages => TaskState::Waiting,
        Some(until) => due::state(until, now),
        None => TaskState::Blocked,
    }
}

/// Returns the continuation of an orchestration whose key another one has taken: it ends as
/// cancelled, unless its turn ends it.
#[must_use]
pub fn superseded(next: AfterTurn) -> AfterTurn {
    match next {
        AfterTurn::Continue | AfterTurn::Park { .. } | AfterTurn::ContinueAsNew { .. } => {
            AfterTurn::Cancelled { reason: "another orchestration has taken its key".to_owned() }
        }
        next => next,
    }
}

/// Returns whether an orchestration in a state accepts messages. An ended orchestration does not,
/// except a dead letter, which can be retried. Messages that arrived before the end are kept.
#[must_use]
pub fn takes_messages(state: TaskState) -> bool {
    !state.is_ended() || state == TaskState::Dead
}

/// Returns whether any of these tasks is named by its reference.
#[must_use]
pub fn names_references(children: &[ChildTask]) -> bool {
    children.iter().any(|child| matches!(child, ChildTask::Reference(_)))
}

/// Returns the numbers of tasks that a turn names. `by_reference` are the live tasks that the
/// orchestration submitted with references.
pub fn named_tasks(children: &[ChildTask], by_reference: &BTreeMap<u64, Vec<TaskId>>) -> impl Iterator<Item = TaskId> {
    children.iter().flat_map(|child| match child {
        ChildTask::Task(task) => vec![*task],
        ChildTask::Reference(reference) => by_reference.get(reference).cloned().unwrap_or_default(),
    })
}

/// The facts about an orchestration before the end of a task that it submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeforeReport {
    /// The state.
    pub state: TaskState,
    /// The time at which it has a turn, if it is scheduled.
    pub run_at: Timestamp,
    /// The hold.
    pub hold: Hold,
    /// The number of times that it started again.
    pub generation: u32,
    /// The number of events in its history.
    pub length: u64,
    /// The number of messages that have arrived.
    pub received: u64,
}

/// Returns whether an orchestration is in the state for which the turn of an [`EndWithTurn`] was
/// planned: it is parked, its time has not come, and no message or event has arrived since.
#[must_use]
pub fn stands_as_planned(write: &EndWithTurn, before: BeforeReport, now: Timestamp) -> bool {
    let BeforeReport { state, run_at, hold, generation, length, received } = before;
    let state = if state == TaskState::Scheduled { due::state(run_at, now) } else { state };
    is_woken(length, hold, state)
        && (generation, length, received) == (write.generation, write.turn.length, write.received)
}

/// Returns the active workflow run of which a task is a step. The run, and not an operator, decides
/// if the step is retried. `parent` is the task's parent, with its kind and state.
#[must_use]
pub fn run_of_step(report: Option<u64>, parent: Option<(TaskId, &str, TaskState)>) -> Option<TaskId> {
    let (run, kind, state) = parent.filter(|_| report.is_some())?;
    (is_run(kind) && !state.is_ended()).then_some(run)
}

/// Returns true if the orchestrations of a kind are runs of a workflow.
#[must_use]
pub fn is_run(kind: &str) -> bool {
    kind.starts_with(bounds::RUN_KIND_PREFIX)
}

/// Returns whether a message wakes an orchestration with `length` events in its history.
#[must_use]
pub fn is_woken(length: u64, hold: Hold, state: TaskState) -> bool {
    length > 0 && hold == Hold::None && matches!(state, TaskState::Blocked | TaskState::Scheduled)
}

/// Returns the hold of an orchestration that is paused while it is in this state.
#[must_use]
pub fn paused(state: TaskState) -> Hold {
    if needs_turn(state) { Hold::PausedDue } else { Hold::Paused }
}

/// Returns whether an orchestration stays blocked instead of entering `state`, because it is paused
/// and would have a turn there.
#[must_use]
pub fn stands_aside(hold: Hold, state: TaskState) -> bool {
    hold.is_paused() && needs_turn(state)
}

/// Returns true if a claim may take an orchestration in this state, now or when it is due.
fn needs_turn(state: TaskState) -> bool {
    matches!(state, TaskState::Waiting | TaskState::Scheduled)
}

/// Returns whether an orchestration receives a request to cancel as a message, instead of ending at
/// once. An orchestration that has begun may have to clean up.
#[must_use]
pub fn is_notified_of_cancel(generation: u32, length: u64, state: TaskState) -> bool {
    generation > 0 || length > 0 || state == TaskState::Running
}

/// Checks a signal that may be kept for an orchestration that has not started.
///
/// # Errors
/// [`Refusal::Invalid`] for a time of zero or more than [`bounds::UNSTARTED_KEPT`], a reserved
/// kind, or a payload over the limit.
pub fn check_kept(signal: &Signal, kind: &Name, keep_for: Duration, payload_limit: usize) -> Result<(), Refusal> {
    if keep_for.is_zero() || keep_for > bounds::UNSTARTED_KEPT {
        return Err(Refusal::Invalid(format!(
            "a signal is kept for a start for more than nothing and at most {:?}, and this one for {keep_for:?}",
            bounds::UNSTARTED_KEPT
        )));
    }
    kind.check_own("kind")
        .and_then(|()| check_payload("signal", signal.payload.len(), payload_limit, kind))
        .map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Returns the unstarted orchestration that keeps signals for a key without an orchestration.
#[must_use]
pub fn unstarted(kind: &Name, key: &str, keep_for: Duration) -> NewTask {
    NewTask {
        queue: Name::unstarted_queue(),
        unique: Some(UniqueKey { key: key.to_owned(), on_duplicate: OnDuplicate::Reject, keep_for: Duration::ZERO }),
        // This orchestration is never due.
        when: When::At(Timestamp::MAX),
        ttl: Some(Ttl { duration: keep_for, from: TtlFrom::Submission }),
        orchestration: true,
        ..NewTask::of(kind.clone())
    }
}

/// Returns the refusal for a signal to one more key without an orchestration than
/// [`bounds::UNSTARTED_KEYS`].
#[cold]
#[must_use]
pub fn too_many_unstarted() -> Refusal {
    Refusal::Invalid(format!(
        "signals are kept for {} keys of orchestrations that have not started, which is the limit; start them, or delete tasks of the queue `{}`",
        bounds::UNSTARTED_KEYS,
        bounds::UNSTARTED_QUEUE
    ))
}

/// Returns the refusal to run or retry an orchestration that was never started.
#[cold]
#[must_use]
pub fn never_started(task: TaskId) -> Refusal {
    Refusal::Invalid(format!(
        "orchestration {task} was never started and only keeps signals for its key; start one with the key instead"
    ))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::api::task::{Lease, SessionId};

    /// Shows: D9
    #[test]
    fn a_turn_with_more_events_than_a_store_takes_is_refused() {
        let lease = Lease { task: TaskId(1), session: SessionId(1), claim: 1 };
        let facts = TurnFacts { length: 0, received: 0, kind: "order", payload_limit: 1024 };
        let large = Bytes::from(vec![0; bounds::TURN_BYTES + 1]);
        let appended = Turn { events: 1, chunk: large.clone(), ..Turn::new(lease, 0, AfterTurn::Continue) };
        let carried = AfterTurn::ContinueAsNew { payload: Bytes::new(), events: 1, chunk: large };
        for turn in [appended, Turn::new(lease, 0, carried)] {
            let refusal = check(&turn, facts).unwrap_err().to_string();
            assert!(refusal.contains("bytes of events, and may have"), "{refusal}");
        }
    }
}
