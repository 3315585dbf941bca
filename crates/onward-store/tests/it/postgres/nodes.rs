//! Several nodes on one store.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterTurn, Claim, Clock as _, Dependencies, ExpectedVersion, ManualClock, Name, NewTask, OnDependencyFailure,
    OnDuplicate, OpenSession, Outcome, PostgresStore, PutDocument, Recipient, Refusal, SessionId, SetQueue, Signal,
    Store, StoreReads, SystemClock, TaskFilter, TaskState, Turn, UniqueKey, Write,
};

use super::fixture::options;
use super::server::{open, url};

async fn apply(store: &PostgresStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

/// A lease far longer than a test takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);

async fn session(store: &PostgresStore, lease: Duration) -> SessionId {
    let open = OpenSession::new("node", lease);
    let Outcome::SessionOpened(session) = apply(store, Write::OpenSession(open)).await else { panic!("no session") };
    session
}

fn submits(count: usize) -> Vec<Write> {
    (0..count).map(|_| Write::Submit(Box::new(NewTask::new("mail").unwrap()))).collect()
}

/// Claims and completes tasks until none waits. Returns their number.
async fn work(store: &PostgresStore) -> usize {
    let session = session(store, LONG).await;
    let mut done = 0;
    loop {
        let Outcome::Claimed(claimed) = apply(store, Write::Claim(Claim::any(session, 7))).await else {
            panic!("no claim")
        };
        if claimed.tasks.is_empty() {
            return done;
        }
        let complete = |task: &onward_store::ClaimedTask| Write::Complete { lease: task.lease, result: None };
        let outcomes = store.apply(claimed.tasks.iter().map(complete).collect()).await.unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done), "{outcomes:?}");
        done += claimed.tasks.len();
    }
}

/// Each node checks whether there is a store before one node has created it. So what the server has
/// cached for each connection is outdated.
#[tokio::test]
async fn nodes_that_start_at_once_on_an_empty_database_make_one_store() {
    let Some(url) = url() else { return };
    for _ in 0..5 {
        let options = options();
        let start = || options.clone().open(&url);
        let started = tokio::join!(start(), start(), start(), start());
        let nodes = <[_; 4]>::from(started).map(Result::unwrap);
        nodes[0].apply(submits(1)).await.unwrap();
        assert_eq!(work(&nodes[3]).await, 1);
    }
}

fn note(content: &'static str, expect: ExpectedVersion) -> Write {
    let note = PutDocument::new(Name::new("notes").unwrap(), "a", content);
    Write::PutDocument(Box::new(PutDocument { expect, ..note }))
}

/// No node keeps documents in memory, so each write sees the version that another node wrote.
#[tokio::test]
async fn of_two_nodes_that_change_one_version_of_a_document_one_succeeds() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    for version in 0..20 {
        let expect = if version == 0 { ExpectedVersion::Absent } else { ExpectedVersion::Version(version) };
        let contents = if version % 2 == 0 { ["a", "b"] } else { ["c", "d"] };
        let [one, other] = [0, 1].map(|node| apply(&nodes[node], note(contents[node], expect)));
        let (one, other) = tokio::join!(one, other);
        let done = Outcome::DocumentPut { version: version + 1, changed: true };
        assert_eq!([&one, &other].into_iter().filter(|outcome| **outcome == done).count(), 1, "{one:?} {other:?}");
    }
    let read = nodes[1].document(Name::new("notes").unwrap(), "a".to_owned()).await.unwrap();
    assert_eq!(read.map(|document| document.version), Some(20));
}

/// Callers of a newly opened store compare times with its clock before their first write.
#[tokio::test]
async fn a_store_knows_the_time_of_the_server_as_soon_as_it_is_open() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    // The server is on this machine, so the clocks must agree.
    assert!(store.clock().now().plus(LONG) > SystemClock.now(), "{:?}", store.clock().now());
}

#[tokio::test]
async fn nodes_that_work_at_once_do_each_task_once() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options.clone()).await, open(&url, options).await];
    nodes[0].apply(submits(200)).await.unwrap();
    let (one, two, three) = tokio::join!(work(&nodes[0]), work(&nodes[1]), work(&nodes[2]));
    assert_eq!(one + two + three, 200);
    let completed = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(nodes[1].count(completed).await.unwrap(), 200);
}

#[tokio::test]
async fn nodes_together_never_exceed_a_limit() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let limit = SetQueue::new(Name::default_queue()).concurrency(3);
    apply(&nodes[0], Write::SetQueue(limit)).await;
    nodes[0].apply(submits(20)).await.unwrap();
    let (one, other) = (session(&nodes[0], LONG).await, session(&nodes[1], LONG).await);
    let claims = tokio::join!(
        apply(&nodes[0], Write::Claim(Claim::any(one, 10))),
        apply(&nodes[1], Write::Claim(Claim::any(other, 10)))
    );
    let (Outcome::Claimed(one), Outcome::Claimed(other)) = claims else { panic!("no claims") };
    assert_eq!(one.tasks.len() + other.tasks.len(), 3);
}

/// A writer keeps the running tasks of its node in its row cache as long as no other node has
/// written.
#[tokio::test]
async fn what_another_node_did_to_a_running_task_counts_for_the_node_that_runs_it() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let session = session(&nodes[0], LONG).await;
    nodes[0].apply(submits(2)).await.unwrap();
    let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(session, 2))).await else {
        panic!("no claim")
    };
    let [ended, stopped] = [claimed.tasks[0].lease, claimed.tasks[1].lease];
    assert_eq!(apply(&nodes[0], Write::RenewSession { session }).await, Outcome::Renewed { cancel: Vec::new() });
    let complete = Write::Complete { lease: ended, result: None };
    assert_eq!(apply(&nodes[1], complete.clone()).await, Outcome::Done);
    apply(&nodes[1], Write::Cancel { task: stopped.task }).await;
    assert_eq!(apply(&nodes[0], complete).await, Outcome::Refused(Refusal::LeaseLost(ended)));
    let renewed = apply(&nodes[0], Write::RenewSession { session }).await;
    assert_eq!(renewed, Outcome::Renewed { cancel: vec![stopped.task] });
}

/// That also holds for tasks that depend on a running task.
#[tokio::test]
async fn what_another_node_has_wait_for_a_running_task_is_set_free_by_the_node_that_runs_it() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let session = session(&nodes[0], LONG).await;
    nodes[0].apply(submits(1)).await.unwrap();
    let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(session, 2))).await else {
        panic!("no claim")
    };
    let lease = claimed.tasks[0].lease;
    apply(&nodes[0], Write::RenewSession { session }).await;
    for (at, node) in nodes.iter().enumerate() {
        // The node that runs the task learns of the second dependent only from its own write.
        let depends_on = Dependencies::on([lease.task]);
        let waits = NewTask { depends_on, ..NewTask::new("mail").unwrap() };
        let submitted = apply(node, Write::Submit(Box::new(waits))).await;
        assert!(matches!(submitted, Outcome::Submitted(_)), "{at}: {submitted:?}");
    }
    assert_eq!(apply(&nodes[0], Write::Complete { lease, result: None }).await, Outcome::Done);
    let waiting = TaskFilter { states: vec![TaskState::Waiting], ..TaskFilter::default() };
    assert_eq!(nodes[1].count(waiting).await.unwrap(), 2);
}

/// That also holds for an orchestration that gets a message.
#[tokio::test]
async fn an_orchestration_to_which_another_node_has_sent_something_is_not_parked() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let session = session(&nodes[0], LONG).await;
    apply(&nodes[0], Write::Submit(Box::new(NewTask { orchestration: true, ..NewTask::new("order").unwrap() }))).await;
    let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(session, 1))).await else {
        panic!("no claim")
    };
    let lease = claimed.tasks[0].lease;
    let (to, name) = (Recipient::Task(lease.task), Name::new("paid").unwrap());
    apply(&nodes[1], Write::Signal(Box::new(Signal { to, name, payload: "10".into() }))).await;
    let turn = Turn { events: 1, chunk: vec![7; 20].into(), ..Turn::new(lease, 0, AfterTurn::Park { until: None }) };
    let Outcome::Turned(turned) = apply(&nodes[0], Write::Turn(Box::new(turn))).await else { panic!("no turn") };
    assert_eq!(turned.state, TaskState::Waiting);
}

/// That also holds if both nodes write in turn, and a node compares its row cache with the rows.
#[tokio::test]
async fn what_nodes_that_take_turns_do_to_one_anothers_running_tasks_counts() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let session = session(&nodes[0], LONG).await;
    let key = UniqueKey { key: "one".into(), on_duplicate: OnDuplicate::default(), keep_for: Duration::ZERO };
    let with_key = |on_duplicate| {
        let unique = Some(UniqueKey { on_duplicate, ..key.clone() });
        Write::Submit(Box::new(NewTask { unique, ..NewTask::new("mail").unwrap() }))
    };
    nodes[0].apply(submits(5)).await.unwrap();
    apply(&nodes[0], with_key(OnDuplicate::Skip)).await;
    let mut leases = Vec::new();
    for _ in 0..6 {
        // Each task is started in a transaction of its own, after a transaction of the other node.
        nodes[1].apply(vec![Write::Sweep]).await.unwrap();
        let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(session, 1))).await else {
            panic!("no claim")
        };
        leases.push(claimed.tasks[0].lease);
    }
    let [ended, stopped, parent, awaited, alone, superseded] = leases[..] else { panic!("{leases:?}") };
    let complete = |lease| Write::Complete { lease, result: None };
    let child = NewTask { parent: Some(parent.task), ..NewTask::new("mail").unwrap() };
    let waits = NewTask { depends_on: Dependencies::on([awaited.task]), ..NewTask::new("mail").unwrap() };
    apply(&nodes[1], complete(ended)).await;
    apply(&nodes[1], Write::Cancel { task: stopped.task }).await;
    apply(&nodes[1], Write::Submit(Box::new(child))).await;
    apply(&nodes[1], Write::Submit(Box::new(waits))).await;
    apply(&nodes[1], with_key(OnDuplicate::Supersede)).await;
    assert_eq!(apply(&nodes[0], complete(ended)).await, Outcome::Refused(Refusal::LeaseLost(ended)));
    let renewed = apply(&nodes[0], Write::RenewSession { session }).await;
    assert_eq!(renewed, Outcome::Renewed { cancel: vec![stopped.task, superseded.task] });
    assert_eq!(
        apply(&nodes[0], Write::ConfirmCancel { lease: superseded, reason: String::new() }).await,
        Outcome::Done
    );
    assert_eq!(apply(&nodes[0], complete(awaited)).await, Outcome::Done);
    assert_eq!(apply(&nodes[0], complete(alone)).await, Outcome::Done);
    let awaits = Write::AwaitChildren { lease: parent, checkpoint: "".into(), on_failure: OnDependencyFailure::Cancel };
    assert_eq!(apply(&nodes[0], awaits).await, Outcome::AwaitsChildren { state: TaskState::Blocked });
    let count =
        async |state| nodes[1].count(TaskFilter { states: vec![state], ..TaskFilter::default() }).await.unwrap();
    let states = [TaskState::Waiting, TaskState::Blocked, TaskState::Completed, TaskState::Cancelled];
    let counts = [count(states[0]).await, count(states[1]).await, count(states[2]).await, count(states[3]).await];
    assert_eq!(counts, [3, 1, 3, 1], "the child, the dependent and the new one with the key wait");
}

#[tokio::test]
async fn a_node_whose_lease_is_over_can_change_nothing() {
    let Some(url) = url() else { return };
    let clock = Arc::new(ManualClock::default());
    let options = options().clock(clock.clone());
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    nodes[0].apply(submits(1)).await.unwrap();
    let late = session(&nodes[0], Duration::from_secs(2)).await;
    let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(late, 1))).await else {
        panic!("no claim")
    };
    clock.advance(Duration::from_secs(3));
    assert_eq!(work(&nodes[1]).await, 1, "another node takes it over");
    let complete = Write::Complete { lease: claimed.tasks[0].lease, result: Some("late".into()) };
    let outcome = apply(&nodes[0], complete).await;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_node_is_notified_of_the_writes_of_another() {
    let Some(url) = url() else { return };
    let options = options().poll(Duration::from_millis(50));
    let (one, other) = (open(&url, options.clone()).await, open(&url, options).await);
    let mut changes = other.changes();
    changes.hint();
    one.apply(submits(1)).await.unwrap();
    let hint = tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("it hears").unwrap();
    assert!(hint.work > 0, "{hint:?}");
}

/// The store asks the server which sessions run tasks as soon as other nodes write, except for the
/// tasks that the batch itself names.
#[tokio::test]
async fn a_claim_beside_the_end_of_the_last_task_that_runs_says_that_nothing_will_come_due() {
    let Some(url) = url() else { return };
    let options = options();
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let session = session(&nodes[0], LONG).await;
    nodes[0].apply(submits(2)).await.unwrap();
    let Outcome::Claimed(claimed) = apply(&nodes[0], Write::Claim(Claim::any(session, 2))).await else {
        panic!("no claim")
    };
    let mut due = Vec::new();
    for task in &claimed.tasks {
        for node in [1, 0, 1] {
            nodes[node].apply(vec![Write::Sweep]).await.unwrap();
        }
        let writes = vec![Write::Complete { lease: task.lease, result: None }, Write::Claim(Claim::any(session, 2))];
        let outcomes = nodes[0].apply(writes).await.unwrap();
        let [Outcome::Done, Outcome::Claimed(claimed)] = &outcomes[..] else { panic!("{outcomes:?}") };
        due.push(claimed.next_due.is_some());
    }
    assert_eq!(due, [true, false], "the lease of one task, and then of none");
}

#[tokio::test]
async fn a_claim_says_when_the_lease_of_another_node_is_over_that_runs_something() {
    let Some(url) = url() else { return };
    let clock = Arc::new(ManualClock::default());
    let options = options().clock(clock);
    let nodes = [open(&url, options.clone()).await, open(&url, options).await];
    let (idle, busy) = (session(&nodes[0], LONG).await, session(&nodes[1], Duration::from_secs(9)).await);
    session(&nodes[1], Duration::from_secs(5)).await;
    nodes[0].apply(submits(1)).await.unwrap();
    let Outcome::Claimed(claimed) = apply(&nodes[1], Write::Claim(Claim::any(busy, 1))).await else {
        panic!("no claim")
    };
    let due = async || match apply(&nodes[0], Write::Claim(Claim::any(idle, 1))).await {
        Outcome::Claimed(claimed) => claimed.next_due,
        other => panic!("{other:?}"),
    };
    assert_eq!(due().await, Some(Duration::from_secs(9)));
    apply(&nodes[1], Write::RenewSession { session: busy }).await;
    assert_eq!(due().await, Some(Duration::from_secs(9)));
    apply(&nodes[1], Write::Complete { lease: claimed.tasks[0].lease, result: None }).await;
    assert_eq!(due().await, None);
}
