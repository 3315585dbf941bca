//! The row cache of the running tasks of a node while other nodes write: the node is notified of
//! writes that affect its tasks.

use std::time::Duration;

use onward_store::{
    AfterFailure, AfterTurn, Claim, Dependencies, Durability, Lease, Name, NewTask, OnDuplicate, OpenSession, Outcome,
    PostgresStore, Recipient, Refusal, SessionId, Signal, Store, StoreReads, Submitted, TaskId, TaskState, Turn,
    UniqueKey, Write,
};
use onward_testkit::postgres::Server;

use super::schemas::new_name;
use super::server::{open, url};
use super::trouble::connect;

/// A lease far longer than a test takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);

/// More transactions than those in which a node expects further writes of another node after a
/// surprise.
const MANY: usize = 20;

/// A node that runs tasks, and another node that also writes, so that the first knows that it is
/// not alone.
struct Pair {
    node: PostgresStore,
    other: PostgresStore,
    session: SessionId,
}

impl Pair {
    async fn open() -> Option<Self> {
        Some(Self::open_at(&url()?, &new_name()).await)
    }

    async fn open_at(url: &str, schema: &str) -> Self {
        let options = PostgresStore::options().schema(schema).durability(Durability::Normal).readers(1);
        let (node, other) = (open(url, options.clone()).await, open(url, options).await);
        let session = session(&node).await;
        Self { node, other, session }
    }

    /// Starts tasks on the node, with writes of the other node in between.
    async fn run(&self, tasks: Vec<NewTask>) -> Vec<Lease> {
        let count = tasks.len();
        self.node.apply(tasks.into_iter().map(submit).collect()).await.unwrap();
        sweep(&self.other).await;
        claim(&self.node, self.session, count).await
    }

    async fn run_one(&self, task: NewTask) -> Lease {
        self.run(vec![task]).await.remove(0)
    }

    async fn state(&self, task: TaskId) -> TaskState {
        self.node.task(task).await.unwrap().unwrap().state
    }
}

async fn apply(store: &PostgresStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

async fn session(store: &PostgresStore) -> SessionId {
    let open = Write::OpenSession(OpenSession::new("node", LONG));
    let Outcome::SessionOpened(session) = apply(store, open).await else { panic!("no session") };
    session
}

async fn claim(store: &PostgresStore, session: SessionId, count: usize) -> Vec<Lease> {
    let Outcome::Claimed(claimed) = apply(store, Write::Claim(Claim::any(session, count))).await else {
        panic!("no claim")
    };
    assert_eq!(claimed.tasks.len(), count);
    claimed.tasks.iter().map(|task| task.lease).collect()
}

async fn sweep(store: &PostgresStore) {
    store.apply(vec![Write::Sweep]).await.unwrap();
}

fn submit(task: NewTask) -> Write {
    Write::Submit(Box::new(task))
}

fn complete(lease: Lease) -> Write {
    Write::Complete { lease, result: None }
}

fn mail() -> NewTask {
    NewTask::new("mail").unwrap()
}

fn with_key(on_duplicate: OnDuplicate) -> NewTask {
    NewTask { unique: Some(UniqueKey { key: "one".into(), on_duplicate, keep_for: Duration::ZERO }), ..mail() }
}

async fn submitted(store: &PostgresStore, task: NewTask) -> TaskId {
    match apply(store, submit(task)).await {
        Outcome::Submitted(Submitted::Inserted { id } | Submitted::Superseded { id, .. }) => id,
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn a_task_that_another_node_has_completed_is_lost_for_the_one_that_runs_it() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(mail()).await;
    assert_eq!(apply(&pair.other, complete(lease)).await, Outcome::Done);
    assert_eq!(apply(&pair.node, complete(lease)).await, Outcome::Refused(Refusal::LeaseLost(lease)));
}

#[tokio::test]
async fn a_task_that_another_node_has_cancelled_is_not_tried_again_by_the_one_that_runs_it() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(mail()).await;
    apply(&pair.other, Write::Cancel { task: lease.task }).await;
    let again = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: false };
    apply(&pair.node, Write::Fail { lease, error: "no route".into(), next: again }).await;
    assert_eq!(pair.state(lease.task).await, TaskState::Cancelled);
}

#[tokio::test]
async fn what_another_node_has_wait_for_a_task_is_set_free_by_the_one_that_runs_it() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(mail()).await;
    let waits = NewTask { depends_on: Dependencies::on([lease.task]), ..mail() };
    let waits = submitted(&pair.other, waits).await;
    apply(&pair.node, complete(lease)).await;
    assert_eq!(pair.state(waits).await, TaskState::Waiting);
}

#[tokio::test]
async fn a_key_that_another_node_has_given_to_a_successor_stays_with_that() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(with_key(OnDuplicate::Skip)).await;
    submitted(&pair.other, with_key(OnDuplicate::Supersede)).await;
    apply(&pair.node, complete(lease)).await;
    let third = apply(&pair.node, submit(with_key(OnDuplicate::Reject))).await;
    assert!(!matches!(third, Outcome::Submitted(Submitted::Inserted { .. })), "{third:?}");
}

#[tokio::test]
async fn what_another_node_has_queued_behind_the_holder_of_a_key_follows_it() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(with_key(OnDuplicate::Skip)).await;
    apply(&pair.other, submit(with_key(OnDuplicate::Requeue))).await;
    apply(&pair.node, complete(lease)).await;
    claim(&pair.node, pair.session, 1).await;
}

#[tokio::test]
async fn an_orchestration_to_which_another_node_has_sent_something_goes_on_where_it_runs() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(NewTask { orchestration: true, ..mail() }).await;
    let (to, name) = (Recipient::Task(lease.task), Name::new("paid").unwrap());
    apply(&pair.other, Write::Signal(Box::new(Signal { to, name, payload: "10".into() }))).await;
    let Outcome::Turned(turned) = apply(&pair.node, turn(lease, 0, AfterTurn::Park { until: None })).await else {
        panic!("no turn")
    };
    assert_eq!(turned.state, TaskState::Waiting);
}

fn turn(lease: Lease, length: u64, next: AfterTurn) -> Write {
    Write::Turn(Box::new(Turn { events: 1, chunk: vec![7; 20].into(), ..Turn::new(lease, length, next) }))
}

/// The other node has the task in its row cache after a write that changed nothing. It appends to
/// the history without reading the store.
#[tokio::test]
async fn a_step_that_another_node_has_appended_is_seen_by_the_one_that_runs_the_orchestration() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run_one(NewTask { orchestration: true, ..mail() }).await;
    let stale = Lease { claim: lease.claim + 1, ..lease };
    assert_eq!(apply(&pair.other, complete(stale)).await, Outcome::Refused(Refusal::LeaseLost(stale)));
    let step = apply(&pair.other, turn(lease, 0, AfterTurn::Continue)).await;
    assert!(matches!(step, Outcome::Turned(_)), "{step:?}");
    let same = apply(&pair.node, turn(lease, 0, AfterTurn::Continue)).await;
    assert!(matches!(same, Outcome::Refused(_)), "{same:?}");
}

/// The node is notified with its next transaction. The notification also counts for tasks that are
/// read long afterwards.
#[tokio::test]
async fn what_another_node_has_done_counts_however_late_the_task_is_looked_at() {
    let Some(pair) = Pair::open().await else { return };
    let lease = pair.run(vec![mail(), mail()]).await[1];
    apply(&pair.other, complete(lease)).await;
    for _ in 0..MANY {
        sweep(&pair.other).await;
        sweep(&pair.node).await;
    }
    assert_eq!(apply(&pair.node, complete(lease)).await, Outcome::Refused(Refusal::LeaseLost(lease)));
}

#[tokio::test]
async fn a_task_that_was_completed_by_a_statement_and_ended_by_another_node_is_lost_for_the_one_that_runs_it() {
    let Some(url) = url() else { return };
    let pair = Pair::open_at(&url, &new_name()).await;
    let lease = pair.run_one(mail()).await;
    let (client, statement) = (connect(&url).await, pair.node.completion_statement(lease, None));
    let (task, session, claim) = (statement.task(), statement.session(), statement.claim());
    client.query(statement.text(), &[&task, &session, &claim, &statement.result()]).await.unwrap();
    sweep(&pair.other).await;
    assert_eq!(apply(&pair.node, complete(lease)).await, Outcome::Refused(Refusal::LeaseLost(lease)));
}

/// Two nodes run, read and time out their own tasks. Neither compares its running tasks with their
/// rows, or reads them.
#[tokio::test]
async fn nodes_that_run_their_own_tasks_look_at_none_of_them_again() {
    let Some(server) = Server::with_settings(&["shared_preload_libraries=pg_stat_statements"]) else { return };
    let pair = Pair::open_at(&server.url(), &new_name()).await;
    let client = connect(&server.url()).await;
    client.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
    let nodes = [(&pair.node, pair.session), (&pair.other, session(&pair.other).await)];
    for round in 0..2 * MANY {
        if round == MANY {
            client.batch_execute("SELECT pg_stat_statements_reset()").await.unwrap();
        }
        let mut leases = Vec::new();
        for (node, session) in nodes {
            submitted(node, NewTask { timeout: Some(LONG), ..mail() }).await;
            leases.extend(claim(node, session, 1).await);
        }
        for ((node, _), lease) in nodes.into_iter().zip(leases) {
            assert_eq!(apply(node, complete(lease)).await, Outcome::Done);
        }
    }
    let looked = "SELECT query FROM pg_stat_statements WHERE query LIKE '%xmin%' OR query LIKE '%WHERE t.id = ANY(%'";
    let looked: Vec<String> = client.query(looked, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(looked.is_empty(), "{looked:#?}");
}
