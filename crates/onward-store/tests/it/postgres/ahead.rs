//! Speculative planning: calls that are decided while the server writes earlier ones. Their results
//! are the same as if they had been decided afterwards.

use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, OpenSession, Outcome, PostgresStore, Refusal, Result, SessionId, Store, StoreReads, TaskFilter,
    TaskState, Write,
};
use tokio_postgres::Client;

use super::server::url;
use super::trouble::{Moment, Troubled, connect, in_time, submit};

/// More writes than are planned speculatively at once, even without the first.
const MANY: usize = 3 * onward_store::bounds::DECIDED_AT_ONCE;

/// More transactions than those in which a newly opened store expects other writers and does not
/// plan speculatively.
const ALONE: usize = 10;

/// Enough turns for a task of this runtime to do everything possible before the server replies.
const TURNS: usize = 100;

/// A store with running tasks, and a connection that can make the server wait before it commits the
/// store's writes.
struct Slow {
    troubled: Troubled,
    session: SessionId,
    tasks: Vec<ClaimedTask>,
    server: Client,
}

impl Slow {
    async fn new() -> Option<Self> {
        let url = url()?;
        let troubled = Troubled::new(&url, &[]).await;
        let store = &troubled.store;
        let open = Write::OpenSession(OpenSession::new("node", Duration::from_secs(600)));
        let opened = store.apply(vec![open]).await.unwrap();
        let [Outcome::SessionOpened(session)] = opened[..] else { panic!("{opened:?}") };
        store.apply((0..MANY).map(|_| submit()).collect()).await.unwrap();
        let claimed = store.apply(vec![Write::Claim(Claim::any(session, MANY))]).await.unwrap();
        let [Outcome::Claimed(claimed)] = &claimed[..] else { panic!("{claimed:?}") };
        let tasks = claimed.tasks.clone();
        for _ in 0..ALONE {
            store.apply(vec![Write::RenewSession { session }]).await.unwrap();
        }
        Some(Self { troubled, session, tasks, server: connect(&url).await })
    }

    fn completes(&self) -> Vec<Write> {
        self.tasks.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect()
    }

    /// Makes every writer wait until [`go_on`](Self::go_on).
    async fn hold_up(&self) {
        let schema = self.troubled.schema();
        self.server.batch_execute(&format!("BEGIN; SELECT 1 FROM {schema}.writer FOR UPDATE")).await.unwrap();
    }

    async fn go_on(&self) {
        self.server.batch_execute("COMMIT").await.unwrap();
    }

    /// Waits until this many connections of the store wait for a lock, and all other work is done.
    async fn until_waiting(&self, connections: i64) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
        let schema = self.troubled.schema();
        in_time("connections wait for a lock", async {
            while self.server.query_one(waiting, &[&schema]).await.unwrap().get::<_, i64>(0) < connections {
                tokio::task::yield_now().await;
            }
        })
        .await;
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Completes the first task, and the other tasks while the server writes that.
    async fn complete_in_two_calls(&self) -> (Result<Vec<Outcome>>, Vec<Outcome>) {
        let (store, mut first) = (&self.troubled.store, self.completes());
        let others = first.split_off(1);
        self.hold_up().await;
        let (first, ends, ()) = tokio::join!(
            store.apply(first),
            async {
                self.until_waiting(1).await;
                store.apply(others).await.unwrap()
            },
            async {
                self.until_waiting(1).await;
                self.until_waiting(1).await;
                self.go_on().await;
            }
        );
        (first, ends)
    }

    async fn count(&self, state: TaskState) -> u64 {
        count(&self.troubled.store, state).await
    }
}

async fn count(store: &PostgresStore, state: TaskState) -> u64 {
    store.count(TaskFilter { states: vec![state], ..TaskFilter::default() }).await.unwrap()
}

#[tokio::test]
async fn what_is_decided_ahead_counts_on_what_is_being_written() {
    let Some(slow) = Slow::new().await else { return };
    let (first, others) = slow.complete_in_two_calls().await;
    assert_eq!(first.unwrap(), [Outcome::Done]);
    assert!(others.iter().all(|outcome| *outcome == Outcome::Done), "{others:?}");
    assert_eq!((slow.count(TaskState::Completed).await, slow.count(TaskState::Running).await), (MANY as u64, 0));
}

#[tokio::test]
async fn what_is_decided_ahead_is_decided_again_where_what_it_counted_on_has_failed() {
    let Some(slow) = Slow::new().await else { return };
    let fail = "RAISE EXCEPTION 'on purpose' USING ERRCODE = '53200'";
    slow.troubled.prepare_for("history", Moment::Commit, 1, fail).await;
    let (first, others) = slow.complete_in_two_calls().await;
    first.unwrap_err();
    assert!(others.iter().all(|outcome| *outcome == Outcome::Done), "{others:?}");
    assert_eq!((slow.count(TaskState::Completed).await, slow.count(TaskState::Running).await), (MANY as u64 - 1, 1));
}

/// The other node also waits for the first call, and is the next to write.
#[tokio::test]
async fn what_is_decided_ahead_is_decided_again_where_another_node_has_written_before_it() {
    let Some(slow) = Slow::new().await else { return };
    let (store, other) = (&slow.troubled.store, slow.troubled.another().await);
    slow.hold_up().await;
    let (first, ends, closed, ()) = tokio::join!(
        store.apply(vec![submit()]),
        async {
            slow.until_waiting(1).await;
            store.apply(slow.completes()).await.unwrap()
        },
        async {
            slow.until_waiting(1).await;
            other.apply(vec![Write::CloseSession { session: slow.session }]).await
        },
        async {
            slow.until_waiting(2).await;
            slow.go_on().await;
        }
    );
    first.unwrap();
    closed.unwrap();
    let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(Refusal::SessionLost(_)));
    assert!(ends.iter().all(is_refused), "their session is closed: {ends:?}");
    assert_eq!((slow.count(TaskState::Completed).await, slow.count(TaskState::Waiting).await), (0, MANY as u64 + 1));
}

/// A claim follows the ends, and reads the waiting tasks once its transaction has begun.
#[tokio::test]
async fn a_claim_behind_what_is_decided_ahead_hands_out_what_was_being_written() {
    let Some(slow) = Slow::new().await else { return };
    let store = &slow.troubled.store;
    slow.hold_up().await;
    let (first, outcomes, ()) = tokio::join!(
        store.apply(vec![submit()]),
        async {
            slow.until_waiting(1).await;
            let claim = Write::Claim(Claim::any(slow.session, MANY));
            store.apply([slow.completes(), vec![submit(), claim]].concat()).await.unwrap()
        },
        async {
            slow.until_waiting(1).await;
            slow.until_waiting(1).await;
            slow.go_on().await;
        }
    );
    first.unwrap();
    let Some(Outcome::Claimed(claimed)) = outcomes.last() else { panic!("{outcomes:?}") };
    assert_eq!(claimed.tasks.len(), 2);
    assert_eq!((slow.count(TaskState::Completed).await, slow.count(TaskState::Running).await), (MANY as u64, 2));
}
