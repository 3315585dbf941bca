//! Several writes applied as one.

use std::time::Duration;

use onward_store::{
    AfterFailure, Hint, OnDuplicate, OpenSession, Outcome, Prune, Refusal, Scope, SessionId, StoreReads, Submitted,
    TaskId, TaskState, Write,
};

use crate::test_store::{TestStore, all_of, keyed, name, task};

fn submit() -> Write {
    Write::Submit(Box::new(task("k")))
}

/// Returns a write that the store rejects at every position.
fn refused() -> Write {
    Write::Cancel { task: TaskId(999) }
}

fn refusal(index: usize) -> Refusal {
    Refusal::InAll { index, refusal: Box::new(Refusal::TaskNotFound(TaskId(999))) }
}

pub async fn the_writes_of_an_all_are_applied_in_order(store: TestStore) {
    let cancel = Write::Cancel { task: TaskId(1) };
    let inserted = |id| Outcome::Submitted(Submitted::Inserted { id: TaskId(id) });
    let outcome = store.write(Write::All(vec![submit(), cancel, submit()])).await;
    assert_eq!(outcome, Outcome::All(vec![inserted(1), Outcome::Cancelled, inserted(2)]));
}

pub async fn an_all_without_writes_is_applied(store: TestStore) {
    assert_eq!(store.write(Write::All(vec![])).await, Outcome::All(vec![]));
}

/// Shows: T1
pub async fn a_refused_write_of_an_all_undoes_all_submissions(store: TestStore) {
    assert_eq!(store.refused(Write::All(vec![submit(), submit(), refused()])).await, refusal(2));
    assert_eq!(store.list(Default::default()).await, []);
    assert_eq!(store.queue("default").await, None);
}

/// Shows: T1
pub async fn a_submit_that_cannot_take_its_key_over_undoes_the_submissions_before_it(store: TestStore) {
    let holder = Write::Submit(Box::new(keyed("a", OnDuplicate::Skip)));
    let taker = Write::Submit(Box::new(keyed("a", OnDuplicate::TakeOver(TaskId(1)))));
    let refusal = store.refused(Write::All(vec![holder, taker])).await;
    assert!(matches!(refusal, Refusal::InAll { index: 1, .. }), "{refusal:?}");
    assert_eq!(store.list(Default::default()).await, []);
}

pub async fn a_refused_write_of_an_all_stops_those_behind_it(store: TestStore) {
    assert_eq!(store.refused(Write::All(vec![refused(), submit()])).await, refusal(0));
    assert_eq!(store.list(Default::default()).await, []);
}

pub async fn a_refused_write_of_an_all_undoes_a_completion(store: TestStore) {
    let lease = store.running(task("k")).await;
    let before = store.record(lease.task).await;
    let complete = Write::Complete { lease, result: Some("no".into()) };
    assert_eq!(store.refused(Write::All(vec![complete, refused()])).await, refusal(1));
    assert_eq!(store.record(lease.task).await, before);
    assert_eq!(store.inner().statistics().await.ok(), Some(vec![]));
    store.complete(lease).await;
}

pub async fn a_refused_write_of_an_all_undoes_a_claim(store: TestStore) {
    let id = store.submit("k").await;
    let session = store.session().await;
    store.refused(Write::All(vec![Write::Claim(all_of(session, 1)), refused()])).await;
    assert_eq!((store.state(id).await, store.record(id).await.attempts), (TaskState::Waiting, 0));
    assert_eq!(store.claim_one(session).await.claim, 1);
}

pub async fn a_refused_write_of_an_all_undoes_a_failure(store: TestStore) {
    let lease = store.running(task("k")).await;
    let fail = Write::Fail { lease, error: "no".into(), next: AfterFailure::Dead };
    store.refused(Write::All(vec![fail, refused()])).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.errors), (TaskState::Running, vec![]));
}

pub async fn a_refused_write_of_an_all_undoes_a_key(store: TestStore) {
    let submit = Write::Submit(Box::new(keyed("a", OnDuplicate::Skip)));
    store.refused(Write::All(vec![submit, refused()])).await;
    store.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

pub async fn a_refused_write_of_an_all_undoes_a_supersession(store: TestStore) {
    let old = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    let supersede = Write::Submit(Box::new(keyed("a", OnDuplicate::Supersede)));
    store.refused(Write::All(vec![supersede, refused()])).await;
    assert_eq!(store.list(Default::default()).await, [old]);
    assert_eq!(store.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id: old });
}

pub async fn a_refused_write_of_an_all_undoes_what_follows(store: TestStore) {
    let lease = store.running(keyed("a", OnDuplicate::Requeue)).await;
    let requeue = Write::Submit(Box::new(keyed("a", OnDuplicate::Requeue)));
    store.refused(Write::All(vec![requeue, refused()])).await;
    store.complete(lease).await;
    assert_eq!(store.list(Default::default()).await, [lease.task]);
}

pub async fn a_refused_write_of_an_all_undoes_a_purge_and_a_prune(store: TestStore) {
    let waiting = store.submit("k").await;
    let cancelled = store.submit("k").await;
    store.cancel(cancelled).await;
    let purge = Write::Purge { queue: name("default"), states: vec![TaskState::Waiting], limit: 9 };
    let prune = Write::Prune(Prune { keep: Some(0), older_than: None, limit: 9 });
    store.refused(Write::All(vec![purge, prune, refused()])).await;
    assert_eq!(store.list(Default::default()).await, [cancelled, waiting]);
}

pub async fn a_refused_write_of_an_all_undoes_pauses_and_sessions(store: TestStore) {
    let open = Write::OpenSession(OpenSession::new("w", Duration::from_secs(1)));
    let pause = Write::Pause { scope: Scope::All, until: None };
    store.refused(Write::All(vec![open, pause, refused()])).await;
    assert_eq!(store.inner().sessions().await.ok(), Some(vec![]));
    assert_eq!(store.inner().pauses().await.ok(), Some(vec![]));
}

pub async fn a_refused_write_of_an_all_undoes_a_sweep(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(Duration::from_secs(60));
    store.refused(Write::All(vec![Write::Sweep, refused()])).await;
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    store.complete(lease).await;
}

pub async fn a_refused_write_of_an_all_leaves_no_events(store: TestStore) {
    let id = store.submit("k").await;
    let before = store.events().await;
    store.refused(Write::All(vec![Write::Cancel { task: id }, submit(), refused()])).await;
    assert_eq!(store.events().await, before);
}

pub async fn a_refused_all_disturbs_no_neighbour(store: TestStore) {
    let outcomes = store.apply(vec![submit(), Write::All(vec![submit(), refused()]), submit()]).await;
    assert_eq!(outcomes[1], Outcome::Refused(refusal(1)));
    assert_eq!(store.list(Default::default()).await, [TaskId(2), TaskId(1)]);
}

pub async fn a_refused_all_hints_nothing(store: TestStore) {
    let mut changes = store.inner().changes();
    let before: Hint = changes.hint();
    store.refused(Write::All(vec![submit(), refused()])).await;
    assert_eq!(changes.hint(), before);
}

pub async fn an_all_within_an_all_is_refused(store: TestStore) {
    store.invalid(Write::All(vec![submit(), Write::All(vec![submit()])])).await;
    assert_eq!(store.list(Default::default()).await, []);
}

pub async fn an_all_of_too_many_writes_is_refused(store: TestStore) {
    let writes = vec![Write::Resume { scope: Scope::All }; 100_001];
    let text = store.invalid(Write::All(writes)).await;
    assert!(text.contains("100000"), "{text}");
}

pub async fn a_completion_a_submission_and_a_claim_are_one(store: TestStore) {
    let lease = store.running(task("k")).await;
    let complete = Write::Complete { lease, result: None };
    let all = Write::All(vec![complete, submit(), Write::Claim(all_of(lease.session, 1))]);
    let Outcome::All(outcomes) = store.write(all).await else { unreachable!("nothing refuses") };
    assert!(matches!(&outcomes[2], Outcome::Claimed(claimed) if claimed.tasks[0].lease.task == TaskId(2)));
}

pub async fn a_claim_by_a_lost_session_undoes_all(store: TestStore) {
    let session = SessionId(9);
    let refusal = store.refused(Write::All(vec![submit(), Write::Claim(all_of(session, 1))])).await;
    assert_eq!(refusal, Refusal::InAll { index: 1, refusal: Box::new(Refusal::SessionLost(session)) });
    assert_eq!(store.list(Default::default()).await, []);
}
