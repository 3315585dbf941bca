//! Large batches: eager writes of rows while the rest is still being decided.

use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Dependencies, NewTask, OnDuplicate, OpenSession, Outcome, PostgresStore, SessionId, Store,
    StoreReads, TaskFilter, TaskId, TaskState, UniqueKey, Write,
};

use super::fixture::options;
use super::server::{open, url};
use super::trouble::{Moment, Troubled, submit};

/// More writes than are decided before the first rows are sent.
const MANY: usize = 2 * onward_store::bounds::DECIDED_AT_ONCE + onward_store::bounds::LOT;

async fn apply(store: &PostgresStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

async fn session(store: &PostgresStore) -> SessionId {
    let open = OpenSession::new("node", Duration::from_secs(600));
    let Outcome::SessionOpened(session) = apply(store, Write::OpenSession(open)).await else { panic!("no session") };
    session
}

async fn claim(store: &PostgresStore, session: SessionId) -> Vec<ClaimedTask> {
    let Outcome::Claimed(claimed) = apply(store, Write::Claim(Claim::any(session, MANY))).await else {
        panic!("no claim")
    };
    claimed.tasks
}

fn completes(tasks: &[ClaimedTask]) -> Vec<Write> {
    tasks.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect()
}

async fn count(store: &PostgresStore, state: TaskState) -> u64 {
    store.count(TaskFilter { states: vec![state], ..TaskFilter::default() }).await.unwrap()
}

/// The ends are written eagerly while the submit after them is decided. The server then rejects the
/// submit.
#[tokio::test]
async fn what_was_written_before_the_rest_failed_leaves_no_trace() {
    let Some(url) = url() else { return };
    for moment in [Moment::Change, Moment::Commit] {
        let troubled = Troubled::new(&url, &[]).await;
        let store = &troubled.store;
        store.apply((0..MANY).map(|_| submit()).collect()).await.unwrap();
        let tasks = claim(store, session(store).await).await;
        troubled.fail(moment, 1, "53200").await;
        let batch: Vec<Write> = completes(&tasks).into_iter().chain([submit()]).collect();
        store.apply(batch.clone()).await.unwrap_err();
        let counts = [TaskState::Running, TaskState::Completed, TaskState::Waiting];
        let counted = [count(store, counts[0]).await, count(store, counts[1]).await, count(store, counts[2]).await];
        assert_eq!(counted, [MANY as u64, 0, 0], "{moment:?}");
        let outcomes = store.apply(batch).await.unwrap();
        assert!(outcomes[..MANY].iter().all(|outcome| *outcome == Outcome::Done), "{moment:?}: {outcomes:?}");
        assert_eq!(count(store, TaskState::Completed).await, MANY as u64, "{moment:?}");
    }
}

/// The store handles a broken connection itself: it applies everything again, once.
#[tokio::test]
async fn what_was_written_before_the_connection_broke_is_written_again_once() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let store = &troubled.store;
    store.apply((0..MANY).map(|_| submit()).collect()).await.unwrap();
    let tasks = claim(store, session(store).await).await;
    let end = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)";
    troubled.prepare(Moment::Change, 1, end).await;
    let batch: Vec<Write> = completes(&tasks).into_iter().chain([submit()]).collect();
    let outcomes = store.apply(batch).await.unwrap();
    assert!(outcomes[..MANY].iter().all(|outcome| *outcome == Outcome::Done), "{outcomes:?}");
    assert_eq!((count(store, TaskState::Completed).await, count(store, TaskState::Waiting).await), (MANY as u64, 1));
}

/// An eagerly written row that the server rejects fails what follows it. The error still names that
/// row, and neighbours are not affected.
#[tokio::test]
async fn a_row_that_is_refused_early_disturbs_no_neighbour() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let schema = store.info().location.rsplit_once('#').unwrap().1.to_owned();
    let client = super::trouble::connect(&url).await;
    client
        .batch_execute(&format!("ALTER TABLE {schema}.task ADD CONSTRAINT no_bad CHECK (kind <> 'bad')"))
        .await
        .unwrap();
    let submits =
        |kind: &str| (0..MANY).map(|_| Write::Submit(Box::new(NewTask::new(kind).unwrap()))).collect::<Vec<_>>();
    let (bad, good) = tokio::join!(store.apply(submits("bad")), store.apply(submits("good")));
    let error = bad.unwrap_err().to_string();
    assert!(error.contains("no_bad"), "{error}");
    assert_eq!(good.unwrap().len(), MANY);
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), MANY as u64);
}

/// Eagerly written rows may change within the same batch.
#[tokio::test]
async fn tasks_that_are_submitted_and_cancelled_in_one_call_end_once() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let first = store.apply(vec![submit()]).await.unwrap();
    let [Outcome::Submitted(submitted)] = first[..] else { panic!("{first:?}") };
    let next = |offset: usize| TaskId(submitted.id().0 + 1 + i64::try_from(offset).unwrap());
    let submits = (0..MANY).map(|_| submit());
    let batch = submits.chain((0..MANY).map(|at| Write::Cancel { task: next(at) })).collect();
    store.apply(batch).await.unwrap();
    assert_eq!((count(&store, TaskState::Cancelled).await, count(&store, TaskState::Waiting).await), (MANY as u64, 1));
}

/// The writer's coverage of the sub-queues since its last claim does not include all tasks that
/// wait now.
#[tokio::test]
async fn a_claim_sees_all_that_waits_after_a_child_was_submitted_under_a_waiting_task() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let session = session(&store).await;
    assert_eq!(claim(&store, session).await.len(), 0);
    let submitted = store.apply(vec![submit(), submit()]).await.unwrap();
    let Outcome::Submitted(parent) = submitted[0] else { panic!("{submitted:?}") };
    let child = NewTask { parent: Some(parent.id()), ..NewTask::new("mail").unwrap() };
    store.apply(vec![Write::Submit(Box::new(child))]).await.unwrap();
    assert_eq!(claim(&store, session).await.len(), 3);
    assert_eq!(count(&store, TaskState::Waiting).await, 0);
}

/// The waiting tasks are read while the ends before the claim are decided, and these ends may
/// change them.
#[tokio::test]
async fn a_claim_behind_many_ends_hands_out_what_waited_and_what_they_set_free() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let session = session(&store).await;
    store.apply((0..MANY).map(|_| submit()).collect()).await.unwrap();
    let tasks = claim(&store, session).await;
    let key = |key: &str| UniqueKey { key: key.into(), on_duplicate: OnDuplicate::default(), keep_for: Duration::ZERO };
    let behind = |task: TaskId| Dependencies::on([task]);
    let new = |depends_on: Dependencies, unique: Option<UniqueKey>| {
        Write::Submit(Box::new(NewTask { depends_on, unique, ..NewTask::new("mail").unwrap() }))
    };
    let first = new(Dependencies::default(), Some(key("waits")));
    let waiting = store.apply(vec![first.clone(), submit()]).await.unwrap();
    let Outcome::Submitted(submitted) = waiting[0] else { panic!("{waiting:?}") };
    let blocked = [new(behind(tasks[0].lease.task), Some(key("freed"))), new(behind(submitted.id()), None)];
    store.apply(blocked.into()).await.unwrap();
    // After the claim the batch submits a duplicate key, whose task was read in the meantime.
    let batch = [completes(&tasks), vec![Write::Claim(Claim::any(session, MANY)), first]].concat();
    let outcomes = store.apply(batch).await.unwrap();
    let [.., Outcome::Claimed(claimed), Outcome::Submitted(again)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((claimed.tasks.len(), again.id()), (3, submitted.id()));
    let first = claimed.tasks.iter().find(|task| task.lease.task == submitted.id()).unwrap();
    store.apply(completes(std::slice::from_ref(first))).await.unwrap();
    assert_eq!(claim(&store, session).await.len(), 1, "what waited for the first");
}

/// The coverage is also incomplete if another node writes in between.
#[tokio::test]
async fn a_claim_sees_what_another_node_has_submitted_since() {
    let Some(url) = url() else { return };
    let options = options();
    let (one, other) = (open(&url, options.clone()).await, open(&url, options).await);
    let session = session(&one).await;
    assert_eq!(claim(&one, session).await.len(), 0);
    one.apply(vec![submit()]).await.unwrap();
    other.apply(vec![submit()]).await.unwrap();
    assert_eq!(claim(&one, session).await.len(), 2);
}
