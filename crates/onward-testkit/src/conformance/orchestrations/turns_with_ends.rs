//! Ends of attempts that are written with the turn of the orchestration that submitted the task.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, AfterTurn, AttemptEnd, Change, ChildTask, EndWithTurn, Ended, InstanceRecord, Lease, LimitScope,
    NewTask, Outcome, OutputPiece, OutputStream, Rate, Recipient, Refusal, Scope, SessionId, SetLimit, StoreReads,
    TaskId, TaskResult, TaskState, Ttl, TtlFrom, Turn, Turned, Write,
};

use super::orchestration_turns::{
    MINUTE, PARK, SECOND, activity, awaiting, claim, messages, one_event, orchestration, signal, turned, why,
};
use crate::test_store::{TestStore, all_of, name, task};

/// Returns the lease of a turn that a store is to claim by itself.
fn unclaimed(orchestration: TaskId) -> Lease {
    Lease { task: orchestration, session: SessionId(0), claim: 0 }
}

/// Returns the completion of an attempt with the first turn after the first park.
fn completion(orchestration: TaskId, lease: Lease) -> EndWithTurn {
    let end = AttemptEnd::Complete { result: Some("ok".into()) };
    EndWithTurn { lease, end, turn: one_event(unclaimed(orchestration), 1, PARK), generation: 0, received: 0 }
}

fn write(end: EndWithTurn) -> Write {
    Write::EndWithTurn(Box::new(end))
}

fn ended_of(outcome: Outcome) -> Ended {
    match outcome {
        Outcome::Ended(ended) => ended,
        other => panic!("the attempt should have ended: {other:?}"),
    }
}

async fn end(store: &TestStore, end: EndWithTurn) -> Ended {
    ended_of(store.write(write(end)).await)
}

/// Ends an attempt whose turn is not written: the report waits for a claim.
async fn end_alone(store: &TestStore, with_turn: EndWithTurn) {
    let orchestration = with_turn.turn.lease.task;
    let length = instance(store, orchestration).await.length;
    let ended = end(store, with_turn).await;
    assert_eq!((ended.state, ended.turned), (TaskState::Completed, None));
    let instance = instance(store, orchestration).await;
    assert_eq!((instance.length, instance.waiting > 0), (length, true));
}

async fn instance(store: &TestStore, task: TaskId) -> InstanceRecord {
    store.inner().instance(task).await.unwrap().unwrap()
}

/// Returns an orchestration that is parked until all of its tasks have ended, and their leases.
async fn awaiting_many(store: &TestStore, tasks: u64) -> (TaskId, Vec<Lease>) {
    let lease = store.running(orchestration()).await;
    let submits = (0..tasks).map(|reference| activity(lease.task, reference)).collect();
    turned(store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    let tasks = store.claim(lease.session, 100).await;
    (lease.task, tasks.iter().map(|task| task.lease).collect())
}

/// Returns an orchestration of a kind that is parked until its task ends, and the task's lease.
async fn awaiting_of(store: &TestStore, new: NewTask, next: AfterTurn) -> (TaskId, Lease) {
    let lease = store.running(NewTask { orchestration: true, ..new }).await;
    turned(store, Turn { submits: vec![activity(lease.task, 7)], ..one_event(lease, 0, next) }).await;
    (lease.task, store.claim_one(lease.session).await)
}

/// Shows: D2
pub async fn an_end_is_written_with_the_turn_that_follows(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let submits = vec![activity(task, 8)];
    let turn = Turn { submits, ..one_event(unclaimed(task), 1, PARK) };
    let ended = end(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
    assert_eq!((ended.state, ended.lease), (TaskState::Completed, None));
    let Turned { state, submitted, messages, lease: turn } = ended.turned.unwrap();
    assert_eq!((state, submitted.len(), messages.len()), (TaskState::Blocked, 1, 0));
    assert_eq!((turn.task, turn.session, turn.claim), (task, lease.session, 2));
    assert_eq!(store.record(lease.task).await.result, TaskResult::Value("ok".into()));
    let instance = instance(&store, task).await;
    assert_eq!((instance.length, instance.received, instance.waiting), (2, 1, 0));
    assert_eq!(store.claim_one(lease.session).await.task, submitted[0].id());
}

/// Shows: D2
pub async fn an_end_with_a_turn_is_as_an_end_a_claim_and_a_turn(store: TestStore) {
    let (first, lease) = awaiting(&store).await;
    store.done(Write::Complete { lease, result: Some("ok".into()) }).await;
    let claimed = claim(&store, lease.session).await;
    turned(&store, Turn { consumed: 1, ..one_event(claimed.lease, 1, PARK) }).await;
    let (second, lease) = awaiting(&store).await;
    end(&store, completion(second, lease)).await;
    let changes = |task: TaskId, changes: &[(TaskId, Change)]| {
        changes.iter().filter(|(of, _)| *of == task).map(|(_, change)| *change).collect::<Vec<_>>()
    };
    let all = store.changes().await;
    assert_eq!(changes(second, &all), changes(first, &all));
    let record = |record: onward_store::TaskRecord| (record.state, record.attempts, record.session, record.started_at);
    assert_eq!(record(store.record(second).await), record(store.record(first).await));
    assert_eq!(instance(&store, second).await, instance(&store, first).await);
    assert_eq!(why(&store, second).await, why(&store, first).await);
}

/// Shows: D2
pub async fn a_claim_behind_an_end_with_a_turn_gets_what_the_turn_submitted(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = Turn { submits: vec![activity(task, 8)], ..one_event(unclaimed(task), 1, PARK) };
    let end = write(EndWithTurn { turn, ..completion(task, lease) });
    let mut outcomes = store.apply(vec![end, Write::Claim(all_of(lease.session, 9))]).await;
    let Some(Outcome::Claimed(claimed)) = outcomes.pop() else { panic!("the claim should have been answered") };
    let submitted = ended_of(outcomes.remove(0)).turned.unwrap().submitted[0].id();
    assert_eq!(claimed.tasks.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [submitted]);
}

/// Shows: D2
pub async fn output_that_is_the_result_is_stored_once_with_an_end_and_its_turn(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let saved = OutputPiece::new(OutputStream::Stdout, 0, "o");
    store.done(Write::AppendOutput { lease, piece: saved }).await;
    let append = Write::AppendOutput { lease, piece: OutputPiece::of_result(OutputStream::Stdout, 2) };
    let outcome = store.write(Write::All(vec![append, write(completion(task, lease))])).await;
    let Outcome::All(mut outcomes) = outcome else { panic!("both should have been applied: {outcome:?}") };
    assert!(ended_of(outcomes.pop().unwrap()).turned.is_some());
    let output = store.inner().task_output(lease.task, OutputStream::Stdout, 0, usize::MAX).await.unwrap().unwrap();
    let pieces: Vec<&[u8]> = output.pieces.iter().map(|piece| &piece.bytes[..]).collect();
    assert_eq!((pieces, output.cut), (vec![b"ok".as_slice()], 0));
}

/// Returns ends of one orchestration, each planned on those before it.
fn planned_on_each_other(task: TaskId, leases: &[Lease]) -> Vec<EndWithTurn> {
    let planned = |(before, lease): (u64, &Lease)| {
        let turn = one_event(unclaimed(task), 1 + before, PARK);
        EndWithTurn { turn, received: before, ..completion(task, *lease) }
    };
    (0..).zip(leases).map(planned).collect()
}

/// Shows: D2
pub async fn ends_of_one_call_are_planned_on_each_other(store: TestStore) {
    let (task, leases) = awaiting_many(&store, 5).await;
    let outcomes = store.apply(planned_on_each_other(task, &leases).into_iter().map(write).collect()).await;
    assert!(outcomes.into_iter().all(|outcome| ended_of(outcome).turned.is_some()));
    let instance = instance(&store, task).await;
    assert_eq!((instance.length, instance.received, instance.waiting), (6, 5, 0));
}

/// Shows: D2, D9
pub async fn an_end_planned_on_a_turn_that_is_not_written_leaves_its_own_out(store: TestStore) {
    let (task, leases) = awaiting_many(&store, 3).await;
    let mut ends = planned_on_each_other(task, &leases);
    ends[1].generation = 1;
    let outcomes = store.apply(ends.into_iter().map(write).collect()).await;
    let written: Vec<bool> = outcomes.into_iter().map(|outcome| ended_of(outcome).turned.is_some()).collect();
    assert_eq!(written, [true, false, false]);
    let claimed = claim(&store, leases[0].session).await;
    assert_eq!((claimed.lease.task, messages(&claimed).len()), (task, 2));
}

/// Shows: D2, D9
pub async fn an_end_is_alone_if_a_message_came_before_it(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    end_alone(&store, completion(task, lease)).await;
    assert_eq!(messages(&claim(&store, lease.session).await).len(), 2);
}

/// Shows: D2, D9
pub async fn an_end_is_alone_while_the_orchestration_has_a_turn(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let running = store.claim_one(lease.session).await;
    end_alone(&store, EndWithTurn { received: 1, ..completion(task, lease) }).await;
    turned(&store, Turn { consumed: 2, ..one_event(running, 1, PARK) }).await;
}

/// Shows: D2, D9
pub async fn an_end_is_alone_if_the_turn_was_planned_on_another_history(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = one_event(unclaimed(task), 2, PARK);
    end_alone(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
}

/// Shows: D2, D9
pub async fn an_end_is_alone_if_the_orchestration_started_again(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_one(lease.session).await;
    let next = AfterTurn::ContinueAsNew { payload: "".into(), events: 1, chunk: "new".into() };
    turned(&store, Turn { consumed: 1, ..one_event(turn, 1, next) }).await;
    let turn = store.claim_one(lease.session).await;
    turned(&store, Turn::new(turn, 1, PARK)).await;
    let planned = EndWithTurn { received: 1, ..completion(task, lease) };
    end_alone(&store, planned).await;
}

/// Shows: D2, D9
pub async fn an_end_in_the_generation_that_it_states_is_written_with_its_turn(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_one(lease.session).await;
    let next = AfterTurn::ContinueAsNew { payload: "".into(), events: 1, chunk: "new".into() };
    turned(&store, Turn { consumed: 1, ..one_event(turn, 1, next) }).await;
    let turn = store.claim_one(lease.session).await;
    turned(&store, Turn::new(turn, 1, PARK)).await;
    let planned = EndWithTurn { generation: 1, received: 1, ..completion(task, lease) };
    assert!(end(&store, planned).await.turned.is_some());
}

/// Shows: D2, D9
pub async fn an_end_is_alone_if_the_turn_is_that_of_another_orchestration(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let (other, _) = awaiting(&store).await;
    let planned = EndWithTurn { turn: one_event(unclaimed(other), 1, PARK), ..completion(task, lease) };
    assert_eq!(end(&store, planned).await.turned, None);
    assert_eq!((instance(&store, other).await.length, instance(&store, task).await.waiting), (1, 1));
}

/// Shows: D2, D9
pub async fn an_end_of_a_task_without_a_report_is_alone(store: TestStore) {
    let (task, _) = awaiting(&store).await;
    let lease = store.running(NewTask { parent: Some(task), ..crate::test_store::task("silent") }).await;
    let ended = end(&store, completion(task, lease)).await;
    assert_eq!((ended.state, ended.turned), (TaskState::Completed, None));
    assert_eq!(instance(&store, task).await.received, 0);
}

/// Shows: D3, D9
pub async fn an_end_is_alone_if_the_time_of_the_orchestration_has_come(store: TestStore) {
    let until = Some(store.now().plus(SECOND));
    let (task, lease) = awaiting_of(&store, task("order"), AfterTurn::Park { until }).await;
    store.advance(SECOND);
    end_alone(&store, completion(task, lease)).await;
}

/// Shows: D3
pub async fn an_end_before_the_time_of_the_orchestration_is_written_with_its_turn(store: TestStore) {
    let until = Some(store.now().plus(SECOND));
    let (task, lease) = awaiting_of(&store, task("order"), AfterTurn::Park { until }).await;
    let turn = one_event(unclaimed(task), 1, AfterTurn::Park { until });
    let ended = end(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
    assert_eq!(ended.turned.unwrap().state, TaskState::Scheduled);
    store.advance(SECOND);
    assert_eq!(store.claim_one(lease.session).await.task, task);
}

/// Shows: D8, D9
pub async fn an_end_is_alone_if_the_orchestration_is_paused(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(Write::PauseOrchestration { task }).await;
    end_alone(&store, completion(task, lease)).await;
    assert_eq!(store.state(task).await, TaskState::Blocked);
    store.done(Write::ResumeOrchestration { task }).await;
    assert_eq!(messages(&claim(&store, lease.session).await).len(), 1);
}

/// Shows: D9
pub async fn an_end_is_alone_if_a_pause_holds_the_orchestration_back(store: TestStore) {
    let grouped = NewTask { group: Some(name("tenant")), ..task("order") };
    let scopes = [Scope::All, Scope::Queue(name("default")), Scope::Kind(name("order")), Scope::Group(name("tenant"))];
    for scope in scopes {
        let (task, lease) = awaiting_of(&store, grouped.clone(), PARK).await;
        store.pause(scope.clone(), None).await;
        end_alone(&store, completion(task, lease)).await;
        assert_eq!(store.state(task).await, TaskState::Waiting);
        store.done(Write::Resume { scope }).await;
        assert_eq!(store.write(Write::Terminate { task, reason: "enough".into() }).await, Outcome::Cancelled);
    }
}

/// Shows: D9
pub async fn an_end_is_alone_if_a_limit_holds_the_orchestration_back(store: TestStore) {
    let grouped = NewTask { group: Some(name("tenant")), ..task("order") };
    let scopes = [
        LimitScope::All,
        LimitScope::Queue(name("default")),
        LimitScope::Kind(name("order")),
        LimitScope::Group(name("tenant")),
    ];
    for scope in scopes {
        let (task, lease) = awaiting_of(&store, grouped.clone(), PARK).await;
        let other = store.running(grouped.clone()).await;
        limit(&store, SetLimit::new(scope.clone()).concurrency(1)).await;
        end_alone(&store, completion(task, lease)).await;
        limit(&store, SetLimit::new(scope).unlimited()).await;
        store.complete(other).await;
        assert_eq!(store.write(Write::Terminate { task, reason: "enough".into() }).await, Outcome::Cancelled);
    }
}

async fn limit(store: &TestStore, set: SetLimit) {
    let outcome = store.write(Write::SetLimit(set)).await;
    assert!(matches!(outcome, Outcome::LimitSet(_)), "{outcome:?}");
}

/// Shows: D9
pub async fn the_room_that_an_end_makes_is_enough_for_its_turn(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    limit(&store, SetLimit::new(LimitScope::All).concurrency(1)).await;
    assert!(end(&store, completion(task, lease)).await.turned.is_some());
    store.submit("charge").await;
    assert_eq!(store.claim(lease.session, 9).await.len(), 1);
}

/// Shows: D9
pub async fn a_turn_with_an_end_takes_a_token(store: TestStore) {
    let (task, leases) = awaiting_many(&store, 3).await;
    let rate = Rate { tasks: 1, per: MINUTE, burst: 2 };
    limit(&store, SetLimit::new(LimitScope::Kind(name("order"))).rate(rate)).await;
    let outcomes = store.apply(planned_on_each_other(task, &leases).into_iter().map(write).collect()).await;
    let written: Vec<bool> = outcomes.into_iter().map(|outcome| ended_of(outcome).turned.is_some()).collect();
    assert_eq!(written, [true, true, false]);
    assert_eq!(store.claim(leases[0].session, 1).await, []);
    store.advance(MINUTE);
    let session = store.session().await;
    assert_eq!(store.claim_one(session).await.task, task);
}

/// Shows: D9, Q12
pub async fn an_end_is_alone_if_the_orchestration_is_reserved_for_another_session(store: TestStore) {
    let (task, first) = awaiting_of(&store, NewTask { affinity: Some(name("a")), ..task("order") }, PARK).await;
    store.release(first, Duration::ZERO).await;
    let lease = store.claim_one(store.session().await).await;
    end_alone(&store, completion(task, lease)).await;
    assert_eq!(store.claim_one(first.session).await.task, task);
}

/// Shows: D2, Q12
pub async fn a_turn_with_an_end_is_the_latest_start_of_its_affinity_key(store: TestStore) {
    let affine = NewTask { affinity: Some(name("a")), ..task("order") };
    let (task, first) = awaiting_of(&store, affine.clone(), PARK).await;
    store.release(first, Duration::ZERO).await;
    let lease = store.claim_one(store.session().await).await;
    store.done(Write::Retire { session: first.session }).await;
    assert!(end(&store, completion(task, lease)).await.turned.is_some());
    let next = store.submit_new(affine).await;
    assert_eq!(store.claim(first.session, 9).await, []);
    assert_eq!(store.claim_one(lease.session).await.task, next);
}

/// Shows: D9
pub async fn an_end_is_alone_if_the_orchestration_has_expired(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::FirstAttempt });
    let (task, lease) = awaiting_of(&store, NewTask { ttl, ..task("order") }, PARK).await;
    store.advance(SECOND);
    let ended = end(&store, completion(task, lease)).await;
    assert_eq!((ended.state, ended.turned), (TaskState::Completed, None));
}

/// Shows: D9
pub async fn nothing_happens_under_a_lease_that_is_lost(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.lapse().await;
    let refusal = store.refused(write(completion(task, lease))).await;
    assert!(matches!(refusal, Refusal::SessionLost(_) | Refusal::LeaseLost(_)), "{refusal}");
    let instance = instance(&store, task).await;
    assert_eq!((instance.length, instance.received), (1, 0));
    assert_eq!((store.state(task).await, store.state(lease.task).await), (TaskState::Blocked, TaskState::Waiting));
}

/// Shows: D9
pub async fn an_end_that_is_refused_for_its_result_leaves_its_turn_out(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let result = Some(vec![0; store.payload_limit() + 1].into());
    let text = store.invalid(write(EndWithTurn { end: AttemptEnd::Complete { result }, ..completion(task, lease) }));
    assert!(text.await.contains("result"));
    assert_eq!((store.state(task).await, store.state(lease.task).await), (TaskState::Blocked, TaskState::Running));
}

/// Shows: D2
pub async fn an_attempt_that_is_tried_again_ends_without_the_turn(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    for hold in [true, false] {
        let next = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold };
        let end_of = AttemptEnd::Fail { error: "oops".into(), next };
        let lease = if hold { lease } else { Lease { claim: lease.claim + 1, ..lease } };
        let ended = end(&store, EndWithTurn { end: end_of, ..completion(task, lease) }).await;
        assert_eq!((ended.lease.is_some(), ended.turned), (hold, None));
        assert_eq!((instance(&store, task).await.received, store.state(task).await), (0, TaskState::Blocked));
    }
}

/// Shows: D9
pub async fn a_bad_end_is_written_with_the_turn_that_follows(store: TestStore) {
    let ends = [
        (AttemptEnd::Fail { error: "oops".into(), next: AfterFailure::Dead }, TaskState::Dead),
        (AttemptEnd::Fail { error: "oops".into(), next: AfterFailure::Fail }, TaskState::Failed),
        (AttemptEnd::ConfirmCancel { reason: "stopped".into() }, TaskState::Cancelled),
    ];
    for (end_of, state) in ends {
        let (task, lease) = awaiting(&store).await;
        let ended = end(&store, EndWithTurn { end: end_of, ..completion(task, lease) }).await;
        assert_eq!((ended.state, ended.turned.is_some()), (state, true));
        assert_eq!(store.state(lease.task).await, state);
    }
}

/// Shows: D9
pub async fn an_end_is_alone_if_its_turn_would_be_refused(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let payload = vec![0; store.payload_limit() + 1].into();
    let submits = vec![activity(task, 8), NewTask { payload, ..activity(task, 9) }];
    let turn = Turn { submits, ..one_event(unclaimed(task), 1, PARK) };
    end_alone(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
    let claimed = store.claim(lease.session, 9).await;
    assert_eq!(claimed.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [task]);
}

/// Shows: D1
pub async fn a_turn_with_an_end_may_end_the_orchestration(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = one_event(unclaimed(task), 1, AfterTurn::Complete { result: Some("done".into()) });
    let ended = end(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
    assert_eq!(ended.turned.unwrap().state, TaskState::Completed);
    let record = store.record(task).await;
    assert_eq!((record.state, record.result), (TaskState::Completed, TaskResult::Value("done".into())));
}

/// Shows: D2
pub async fn a_turn_with_an_end_may_keep_the_orchestration(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = one_event(unclaimed(task), 1, AfterTurn::Continue);
    let kept = end(&store, EndWithTurn { turn, ..completion(task, lease) }).await.turned.unwrap();
    assert_eq!((kept.state, kept.lease.session), (TaskState::Running, lease.session));
    assert_eq!(turned(&store, one_event(kept.lease, 2, PARK)).await.state, TaskState::Blocked);
}

/// Shows: D4
pub async fn a_message_of_the_turn_itself_waits_behind_it(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = Turn {
        cancels: vec![ChildTask::Reference(8)],
        submits: vec![activity(task, 8)],
        ..one_event(unclaimed(task), 1, PARK)
    };
    let turned = end(&store, EndWithTurn { turn, ..completion(task, lease) }).await.turned.unwrap();
    assert_eq!(turned.state, TaskState::Waiting);
    let claimed = claim(&store, lease.session).await;
    assert_eq!((claimed.lease.task, messages(&claimed).len()), (task, 1));
}

/// Shows: D2
pub async fn a_turn_with_an_end_is_a_member_of_an_all(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let items = vec![write(completion(task, lease)), Write::Cancel { task: TaskId(999) }];
    assert!(matches!(store.refused(Write::All(items)).await, Refusal::InAll { index: 1, .. }));
    assert_eq!((store.state(lease.task).await, instance(&store, task).await.length), (TaskState::Running, 1));
    let items = Write::All(vec![write(completion(task, lease))]);
    let Outcome::All(mut outcomes) = store.write(items).await else { panic!("it should have been applied") };
    assert!(ended_of(outcomes.remove(0)).turned.is_some());
}

/// Shows: D6
pub async fn a_turn_with_an_end_survives_a_restart(mut store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = Turn { submits: vec![activity(task, 8)], ..one_event(unclaimed(task), 1, PARK) };
    end(&store, EndWithTurn { turn, ..completion(task, lease) }).await;
    store.reopen().await;
    let instance = instance(&store, task).await;
    assert_eq!((instance.length, instance.received, instance.waiting), (2, 1, 0));
    assert_eq!(store.state(task).await, TaskState::Blocked);
    let next = store.claim_one(store.session().await).await;
    store.complete(next).await;
    assert_eq!(messages(&claim(&store, next.session).await).len(), 1);
}
