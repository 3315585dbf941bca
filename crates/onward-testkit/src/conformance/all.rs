//! Several writes applied as one.

use std::time::Duration;

use onward_store::{
    AfterFailure, Hint, OnDuplicate, OpenSession, Outcome, Prune, Refusal, Scope, SessionId, StoreReads, Submitted,
    TaskId, TaskState, Write,
};

use crate::bench::{Bench, all_of, keyed, name, task};

fn submit() -> Write {
    Write::Submit(Box::new(task("k")))
}

/// Returns a write that the store rejects at every position.
fn refused() -> Write {
    Write::Cancel { task: TaskId(999) }
}

fn refusal(index: usize) -> Refusal {
    Refusal::Member { index, refusal: Box::new(Refusal::TaskNotFound(TaskId(999))) }
}

pub async fn all_members_are_done_in_order(bench: Bench) {
    let cancel = Write::Cancel { task: TaskId(1) };
    let inserted = |id| Outcome::Submitted(Submitted::Inserted { id: TaskId(id) });
    let outcome = bench.write(Write::All(vec![submit(), cancel, submit()])).await;
    assert_eq!(outcome, Outcome::All(vec![inserted(1), Outcome::Cancelled, inserted(2)]));
}

pub async fn no_members_are_all_done(bench: Bench) {
    assert_eq!(bench.write(Write::All(vec![])).await, Outcome::All(vec![]));
}

/// Shows: T1
pub async fn a_refused_member_undoes_all_submissions(bench: Bench) {
    assert_eq!(bench.refused(Write::All(vec![submit(), submit(), refused()])).await, refusal(2));
    assert_eq!(bench.list(Default::default()).await, []);
    assert_eq!(bench.queue("default").await, None);
}

/// Shows: T1
pub async fn a_submit_that_cannot_take_its_key_over_undoes_the_submissions_before_it(bench: Bench) {
    let holder = Write::Submit(Box::new(keyed("a", OnDuplicate::Skip)));
    let taker = Write::Submit(Box::new(keyed("a", OnDuplicate::TakeOver(TaskId(1)))));
    let refusal = bench.refused(Write::All(vec![holder, taker])).await;
    assert!(matches!(refusal, Refusal::Member { index: 1, .. }), "{refusal:?}");
    assert_eq!(bench.list(Default::default()).await, []);
}

pub async fn a_refused_member_stops_those_behind_it(bench: Bench) {
    assert_eq!(bench.refused(Write::All(vec![refused(), submit()])).await, refusal(0));
    assert_eq!(bench.list(Default::default()).await, []);
}

pub async fn a_refused_member_undoes_a_completion(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let before = bench.record(lease.task).await;
    let complete = Write::Complete { lease, result: Some("no".into()) };
    assert_eq!(bench.refused(Write::All(vec![complete, refused()])).await, refusal(1));
    assert_eq!(bench.record(lease.task).await, before);
    assert_eq!(bench.store().statistics().await.ok(), Some(vec![]));
    bench.complete(lease).await;
}

pub async fn a_refused_member_undoes_a_claim(bench: Bench) {
    let id = bench.submit("k").await;
    let session = bench.session().await;
    bench.refused(Write::All(vec![Write::Claim(all_of(session, 1)), refused()])).await;
    assert_eq!((bench.state(id).await, bench.record(id).await.attempts), (TaskState::Waiting, 0));
    assert_eq!(bench.claim_one(session).await.claim, 1);
}

pub async fn a_refused_member_undoes_a_failure(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let fail = Write::Fail { lease, error: "no".into(), next: AfterFailure::Dead };
    bench.refused(Write::All(vec![fail, refused()])).await;
    let record = bench.record(lease.task).await;
    assert_eq!((record.state, record.errors), (TaskState::Running, vec![]));
}

pub async fn a_refused_member_undoes_a_key(bench: Bench) {
    let submit = Write::Submit(Box::new(keyed("a", OnDuplicate::Skip)));
    bench.refused(Write::All(vec![submit, refused()])).await;
    bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

pub async fn a_refused_member_undoes_a_supersession(bench: Bench) {
    let old = bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    let supersede = Write::Submit(Box::new(keyed("a", OnDuplicate::Supersede)));
    bench.refused(Write::All(vec![supersede, refused()])).await;
    assert_eq!(bench.list(Default::default()).await, [old]);
    assert_eq!(bench.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id: old });
}

pub async fn a_refused_member_undoes_what_follows(bench: Bench) {
    let lease = bench.running(keyed("a", OnDuplicate::Requeue)).await;
    let requeue = Write::Submit(Box::new(keyed("a", OnDuplicate::Requeue)));
    bench.refused(Write::All(vec![requeue, refused()])).await;
    bench.complete(lease).await;
    assert_eq!(bench.list(Default::default()).await, [lease.task]);
}

pub async fn a_refused_member_undoes_a_purge_and_a_prune(bench: Bench) {
    let waiting = bench.submit("k").await;
    let cancelled = bench.submit("k").await;
    bench.cancel(cancelled).await;
    let purge = Write::Purge { queue: name("default"), states: vec![TaskState::Waiting], limit: 9 };
    let prune = Write::Prune(Prune { keep: Some(0), older_than: None, limit: 9 });
    bench.refused(Write::All(vec![purge, prune, refused()])).await;
    assert_eq!(bench.list(Default::default()).await, [cancelled, waiting]);
}

pub async fn a_refused_member_undoes_pauses_and_sessions(bench: Bench) {
    let open = Write::OpenSession(OpenSession::new("w", Duration::from_secs(1)));
    let pause = Write::Pause { scope: Scope::All, until: None };
    bench.refused(Write::All(vec![open, pause, refused()])).await;
    assert_eq!(bench.store().sessions().await.ok(), Some(vec![]));
    assert_eq!(bench.store().pauses().await.ok(), Some(vec![]));
}

pub async fn a_refused_member_undoes_a_sweep(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.advance(Duration::from_secs(60));
    bench.refused(Write::All(vec![Write::Sweep, refused()])).await;
    assert_eq!(bench.state(lease.task).await, TaskState::Running);
    bench.complete(lease).await;
}

pub async fn a_refused_member_tells_no_events(bench: Bench) {
    let id = bench.submit("k").await;
    let before = bench.events().await;
    bench.refused(Write::All(vec![Write::Cancel { task: id }, submit(), refused()])).await;
    assert_eq!(bench.events().await, before);
}

pub async fn a_refused_all_disturbs_no_neighbour(bench: Bench) {
    let outcomes = bench.apply(vec![submit(), Write::All(vec![submit(), refused()]), submit()]).await;
    assert_eq!(outcomes[1], Outcome::Refused(refusal(1)));
    assert_eq!(bench.list(Default::default()).await, [TaskId(2), TaskId(1)]);
}

pub async fn a_refused_all_hints_nothing(bench: Bench) {
    let mut changes = bench.store().changes();
    let before: Hint = changes.hint();
    bench.refused(Write::All(vec![submit(), refused()])).await;
    assert_eq!(changes.hint(), before);
}

pub async fn an_all_within_an_all_is_refused(bench: Bench) {
    bench.invalid(Write::All(vec![submit(), Write::All(vec![submit()])])).await;
    assert_eq!(bench.list(Default::default()).await, []);
}

pub async fn an_all_of_too_many_members_is_refused(bench: Bench) {
    let members = vec![Write::Resume { scope: Scope::All }; 100_001];
    let text = bench.invalid(Write::All(members)).await;
    assert!(text.contains("100000"), "{text}");
}

pub async fn a_completion_a_submission_and_a_claim_are_one(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let complete = Write::Complete { lease, result: None };
    let all = Write::All(vec![complete, submit(), Write::Claim(all_of(lease.session, 1))]);
    let Outcome::All(outcomes) = bench.write(all).await else { unreachable!("nothing refuses") };
    assert!(matches!(&outcomes[2], Outcome::Claimed(claimed) if claimed.tasks[0].lease.task == TaskId(2)));
}

pub async fn a_claim_by_a_lost_session_undoes_all(bench: Bench) {
    let session = SessionId(9);
    let refusal = bench.refused(Write::All(vec![submit(), Write::Claim(all_of(session, 1))])).await;
    assert_eq!(refusal, Refusal::Member { index: 1, refusal: Box::new(Refusal::SessionLost(session)) });
    assert_eq!(bench.list(Default::default()).await, []);
}
