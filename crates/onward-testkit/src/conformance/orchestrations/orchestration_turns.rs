//! Orchestrations: tasks with turns, a history and a mailbox.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, AfterTurn, Change, ChildTask, ClaimedTask, HistoryChunk, Hold, Lease, Message, MessageBody, NewTask,
    OnDuplicate, OpenSession, Outcome, Page, Recipient, Refusal, Served, ServedCode, SessionId, Signal, StoreReads,
    Submitted, Tags, TaskFilter, TaskId, TaskResult, TaskState, Turn, Turned, UniqueKey, WaitReason, When, Write,
    bounds,
};

use crate::test_store::{LEASE, TestStore, name, task};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const PARK: AfterTurn = AfterTurn::Park { until: None };

pub(super) fn orchestration() -> NewTask {
    NewTask { orchestration: true, ..task("order") }
}

pub(super) fn keyed(key: &str, on_duplicate: OnDuplicate) -> NewTask {
    let unique = Some(UniqueKey { key: key.into(), on_duplicate, keep_for: Duration::ZERO });
    NewTask { unique, ..orchestration() }
}

/// Returns a task whose end is reported to an orchestration.
pub(super) fn activity(of: TaskId, reference: u64) -> NewTask {
    NewTask { parent: Some(of), report: Some(reference), ..task("charge") }
}

/// Returns a turn that appends one event.
pub(super) fn one_event(lease: Lease, length: u64, next: AfterTurn) -> Turn {
    Turn { events: 1, chunk: Bytes::from_static(b"event"), ..Turn::new(lease, length, next) }
}

pub(super) async fn turned(store: &TestStore, turn: Turn) -> Turned {
    match store.write(Write::Turn(Box::new(turn))).await {
        Outcome::Turned(turned) => turned,
        other => panic!("the turn should have been written: {other:?}"),
    }
}

pub(super) async fn refused(store: &TestStore, turn: Turn) -> Refusal {
    store.refused(Write::Turn(Box::new(turn))).await
}

pub(super) fn signal(to: Recipient, payload: &'static str) -> Write {
    Write::Signal(Box::new(Signal { to, name: name("paid"), payload: payload.into() }))
}

pub(super) async fn claim(store: &TestStore, session: SessionId) -> ClaimedTask {
    store.claim(session, 1).await.remove(0)
}

pub(super) fn messages(task: &ClaimedTask) -> Vec<MessageBody> {
    task.instance.as_ref().unwrap().messages.iter().map(|message| message.body.clone()).collect()
}

/// Returns the report about a task with the reference 7 that was claimed once.
pub(super) fn ended(task: TaskId, state: TaskState, result: Option<Bytes>, error: Option<String>) -> MessageBody {
    MessageBody::Ended { reference: 7, task, state, result, error, attempts: 1, omitted: None }
}

pub(super) fn paid(payload: &'static str) -> MessageBody {
    MessageBody::Signal { name: name("paid"), payload: payload.into() }
}

/// Returns an orchestration that is parked after one turn, and the session that made the turn.
pub(super) async fn parked(store: &TestStore) -> (TaskId, SessionId) {
    let lease = store.running(orchestration()).await;
    assert_eq!(turned(store, one_event(lease, 0, PARK)).await.state, TaskState::Blocked);
    (lease.task, lease.session)
}

/// Returns an orchestration that is parked until its task ends, and the lease of that task.
pub(super) async fn awaiting(store: &TestStore) -> (TaskId, Lease) {
    let lease = store.running(orchestration()).await;
    let submits = vec![activity(lease.task, 7)];
    turned(store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    (lease.task, store.claim_one(lease.session).await)
}

async fn history(store: &TestStore, task: TaskId, from: u64) -> Vec<HistoryChunk> {
    store.inner().instance_history(task, from, 100).await.unwrap()
}

/// Shows: D1
pub async fn a_claimed_orchestration_has_its_instance(store: TestStore) {
    store.submit_new(orchestration()).await;
    store.submit("plain").await;
    let claimed = store.claim(store.session().await, 2).await;
    assert_eq!(claimed[0].instance.as_ref().map(|it| (it.generation, it.length, it.messages.len())), Some((0, 0, 0)));
    assert!(claimed[1].instance.is_none());
}

/// Shows: D1
pub async fn a_turn_appends_to_the_history_and_parks(store: TestStore) {
    let (task, session) = parked(&store).await;
    let record = store.record(task).await;
    assert_eq!((record.state, record.session, record.attempts), (TaskState::Blocked, None, 0));
    assert_eq!(store.claim(session, 1).await.len(), 0);
    let chunk = HistoryChunk { first: 0, events: 1, chunk: Bytes::from_static(b"event") };
    assert_eq!(history(&store, task, 0).await, [chunk]);
}

/// Shows: W11
pub async fn a_turn_publishes_events_of_its_history(store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, Turn { publishes: vec![0], ..one_event(lease, 0, AfterTurn::Continue) }).await;
    let chunk = Bytes::from_static(b"eee");
    let next = AfterTurn::Complete { result: None };
    turned(&store, Turn { events: 3, chunk, publishes: vec![1, 3], ..Turn::new(lease, 1, next) }).await;
    let published = |position| (lease.task, Change::Published { position });
    let expected = [published(0), published(1), published(3), (lease.task, Change::Completed)];
    assert_eq!(store.changes().await[2..], expected);
}

/// Shows: W11
pub async fn a_turn_publishes_only_what_it_appends(store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, one_event(lease, 0, AfterTurn::Continue)).await;
    let begin_again = AfterTurn::ContinueAsNew { payload: Bytes::new(), events: 0, chunk: Bytes::new() };
    let many = bounds::TURN_PUBLISHED as u64 + 1;
    let wrong = [
        (Turn { publishes: vec![0], ..one_event(lease, 1, PARK) }, "does not append"),
        (Turn { publishes: vec![2], ..one_event(lease, 1, PARK) }, "does not append"),
        (Turn { publishes: vec![2, 1], events: 2, ..one_event(lease, 1, PARK) }, "not in their order"),
        (Turn { publishes: vec![1, 1], events: 2, ..one_event(lease, 1, PARK) }, "not in their order"),
        (Turn { publishes: vec![1], ..one_event(lease, 1, begin_again) }, "that it discards"),
        (Turn { publishes: (1..=many).collect(), events: many, ..one_event(lease, 1, PARK) }, "more than 1000 events"),
    ];
    for (turn, expected) in wrong {
        let text = store.invalid(Write::Turn(Box::new(turn))).await;
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(history(&store, lease.task, 0).await.len(), 1);
}

pub(super) async fn why(store: &TestStore, task: TaskId) -> Vec<WaitReason> {
    store.inner().why(task).await.unwrap().unwrap()
}

/// Shows: B6, D10
pub async fn why_says_what_a_parked_orchestration_waits_for(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let submits = vec![activity(lease.task, 7), activity(lease.task, 8), task("detached")];
    let awaits = vec![name("paid"), name("update.address")];
    let until = Some(store.now().plus(SECOND));
    turned(&store, Turn { submits, awaits: awaits.clone(), ..one_event(lease, 0, AfterTurn::Park { until }) }).await;
    let activities = store.list(TaskFilter { parent: Some(lease.task), ..TaskFilter::default() }).await;
    let (last, first) = (activities[0], activities[1]);
    let parked = WaitReason::Parked { until, events: awaits.clone(), tasks: vec![first, last] };
    assert_eq!(why(&store, lease.task).await, [parked]);
    assert_eq!(store.inner().instance(lease.task).await.unwrap().unwrap().awaits, awaits);

    let first = store.claim_one(lease.session).await;
    store.complete(first).await;
    let claimed = store.claim(lease.session, 9).await;
    let again = claimed.iter().find(|claimed| claimed.lease.task == lease.task).unwrap().lease;
    turned(&store, Turn { consumed: 1, ..one_event(again, 1, PARK) }).await;
    let parked = WaitReason::Parked { until: None, events: Vec::new(), tasks: vec![last] };
    assert_eq!(why(&store, lease.task).await, [parked]);
}

/// Shows: B6, D5
pub async fn why_says_that_no_worker_has_the_code(mut store: TestStore) {
    let lease = store.running(orchestration()).await;
    let turn = Turn { version: Some(1), ..one_event(lease, 0, PARK) };
    turned(&store, turn).await;
    store.done(Write::CloseSession { session: lease.session }).await;
    let waits = WaitReason::Parked { until: None, events: Vec::new(), tasks: Vec::new() };
    assert_eq!(why(&store, lease.task).await, [waits.clone(), WaitReason::NoWorker]);
    store.reopen().await;
    let code = |since, version| ServedCode { kind: name("order"), since, version };
    let open = async |code: ServedCode| {
        let serves = Served { code: Some(vec![code]), ..Served::default() };
        store.write(Write::OpenSession(OpenSession { serves, ..OpenSession::new("w", SECOND) })).await;
    };
    open(code(2, 3)).await;
    let missing = WaitReason::NoCode {
        kind: name("order"),
        queue: name("default"),
        version: Some(1),
        versions: vec![code(2, 3)],
        code_served_by: Vec::new(),
    };
    assert_eq!(why(&store, lease.task).await, [missing, waits.clone()]);
    open(code(0, 4)).await;
    assert_eq!(why(&store, lease.task).await, [waits]);
    assert_eq!(store.inner().instance(lease.task).await.unwrap().unwrap().version, Some(1));
}

/// Shows: D10
pub async fn what_a_parked_orchestration_waits_for_survives_a_restart(mut store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, Turn { awaits: vec![name("paid")], ..one_event(lease, 0, PARK) }).await;
    store.reopen().await;
    let parked = WaitReason::Parked { until: None, events: vec![name("paid")], tasks: Vec::new() };
    assert_eq!(why(&store, lease.task).await[0], parked);
}

/// Shows: D10
pub async fn a_filter_separates_orchestrations_from_tasks(store: TestStore) {
    let done = store.completed(task("charge")).await;
    let (ended, session) = {
        let lease = store.running(orchestration()).await;
        turned(&store, one_event(lease, 0, AfterTurn::Complete { result: None })).await;
        (lease.task, lease.session)
    };
    let tagged = store.submit_new(NewTask { tags: [("a", "1")].into_iter().collect(), ..orchestration() }).await;
    let parked = claim(&store, session).await.lease;
    let plain = store.submit_new(NewTask { tags: [("a", "1")].into_iter().collect(), ..task("charge") }).await;
    let waiting = store.submit_new(orchestration()).await;
    let of = |is_one| TaskFilter { orchestration: Some(is_one), ..TaskFilter::default() };
    assert_eq!(store.list(of(true)).await, [waiting, tagged, ended]);
    assert_eq!(store.list(of(false)).await, [plain, done]);
    let tags: Tags = [("a", "1")].into_iter().collect();
    assert_eq!(store.list(TaskFilter { tags: tags.clone(), ..of(true) }).await, [tagged]);
    assert_eq!(store.list(TaskFilter { tags, ..of(false) }).await, [plain]);
    let running = |is_one| TaskFilter { states: vec![TaskState::Running], ..of(is_one) };
    assert_eq!(store.list(running(true)).await, [parked.task]);
    assert_eq!(store.list(running(false)).await, []);
    assert_eq!(store.list(TaskFilter { kind: Some(name("charge")), ..of(true) }).await, []);
    assert_eq!(store.inner().count(of(true)).await.unwrap(), 3);
    let first = store.inner().tasks(of(true), Page { before: None, limit: 2 }).await.unwrap();
    assert_eq!(first.next, Some(tagged));
    let second = store.inner().tasks(of(true), Page { before: first.next, limit: 2 }).await.unwrap();
    assert_eq!((second.tasks.len(), second.tasks[0].id, second.next), (1, ended, None));
}

/// Shows: D10
pub async fn a_removed_orchestration_is_found_by_no_filter(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    store.done(Write::Delete { task }).await;
    let orchestrations = TaskFilter { orchestration: Some(true), ..TaskFilter::default() };
    assert_eq!(store.inner().count(orchestrations).await.unwrap(), 0);
}

/// Shows: D10
pub async fn a_history_is_read_from_the_chunk_that_has_an_event_on(store: TestStore) {
    let lease = store.running(orchestration()).await;
    for (length, events) in [(0, 2), (2, 3), (5, 1)] {
        let turn = Turn::new(lease, length, AfterTurn::Continue);
        turned(&store, Turn { events, chunk: vec![b'e'; 4].into(), ..turn }).await;
    }
    let first = |chunks: Vec<HistoryChunk>| chunks.iter().map(|chunk| chunk.first).collect::<Vec<_>>();
    assert_eq!(first(history(&store, lease.task, 4).await), [2, 5]);
    assert_eq!(first(history(&store, lease.task, 5).await), [5]);
    assert_eq!(first(history(&store, lease.task, 6).await), [0; 0]);
}

/// Shows: D3
pub async fn a_parked_orchestration_resumes_at_its_moment(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let until = Some(store.now().plus(LEASE));
    let state = turned(&store, one_event(lease, 0, AfterTurn::Park { until })).await.state;
    assert_eq!(state, TaskState::Scheduled);
    let session = store.session_for(LEASE * 2).await;
    assert_eq!(store.claim(session, 1).await.len(), 0);
    store.advance(LEASE);
    assert_eq!(store.claim(session, 1).await.len(), 1);
}

/// Shows: D3
pub async fn a_signal_wakes_what_is_parked(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "10")).await;
    let claimed = claim(&store, session).await;
    assert_eq!(messages(&claimed), [paid("10")]);
    assert_eq!(claimed.instance.unwrap().length, 1);
}

/// Shows: D3
pub async fn a_signal_wakes_what_is_parked_until_a_moment(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let until = Some(store.now().plus(LEASE));
    turned(&store, one_event(lease, 0, AfterTurn::Park { until })).await;
    store.advance(SECOND);
    store.done(signal(Recipient::Task(lease.task), "10")).await;
    let claimed = claim(&store, lease.session).await;
    assert_eq!((claimed.run_at, messages(&claimed)), (store.now(), vec![paid("10")]));
}

/// Shows: D3
pub async fn signals_from_before_the_first_turn_are_kept_in_order(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    store.done(signal(Recipient::Task(task), "2")).await;
    let claimed = claim(&store, store.session().await).await;
    assert_eq!(messages(&claimed), [paid("1"), paid("2")]);
}

/// Shows: D3
pub async fn a_signal_does_not_start_what_is_not_due(store: TestStore) {
    let task = store.submit_new(NewTask { when: When::After(LEASE), ..orchestration() }).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    assert_eq!(store.state(task).await, TaskState::Scheduled);
}

/// Shows: D3
pub async fn a_signal_finds_its_orchestration_by_the_key(store: TestStore) {
    let task = store.submit_new(keyed("order-1", OnDuplicate::Skip)).await;
    let to = |key: &str| Recipient::Key { kind: name("order"), key: key.into() };
    store.done(signal(to("order-1"), "1")).await;
    let refusal = store.refused(signal(to("order-2"), "1")).await;
    assert_eq!(refusal, Refusal::NoneWithKey { kind: name("order"), key: "order-2".into() });
    assert_eq!(store.inner().instance(task).await.unwrap().unwrap().waiting, 1);
}

/// Shows: D3
pub async fn a_signal_without_a_recipient_is_refused_and_disturbs_no_other(store: TestStore) {
    let (task, session) = parked(&store).await;
    let plain = store.completed(task_of("plain")).await;
    let missing = TaskId(999);
    let outcomes = store
        .apply(vec![
            signal(Recipient::Task(missing), "1"),
            signal(Recipient::Task(plain), "1"),
            signal(Recipient::Task(task), "1"),
        ])
        .await;
    let ended = Refusal::AlreadyEnded { task: plain, state: TaskState::Completed };
    let refused = [Refusal::TaskNotFound(missing), ended].map(Outcome::Refused);
    assert_eq!(outcomes[..2], refused);
    assert_eq!(messages(&claim(&store, session).await), [paid("1")]);
}

fn task_of(kind: &str) -> NewTask {
    task(kind)
}

/// Addresses the orchestration that has a key, or one that starts with it within a minute.
fn key_or_start(key: &str) -> Recipient {
    Recipient::KeyOrStart { kind: name("order"), key: key.into(), keep_for: MINUTE }
}

async fn unstarted(store: &TestStore) -> Vec<TaskId> {
    store.list(TaskFilter { queue: Some(name(bounds::UNSTARTED_QUEUE)), ..TaskFilter::default() }).await
}

/// Shows: D3
pub async fn a_signal_is_kept_for_the_orchestration_that_starts_with_its_key(mut store: TestStore) {
    store.done(signal(key_or_start("A-17"), "1")).await;
    store.done(signal(key_or_start("A-17"), "2")).await;
    store.reopen().await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await, []);
    let task = store.submit_new(keyed("A-17", OnDuplicate::Skip)).await;
    store.done(signal(Recipient::Task(task), "3")).await;
    let claimed = claim(&store, session).await;
    assert_eq!((claimed.lease.task, messages(&claimed)), (task, vec![paid("1"), paid("2"), paid("3")]));
    assert_eq!(unstarted(&store).await, []);
}

/// Shows: D3
pub async fn a_signal_that_may_wait_for_a_start_goes_to_the_holder_of_the_key(store: TestStore) {
    let task = store.submit_new(keyed("A-17", OnDuplicate::Skip)).await;
    store.done(signal(key_or_start("A-17"), "1")).await;
    assert_eq!(store.inner().instance(task).await.unwrap().unwrap().waiting, 1);
    assert_eq!(unstarted(&store).await, []);
}

/// Shows: D3
pub async fn what_is_kept_for_a_start_is_seen_and_deleted(store: TestStore) {
    store.done(signal(key_or_start("A-17"), "1")).await;
    let task = unstarted(&store).await[0];
    let record = store.inner().instance(task).await.unwrap().unwrap();
    assert_eq!((record.hold, record.waiting), (Hold::Unstarted, 1));
    let until = Some(store.now().plus(MINUTE));
    assert_eq!(why(&store, task).await, [WaitReason::Unstarted { until }]);
    store.done(Write::Delete { task }).await;
    let session = store.session().await;
    store.submit_new(keyed("A-17", OnDuplicate::Skip)).await;
    assert_eq!(messages(&claim(&store, session).await), []);
}

/// Shows: D3
pub async fn what_is_kept_for_a_start_is_kept_as_long_as_was_asked_for_last(store: TestStore) {
    store.done(signal(key_or_start("A-17"), "1")).await;
    store.advance(MINUTE / 2);
    store.done(signal(key_or_start("A-17"), "2")).await;
    let task = unstarted(&store).await[0];
    store.advance(MINUTE - SECOND);
    store.sweep().await;
    assert_eq!(store.state(task).await, TaskState::Scheduled);
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.state(task).await, TaskState::Expired);
    let again = store.invalid(Write::Retry { task }).await;
    assert!(again.contains("was never started"), "{again}");
}

/// Shows: D3
pub async fn an_unstarted_recipient_is_no_orchestration_for_other_reads(store: TestStore) {
    store.done(signal(key_or_start("A-17"), "1")).await;
    let task = unstarted(&store).await[0];
    let to = Recipient::Key { kind: name("order"), key: "A-17".into() };
    let none = Refusal::NoneWithKey { kind: name("order"), key: "A-17".into() };
    assert_eq!(store.refused(signal(to, "2")).await, none);
    for write in [Write::RunNow { task }, Write::PauseOrchestration { task }] {
        assert!(store.invalid(write).await.contains("was never started"));
    }
}

/// Shows: D3
pub async fn signals_that_are_kept_for_a_start_are_bounded(store: TestStore) {
    for _ in 0..bounds::UNSTARTED_EVENTS {
        store.done(signal(key_or_start("A-17"), "1")).await;
    }
    let task = unstarted(&store).await[0];
    assert_eq!(store.refused(signal(key_or_start("A-17"), "1")).await, Refusal::MailboxFull(task));
    let too_long = bounds::UNSTARTED_KEPT + SECOND;
    let to = Recipient::KeyOrStart { kind: name("order"), key: "A-18".into(), keep_for: too_long };
    assert!(store.invalid(signal(to, "1")).await.contains("is kept for a start"));
}

/// Shows: D3
pub async fn a_kept_signal_and_its_start_are_both_or_neither(store: TestStore) {
    store.done(signal(key_or_start("A-17"), "1")).await;
    let start = Write::Submit(Box::new(keyed("A-17", OnDuplicate::Skip)));
    let refused = Write::All(vec![start.clone(), Write::Cancel { task: TaskId(99) }]);
    assert!(matches!(store.refused(refused).await, Refusal::InAll { index: 1, .. }));
    assert_eq!(unstarted(&store).await.len(), 1);
    let to = Recipient::Key { kind: name("order"), key: "A-17".into() };
    assert!(matches!(store.write(Write::All(vec![start, signal(to, "2")])).await, Outcome::All(_)));
    let session = store.session().await;
    assert_eq!(messages(&claim(&store, session).await), [paid("1"), paid("2")]);
}

/// Shows: D3
pub async fn a_task_that_is_no_orchestration_has_no_mailbox(store: TestStore) {
    let task = store.submit("plain").await;
    assert_eq!(store.refused(signal(Recipient::Task(task), "1")).await, Refusal::NotAnOrchestration(task));
    let lease = store.start_one().await;
    assert_eq!(refused(&store, one_event(lease, 0, PARK)).await, Refusal::NotAnOrchestration(task));
    assert_eq!(store.inner().instance(task).await.unwrap(), None);
}

/// Shows: D3
pub async fn consumed_messages_are_forgotten(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    store.done(signal(Recipient::Task(task), "2")).await;
    let lease = claim(&store, session).await.lease;
    let turn = Turn { consumed: 1, ..one_event(lease, 1, PARK) };
    assert_eq!(turned(&store, turn).await.state, TaskState::Waiting);
    let claimed = claim(&store, session).await;
    assert_eq!(messages(&claimed), [paid("2")]);
    assert_eq!(claimed.instance.unwrap().messages[0].number, 2);
}

/// Shows: D3
pub async fn a_message_during_a_turn_wakes_the_orchestration(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let lease = claim(&store, session).await.lease;
    store.done(signal(Recipient::Task(task), "2")).await;
    let turn = Turn { consumed: 1, ..one_event(lease, 1, PARK) };
    assert_eq!(turned(&store, turn).await.state, TaskState::Waiting);
}

/// Shows: D2
pub async fn a_turn_that_continues_gets_the_new_messages(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let lease = claim(&store, session).await.lease;
    store.done(signal(Recipient::Task(task), "2")).await;
    let turned = turned(&store, Turn { consumed: 1, ..one_event(lease, 1, AfterTurn::Continue) }).await;
    assert_eq!(turned.state, TaskState::Running);
    assert_eq!(turned.messages.iter().map(|message| &message.body).collect::<Vec<_>>(), [&paid("2")]);
}

/// Shows: D1
pub async fn the_end_of_a_submitted_task_comes_as_a_message(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(Write::Complete { lease, result: Some("ok".into()) }).await;
    let claimed = claim(&store, lease.session).await;
    assert_eq!(claimed.lease.task, task);
    let state = TaskState::Completed;
    let result = Some("ok".into());
    assert_eq!(messages(&claimed), [ended(lease.task, state, result, None)]);
}

/// Shows: D1
pub async fn completions_of_one_call_come_each_as_a_message(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let submits = (0..20).map(|reference| activity(lease.task, reference)).collect();
    turned(&store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    let tasks = store.claim(lease.session, 20).await;
    store.apply(tasks.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect()).await;
    let claimed = claim(&store, lease.session).await;
    let references = messages(&claimed).into_iter().map(|message| match message {
        MessageBody::Ended { reference, .. } => reference,
        other => panic!("another message: {other:?}"),
    });
    assert_eq!(references.collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
}

/// Shows: D9
pub async fn a_failed_task_reports_its_error(store: TestStore) {
    let (_, lease) = awaiting(&store).await;
    store.fail(lease, AfterFailure::Dead).await;
    let (state, error) = (TaskState::Dead, Some("oops".to_owned()));
    let claimed = claim(&store, lease.session).await;
    assert_eq!(messages(&claimed), [ended(lease.task, state, None, error)]);
}

/// Shows: D2
pub async fn a_retried_task_reports_nothing(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.fail(lease, AfterFailure::Retry { after: SECOND, uses_attempt: true, hold: false }).await;
    assert_eq!(store.state(task).await, TaskState::Blocked);
}

/// Shows: D9
pub async fn a_submitted_task_that_is_removed_counts_as_cancelled(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let submits = vec![activity(lease.task, 7)];
    let submitted = turned(&store, Turn { submits, ..one_event(lease, 0, PARK) }).await.submitted;
    let child = submitted[0].id();
    store.done(Write::Delete { task: child }).await;
    let (state, result, error) = (TaskState::Cancelled, None, None);
    let claimed = claim(&store, lease.session).await;
    assert_eq!(
        messages(&claimed),
        [MessageBody::Ended { reference: 7, task: child, state, result, error, attempts: 0, omitted: None }]
    );
}

/// Shows: D4
pub async fn a_rejected_task_is_reported(store: TestStore) {
    let existing = store.submit_new(NewTask { when: When::After(LEASE), ..keyed("a", OnDuplicate::Skip) }).await;
    let lease = store.running(task_is_orchestration("parent")).await;
    let child = NewTask { parent: Some(lease.task), report: Some(3), ..keyed("a", OnDuplicate::Reject) };
    let turned = turned(&store, Turn { submits: vec![child], ..one_event(lease, 0, PARK) }).await;
    assert_eq!(turned.submitted, [Submitted::Rejected { id: existing }]);
    assert_eq!(turned.state, TaskState::Waiting);
    let claimed = claim(&store, lease.session).await;
    assert_eq!(messages(&claimed), [MessageBody::NotStarted { reference: 3, existing }]);
}

fn task_is_orchestration(kind: &str) -> NewTask {
    NewTask { orchestration: true, ..task(kind) }
}

/// Shows: D9
pub async fn a_turn_from_another_history_is_refused_and_leaves_no_trace(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let submits = vec![activity(lease.task, 1)];
    let refusal = refused(&store, Turn { submits, ..one_event(lease, 3, PARK) }).await;
    assert_eq!(refusal, Refusal::HistoryMoved { task: lease.task, length: 0 });
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    assert_eq!(history(&store, lease.task, 0).await, []);
    assert_eq!(store.claim(lease.session, 1).await.len(), 0);
}

/// Shows: D9
pub async fn a_turn_under_a_lease_that_is_lost_changes_nothing(store: TestStore) {
    let lease = store.running(orchestration()).await;
    store.lapse().await;
    let submits = vec![activity(lease.task, 1)];
    let refusal = refused(&store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    assert!(matches!(refusal, Refusal::SessionLost(_) | Refusal::LeaseLost(_)), "{refusal}");
    assert_eq!(history(&store, lease.task, 0).await, []);
    let claimed = store.claim(store.session().await, 9).await;
    assert_eq!(claimed.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [lease.task]);
}

/// Shows: D9
pub async fn a_turn_that_submits_what_no_store_takes_is_refused_whole(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let payload = vec![0; store.payload_limit() + 1].into();
    let submits = vec![activity(lease.task, 1), NewTask { payload, ..activity(lease.task, 2) }];
    let refusal = refused(&store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    assert!(matches!(&refusal, Refusal::Invalid(text) if text.contains("payload")), "{refusal}");
    assert_eq!(store.claim(lease.session, 9).await.len(), 0);
}

/// Shows: D9
pub async fn a_turn_out_of_bounds_is_refused_with_the_remedy(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let turn = || one_event(lease, 0, PARK);
    let stranger = NewTask { parent: Some(TaskId(lease.task.0 + 1)), ..task("charge") };
    let wrong = [
        (Turn { consumed: 1, ..turn() }, "never arrived"),
        (Turn { events: 0, ..turn() }, "bytes without events"),
        (Turn { submits: vec![stranger], ..turn() }, "child of another"),
        (Turn { submits: vec![task("charge"); bounds::TURN_TASKS + 1], ..turn() }, "more than 10000 tasks"),
        (Turn { values: vec![(String::new(), None)], ..turn() }, "key is empty"),
    ];
    for (turn, expected) in wrong {
        let text = store.invalid(Write::Turn(Box::new(turn))).await;
        assert!(text.contains(expected), "{text}");
    }
}

/// Shows: D4
pub async fn a_turn_submits_as_many_tasks_as_it_may(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let kind = |number: usize| NewTask::new(format!("kind-{number}")).unwrap();
    let submits = (0..bounds::TURN_TASKS).map(|number| kind(number % 3)).collect();
    let turned = turned(&store, Turn { submits, ..one_event(lease, 0, AfterTurn::Continue) }).await;
    assert_eq!(turned.submitted.len(), bounds::TURN_TASKS);
    let submits = (0..bounds::KINDS).map(kind).collect();
    let text = store.invalid(Write::Turn(Box::new(Turn { submits, ..one_event(lease, 1, PARK) }))).await;
    assert!(text.contains("more than the store has room for"), "{text}");
    assert_eq!(history(&store, lease.task, 0).await.len(), 1);
}

/// Shows: D1
pub async fn an_orchestration_ends_with_a_result(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let result = Some("done".into());
    let turned = turned(&store, one_event(lease, 0, AfterTurn::Complete { result })).await;
    assert_eq!(turned.state, TaskState::Completed);
    let record = store.record(lease.task).await;
    assert_eq!(
        (record.state, record.attempts, record.result),
        (TaskState::Completed, 1, TaskResult::Value("done".into()))
    );
    assert_eq!(history(&store, lease.task, 0).await.len(), 1);
}

/// Shows: D9
pub async fn a_failed_orchestration_has_its_error(store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, one_event(lease, 0, AfterTurn::Fail { error: "no stock".into() })).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.errors[0].message.as_str()), (TaskState::Failed, "no stock"));
}

/// Shows: D4
pub async fn the_end_of_a_sub_orchestration_comes_as_a_message(store: TestStore) {
    let parent = store.running(task_is_orchestration("parent")).await;
    let child = NewTask { parent: Some(parent.task), report: Some(1), ..orchestration() };
    turned(&store, Turn { submits: vec![child], ..one_event(parent, 0, PARK) }).await;
    let child = store.claim_one(parent.session).await;
    turned(&store, one_event(child, 0, AfterTurn::Complete { result: None })).await;
    let claimed = claim(&store, parent.session).await;
    let ended = MessageBody::Ended {
        reference: 1,
        task: child.task,
        state: TaskState::Completed,
        result: None,
        error: None,
        attempts: 1,
        omitted: None,
    };
    assert_eq!((claimed.lease.task, messages(&claimed)), (parent.task, vec![ended]));
}

/// Shows: D4
pub async fn an_orchestration_that_fails_takes_its_tasks_with_it(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_one(lease.session).await;
    turned(&store, Turn { consumed: 1, ..one_event(turn, 1, AfterTurn::Fail { error: "enough".into() }) }).await;
    assert!(store.record(lease.task).await.cancel_requested);
}

/// Shows: D9
pub async fn a_dead_orchestration_keeps_its_tasks_and_resumes_when_it_is_retried(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_one(lease.session).await;
    turned(&store, Turn::new(turn, 1, AfterTurn::Dead { error: "another version of the code".into() })).await;
    assert_eq!(store.state(task).await, TaskState::Dead);
    store.done(Write::Complete { lease, result: None }).await;
    store.done(Write::Retry { task }).await;
    let claimed = claim(&store, lease.session).await;
    assert_eq!((messages(&claimed).len(), claimed.instance.unwrap().length), (2, 1));
}

/// Shows: D2
pub async fn a_turn_cancels_tasks_of_its_own(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let stranger = store.submit("stranger").await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_kinds_leases(lease.session, &["order"]).await.remove(0);
    let cancels = [lease.task, stranger, TaskId(999)].map(ChildTask::Task).into();
    turned(&store, Turn { cancels, ..one_event(turn, 1, PARK) }).await;
    assert!(store.record(lease.task).await.cancel_requested);
    assert_eq!(store.state(stranger).await, TaskState::Waiting);
}

/// Shows: D8
pub async fn a_started_orchestration_gets_a_message_of_its_cancel_request(store: TestStore) {
    let (task, session) = parked(&store).await;
    assert_eq!(store.write(Write::Cancel { task }).await, Outcome::CancelRequested);
    assert_eq!(store.write(Write::Cancel { task }).await, Outcome::CancelRequested);
    let claimed = claim(&store, session).await;
    assert_eq!(messages(&claimed), [MessageBody::Cancel]);
    let reason = "cleaned up".to_owned();
    turned(&store, Turn { consumed: 1, ..one_event(claimed.lease, 1, AfterTurn::Cancelled { reason }) }).await;
    assert_eq!(store.state(task).await, TaskState::Cancelled);
}

/// Shows: D8
pub async fn a_continued_orchestration_gets_a_message_of_its_cancel_request(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let lease = claim(&store, session).await.lease;
    let next = AfterTurn::ContinueAsNew { payload: Bytes::new(), events: 0, chunk: Bytes::new() };
    turned(&store, Turn { consumed: 1, ..one_event(lease, 1, next) }).await;
    assert_eq!(store.write(Write::Cancel { task }).await, Outcome::CancelRequested);
    let claimed = claim(&store, session).await;
    assert_eq!((messages(&claimed), claimed.instance.unwrap().generation), (vec![MessageBody::Cancel], 1));
}

/// Shows: D8
pub async fn an_unstarted_orchestration_is_cancelled_at_once(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    assert_eq!(store.write(Write::Cancel { task }).await, Outcome::Cancelled);
    assert_eq!(store.state(task).await, TaskState::Cancelled);
}

pub(super) fn terminate(task: TaskId) -> Write {
    Write::Terminate { task, reason: "enough".into() }
}

/// Shows: D8
pub async fn an_orchestration_is_terminated_without_a_turn(store: TestStore) {
    let (task, session) = parked(&store).await;
    assert_eq!(store.write(terminate(task)).await, Outcome::Cancelled);
    let record = store.record(task).await;
    assert_eq!((record.state, record.errors[0].message.as_str()), (TaskState::Cancelled, "enough"));
    assert_eq!(store.claim(session, 1).await, []);
}

/// Shows: D8
pub async fn a_turn_under_way_counts_for_nothing_once_its_orchestration_is_terminated(store: TestStore) {
    let lease = store.running(orchestration()).await;
    assert_eq!(store.write(terminate(lease.task)).await, Outcome::Cancelled);
    assert!(matches!(refused(&store, one_event(lease, 0, PARK)).await, Refusal::LeaseLost(_)));
    assert_eq!(store.state(lease.task).await, TaskState::Cancelled);
}

/// Shows: D8
pub async fn what_a_terminated_orchestration_waits_for_is_cancelled(store: TestStore) {
    let (task, activity) = awaiting(&store).await;
    store.write(terminate(task)).await;
    assert!(store.record(activity.task).await.cancel_requested);
}

/// Returns an orchestration whose key is kept for a minute after its end.
fn remembered(key: &str, on_duplicate: OnDuplicate) -> NewTask {
    let unique = Some(UniqueKey { key: key.into(), on_duplicate, keep_for: Duration::from_secs(60) });
    NewTask { unique, ..orchestration() }
}

/// Returns a write that terminates an orchestration and submits another in its place.
fn reset(task: TaskId, key: &str) -> Write {
    let terminate = Write::Terminate { task, reason: "it is reset".into() };
    Write::All(vec![terminate, Write::Submit(Box::new(remembered(key, OnDuplicate::TakeOver(task))))])
}

/// Shows: D8
pub async fn a_key_passes_to_the_successor_of_its_orchestration(store: TestStore) {
    let lease = store.running(remembered("A-17", OnDuplicate::Reject)).await;
    turned(&store, one_event(lease, 0, PARK)).await;
    let Outcome::All(outcomes) = store.write(reset(lease.task, "A-17")).await else { panic!("it should be reset") };
    let Some(Outcome::Submitted(Submitted::Inserted { id })) = outcomes.last() else { panic!("it should be started") };
    assert_eq!(store.state(lease.task).await, TaskState::Cancelled);
    let to = Recipient::Key { kind: name("order"), key: "A-17".into() };
    store.done(signal(to, "1999")).await;
    assert_eq!(store.inner().instance(*id).await.unwrap().unwrap().received, 1);
    assert_eq!(store.record(*id).await.keep_key_for, Duration::from_secs(60));
}

/// Shows: D8
pub async fn a_reserved_key_passes_from_the_named_orchestration(store: TestStore) {
    let lease = store.running(remembered("A-17", OnDuplicate::Reject)).await;
    turned(&store, one_event(lease, 0, AfterTurn::Complete { result: None })).await;
    let other = store.submit_new(orchestration()).await;
    let refused = store.refused(Write::Submit(Box::new(remembered("A-17", OnDuplicate::TakeOver(other))))).await;
    assert_eq!(refused, Refusal::KeyTaken { task: other, by: lease.task });
    let second = store.submit_new(remembered("A-17", OnDuplicate::TakeOver(lease.task))).await;
    let third = store.submitted(remembered("A-17", OnDuplicate::Reject)).await;
    assert_eq!(third, Submitted::Rejected { id: second });
}

/// Shows: D8
pub async fn nothing_ends_for_what_cannot_take_its_key(store: TestStore) {
    let lease = store.running(remembered("A-17", OnDuplicate::Reject)).await;
    let other = store.submitted(remembered("A-17", OnDuplicate::Supersede)).await.id();
    let refusal = store.refused(reset(lease.task, "A-17")).await;
    let taken = Box::new(Refusal::KeyTaken { task: lease.task, by: other });
    assert_eq!(refusal, Refusal::InAll { index: 1, refusal: taken });
    assert_eq!(store.state(lease.task).await, TaskState::Running);
}

/// Shows: D8
pub async fn only_an_orchestration_that_has_not_ended_is_terminated(store: TestStore) {
    let (ended, _) = parked(&store).await;
    store.write(terminate(ended)).await;
    assert!(matches!(store.refused(terminate(ended)).await, Refusal::AlreadyEnded { .. }));
    let plain = store.submit_new(task("charge")).await;
    assert_eq!(store.refused(terminate(plain)).await, Refusal::NotAnOrchestration(plain));
}

/// Shows: W7
pub async fn a_run_of_a_workflow_is_not_terminated(store: TestStore) {
    let waiting = store.submit_new(task_is_orchestration("run:shop")).await;
    let running = store.claim_one(store.session().await).await;
    assert_eq!(running.task, waiting);
    assert_eq!(store.refused(terminate(waiting)).await, Refusal::RunOfWorkflow(waiting));
    turned(&store, one_event(running, 0, PARK)).await;
    let refusal = store.refused(terminate(waiting)).await;
    assert!(refusal.to_string().contains(&format!("`onward workflow cancel {waiting}`")), "{refusal}");
    assert_eq!(store.state(waiting).await, TaskState::Blocked);
}

/// Shows: D8
pub async fn a_sub_orchestration_gets_a_message_when_its_parent_has_failed(store: TestStore) {
    let parent = store.running(task_is_orchestration("parent")).await;
    let child = NewTask { parent: Some(parent.task), ..orchestration() };
    turned(&store, Turn { submits: vec![child], ..one_event(parent, 0, AfterTurn::Continue) }).await;
    let child = store.claim_one(parent.session).await;
    turned(&store, one_event(child, 0, PARK)).await;
    turned(&store, one_event(parent, 1, AfterTurn::Fail { error: "enough".into() })).await;
    assert_eq!(messages(&claim(&store, parent.session).await), [MessageBody::Cancel]);
}

/// Shows: D4
pub async fn a_continued_orchestration_keeps_its_waiting_messages(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    store.done(signal(Recipient::Task(task), "2")).await;
    let lease = claim(&store, session).await.lease;
    let next = AfterTurn::ContinueAsNew { payload: "carried".into(), events: 0, chunk: Bytes::new() };
    let turn = Turn { consumed: 1, submits: vec![task_of("detached")], ..one_event(lease, 1, next) };
    assert_eq!(turned(&store, turn).await.state, TaskState::Waiting);
    assert_eq!(history(&store, task, 0).await, []);
    let claimed = store.claim_kinds_tasks(session, &["order"]).await.remove(0);
    let instance = claimed.instance.clone().unwrap();
    assert_eq!((instance.generation, instance.length, &claimed.payload[..]), (1, 0, &b"carried"[..]));
    assert_eq!(messages(&claimed), [paid("2")]);
    assert_eq!(store.claim_kinds(session, 9, &["detached"]).await.len(), 1);
}

/// Shows: D4
pub async fn a_continued_orchestration_starts_with_its_carried_events(store: TestStore) {
    let lease = store.running(orchestration()).await;
    turned(&store, one_event(lease, 0, AfterTurn::Continue)).await;
    let chunk = Bytes::from_static(b"carried");
    let next = AfterTurn::ContinueAsNew { payload: Bytes::new(), events: 2, chunk: chunk.clone() };
    turned(&store, one_event(lease, 1, next)).await;
    assert_eq!(history(&store, lease.task, 0).await, [HistoryChunk { first: 0, events: 2, chunk }]);
    let record = store.inner().instance(lease.task).await.unwrap().unwrap();
    assert_eq!((record.generation, record.length, record.bytes), (1, 2, 7));
}

/// Shows: D6
pub async fn an_orchestration_shows_its_status_and_values(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let values = vec![("step".into(), Some("1".into())), ("user".into(), Some("ada".into()))];
    let turn = Turn { status: Some("working".into()), values, ..one_event(lease, 0, AfterTurn::Continue) };
    turned(&store, turn).await;
    let values = vec![("step".into(), Some("2".into())), ("user".into(), None)];
    turned(&store, Turn { values, ..one_event(lease, 1, AfterTurn::Continue) }).await;
    let record = store.inner().instance(lease.task).await.unwrap().unwrap();
    assert_eq!((record.status, record.length, record.bytes), (Some("working".into()), 2, 10));
    assert_eq!(record.values.into_iter().collect::<Vec<_>>(), [("step".to_owned(), Bytes::from("2"))]);
}

/// Shows: D9
pub async fn lost_leases_count_from_the_last_turn(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    for length in 0..4 {
        store.start_one().await;
        store.lapse().await;
        let lease = store.start_one().await;
        turned(&store, one_event(lease, length, AfterTurn::Continue)).await;
        store.release(lease, Duration::ZERO).await;
    }
    assert_eq!(store.state(task).await, TaskState::Waiting);
}

/// Shows: D9
pub async fn an_orchestration_whose_key_is_taken_ends_with_its_turn(store: TestStore) {
    let lease = store.running(keyed("a", OnDuplicate::Skip)).await;
    turned(&store, one_event(lease, 0, AfterTurn::Continue)).await;
    let new = store.submitted(keyed("a", OnDuplicate::Supersede)).await.id();
    assert_eq!(turned(&store, one_event(lease, 1, PARK)).await.state, TaskState::Cancelled);
    assert_eq!(store.state(new).await, TaskState::Waiting);
}

/// Shows: D10
pub async fn a_removed_orchestration_leaves_no_history(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let values = vec![("step".into(), Some("1".into()))];
    let turn = Turn { values, ..one_event(lease, 0, AfterTurn::Complete { result: None }) };
    turned(&store, turn).await;
    store.done(Write::Delete { task: lease.task }).await;
    assert_eq!(history(&store, lease.task, 0).await, []);
    assert_eq!(store.inner().instance(lease.task).await.unwrap(), None);
}

/// Shows: D9
pub async fn a_full_mailbox_takes_no_more_signals(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    let signals = (0..bounds::MAILBOX).map(|_| signal(Recipient::Task(task), "1")).collect();
    let outcomes = store.apply(signals).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
    assert_eq!(store.refused(signal(Recipient::Task(task), "1")).await, Refusal::MailboxFull(task));
    let claimed = claim(&store, store.session().await).await;
    assert_eq!(claimed.instance.unwrap().messages.len(), bounds::TURN_MESSAGES);
}

/// Shows: D9
pub async fn a_claim_returns_no_more_bytes_than_a_turn_accepts(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    // The payload stays below the limit because some stores keep a few bytes more with it.
    let payload = Bytes::from(vec![b'x'; store.payload_limit() / 4 * 3]);
    let fit = bounds::TURN_MESSAGE_BYTES / payload.len();
    let signal = |_| Signal { to: Recipient::Task(task), name: name("paid"), payload: payload.clone() };
    for signal in (0..=fit).map(signal) {
        store.done(Write::Signal(Box::new(signal))).await;
    }
    let session = store.session().await;
    let claimed = claim(&store, session).await;
    assert_eq!(messages(&claimed).len(), fit.min(bounds::TURN_MESSAGES));
    let consumed = claimed.instance.as_ref().unwrap().messages.last().unwrap().number;
    let turned = turned(&store, Turn { consumed, ..one_event(claimed.lease, 0, PARK) }).await;
    assert_eq!(turned.state, TaskState::Waiting);
    assert_eq!(messages(&claim(&store, session).await).len(), 1);
}

/// Shows: D9
pub async fn an_orchestration_keeps_no_more_values_than_it_may(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let value = |number: usize| (number.to_string(), Some(Bytes::from_static(b"1")));
    let values = (0..bounds::VALUES).map(value).collect();
    turned(&store, Turn { values, ..one_event(lease, 0, AfterTurn::Continue) }).await;
    let one_more =
        |gone| Turn { values: vec![value(bounds::VALUES), gone], ..one_event(lease, 1, AfterTurn::Continue) };
    let text = store.invalid(Write::Turn(Box::new(one_more(value(0))))).await;
    assert!(text.contains("may keep 1000"), "{text}");
    turned(&store, one_more(("0".into(), None))).await;
    assert_eq!(store.inner().instance(lease.task).await.unwrap().unwrap().values.len(), bounds::VALUES);
}

pub(super) fn numbers(messages: &[Message]) -> Vec<u64> {
    messages.iter().map(|message| message.number).collect()
}

/// Shows: D3
pub async fn many_messages_are_delivered_in_order_over_several_turns(store: TestStore) {
    let task = store.submit_new(orchestration()).await;
    let send = || signal(Recipient::Task(task), "1");
    let (one, many) = (bounds::TURN_MESSAGES as u64, bounds::TURN_MESSAGES as u64 + 100);
    store.apply((0..many).map(|_| send()).collect()).await;
    let claimed = claim(&store, store.session().await).await;
    let lease = claimed.lease;
    assert_eq!(numbers(&claimed.instance.unwrap().messages), (1..=one).collect::<Vec<_>>());
    let next = turned(&store, Turn { consumed: 3, ..one_event(lease, 0, AfterTurn::Continue) }).await;
    assert_eq!(numbers(&next.messages), (4..=one + 3).collect::<Vec<_>>());
    // Messages also arrive in the call of the turn, before and after it.
    let turn = Turn { consumed: many, ..one_event(lease, 1, AfterTurn::Continue) };
    let outcomes = store.apply(vec![send(), Write::Turn(Box::new(turn)), send()]).await;
    let Outcome::Turned(next) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!(numbers(&next.messages), [many + 1]);
    let record = store.inner().instance(task).await.unwrap().unwrap();
    assert_eq!((record.received, record.waiting), (many + 2, 2));
    let park = Turn { consumed: many + 1, ..one_event(lease, 2, PARK) };
    assert_eq!(turned(&store, park).await.state, TaskState::Waiting);
    let claimed = claim(&store, lease.session).await;
    assert_eq!(numbers(&claimed.instance.unwrap().messages), [many + 2]);
}

/// Shows: D11
pub async fn what_waits_for_an_orchestration_survives_a_restart(mut store: TestStore) {
    let (task, _) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    store.reopen().await;
    let claimed = claim(&store, store.session().await).await;
    assert_eq!((messages(&claimed), claimed.instance.unwrap().length), (vec![paid("1")], 1));
    assert_eq!(history(&store, task, 0).await.len(), 1);
}

/// Shows: D11
pub async fn a_parked_orchestration_survives_a_restart(mut store: TestStore) {
    let (task, _) = parked(&store).await;
    store.reopen().await;
    assert_eq!(store.state(task).await, TaskState::Blocked);
    store.done(signal(Recipient::Task(task), "1")).await;
    assert_eq!(store.state(task).await, TaskState::Waiting);
}
