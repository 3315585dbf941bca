//! Ends of orchestrations for which messages wait.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use onward_store::{
    AfterTurn, Lease, NewTask, OnDuplicate, Recipient, Refusal, StoreReads, TaskId, TaskState, Turn, When, Write,
};

use super::orchestration_turns::{
    MINUTE, activity, awaiting, claim, keyed, messages, numbers, one_event, orchestration, paid, parked, refused,
    signal, terminate, turned,
};
use crate::test_store::{TestStore, name};

async fn waiting(store: &TestStore, task: TaskId) -> u64 {
    store.inner().instance(task).await.unwrap().unwrap().waiting
}

/// Returns the ways in which the code of an orchestration ends.
fn ends() -> [(AfterTurn, TaskState); 3] {
    [
        (AfterTurn::Complete { result: None }, TaskState::Completed),
        (AfterTurn::Fail { error: "enough".into() }, TaskState::Failed),
        (AfterTurn::Cancelled { reason: "cleaned up".into() }, TaskState::Cancelled),
    ]
}

/// Starts a turn of an orchestration with one signal. A second signal arrives during the turn.
async fn behind(store: &TestStore) -> Lease {
    let (task, session) = parked(store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let lease = store.claim_one(session).await;
    store.done(signal(Recipient::Task(task), "2")).await;
    lease
}

/// Shows: D3
pub async fn an_end_is_refused_while_messages_wait_that_were_not_offered(store: TestStore) {
    for (end, _) in ends() {
        let lease = behind(&store).await;
        let refusal = refused(&store, Turn { consumed: 1, ..one_event(lease, 1, end) }).await;
        assert_eq!(refusal, Refusal::Unread { task: lease.task, waiting: 1 });
        let record = store.inner().instance(lease.task).await.unwrap().unwrap();
        assert_eq!((record.length, record.waiting, store.state(lease.task).await), (1, 2, TaskState::Running));
    }
}

/// Shows: D3
pub async fn an_end_is_refused_for_a_message_that_came_before_an_earlier_part_of_the_turn(store: TestStore) {
    let lease = behind(&store).await;
    turned(&store, Turn { consumed: 1, ..one_event(lease, 1, AfterTurn::Continue) }).await;
    let refusal = refused(&store, one_event(lease, 2, AfterTurn::Complete { result: None })).await;
    assert_eq!(refusal, Refusal::Unread { task: lease.task, waiting: 1 });
}

/// Shows: D3
pub async fn an_end_is_written_once_every_message_was_offered(store: TestStore) {
    for (end, state) in ends() {
        let lease = behind(&store).await;
        let offered = Turn { consumed: 1, ..one_event(lease, 1, AfterTurn::Continue) };
        assert_eq!(numbers(&turned(&store, offered).await.messages), [2]);
        let end = Turn { consumed: 2, ..one_event(lease, 2, end) };
        assert_eq!(turned(&store, end).await.state, state);
        assert_eq!(waiting(&store, lease.task).await, 0);
    }
}

/// Shows: D3
pub async fn an_end_that_leaves_messages_unread_keeps_them(mut store: TestStore) {
    let mut ended = Vec::new();
    for (end, state) in ends() {
        let lease = behind(&store).await;
        let end = Turn { consumed: 1, leaves_unread: true, ..one_event(lease, 1, end) };
        assert_eq!(turned(&store, end).await.state, state);
        ended.push(lease.task);
    }
    store.reopen().await;
    for task in ended {
        assert_eq!(waiting(&store, task).await, 1);
    }
}

/// Shows: D9
pub async fn an_ended_orchestration_gets_no_more_messages(store: TestStore) {
    let (task, activity) = awaiting(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    let turn = store.claim_one(activity.session).await;
    turned(&store, Turn { consumed: 1, ..one_event(turn, 1, AfterTurn::Complete { result: None }) }).await;
    store.done(Write::Complete { lease: activity, result: None }).await;
    assert_eq!(waiting(&store, task).await, 0);
}

/// Shows: D9
pub async fn the_reports_of_what_an_end_cancels_are_not_unread(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let submits = vec![NewTask { when: When::After(MINUTE), ..activity(lease.task, 7) }];
    let child = turned(&store, Turn { submits, ..one_event(lease, 0, AfterTurn::Continue) }).await.submitted[0].id();
    let end = Turn { cancels: vec![child.into()], ..one_event(lease, 1, AfterTurn::Complete { result: None }) };
    assert_eq!(turned(&store, end).await.state, TaskState::Completed);
    assert_eq!((store.state(child).await, waiting(&store, lease.task).await), (TaskState::Cancelled, 0));
}

/// Shows: D9
pub async fn a_failed_orchestration_that_is_retried_has_its_mailbox(mut store: TestStore) {
    let lease = behind(&store).await;
    let failed = AfterTurn::Fail { error: "enough".into() };
    turned(&store, Turn { consumed: 1, leaves_unread: true, ..one_event(lease, 1, failed) }).await;
    store.reopen().await;
    store.done(Write::Retry { task: lease.task }).await;
    let claimed = claim(&store, store.session().await).await;
    assert_eq!((messages(&claimed), claimed.instance.unwrap().length), (vec![paid("2")], 2));
}

/// Shows: D8
pub async fn a_terminated_orchestration_keeps_what_it_did_not_read(store: TestStore) {
    let (task, _) = parked(&store).await;
    store.done(signal(Recipient::Task(task), "1")).await;
    store.write(terminate(task)).await;
    assert_eq!(waiting(&store, task).await, 1);
}

/// Shows: D3
pub async fn a_signal_and_a_start_after_the_end_begin_the_next_orchestration_of_the_key(store: TestStore) {
    let first = store.running(keyed("a", OnDuplicate::Skip)).await;
    turned(&store, one_event(first, 0, AfterTurn::Complete { result: None })).await;
    let to = Recipient::Key { kind: name("order"), key: "a".into() };
    let start = Write::Submit(Box::new(keyed("a", OnDuplicate::Skip)));
    store.write(Write::All(vec![start, signal(to, "1")])).await;
    let claimed = claim(&store, first.session).await;
    assert_eq!((claimed.lease.task != first.task, messages(&claimed)), (true, vec![paid("1")]));
}
