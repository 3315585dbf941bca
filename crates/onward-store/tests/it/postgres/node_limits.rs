//! Limits and priorities that are set on one node and apply on all.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, LimitScope, ManualClock, Name, NewTask, OpenSession, Outcome, PostgresStore, Priority, Rate, SessionId,
    SetLimit, Store, Write,
};

use super::fixture::options;
use super::server::{open, url};

const SECOND: Duration = Duration::from_secs(1);

/// Two nodes on a store of their own, with a clock that stands still.
struct Pair {
    nodes: [PostgresStore; 2],
    clock: Arc<ManualClock>,
}

impl Pair {
    async fn new() -> Option<Self> {
        let url = url()?;
        let clock = Arc::new(ManualClock::default());
        let options = options().clock(clock.clone());
        Some(Self { nodes: [open(&url, options.clone()).await, open(&url, options).await], clock })
    }

    async fn apply(&self, node: usize, write: Write) -> Outcome {
        self.nodes[node].apply(vec![write]).await.unwrap().remove(0)
    }

    async fn set(&self, node: usize, limit: SetLimit) {
        self.apply(node, Write::SetLimit(limit)).await;
    }

    async fn session(&self, node: usize, lease: Duration) -> SessionId {
        let open = Write::OpenSession(OpenSession::new("node", lease));
        let Outcome::SessionOpened(session) = self.apply(node, open).await else { panic!("no session") };
        session
    }

    /// Returns the number of tasks that the node claims.
    async fn claim(&self, node: usize, session: SessionId) -> usize {
        let Outcome::Claimed(claimed) = self.apply(node, Write::Claim(Claim::any(session, 100))).await else {
            panic!("no claim")
        };
        claimed.tasks.len()
    }
}

fn submits(count: usize) -> Vec<Write> {
    (0..count).map(|_| Write::Submit(Box::new(NewTask::new("mail").unwrap()))).collect()
}

fn of_mail() -> SetLimit {
    SetLimit::new(LimitScope::Kind(Name::new("mail").unwrap()))
}

/// Shows: T9, W10
#[tokio::test]
async fn nodes_that_claim_at_once_start_what_the_burst_and_the_rate_allow_them_together() {
    let Some(pair) = Pair::new().await else { return };
    pair.set(0, of_mail().rate(Rate::new(5, SECOND).burst(8))).await;
    pair.nodes[1].apply(submits(100)).await.unwrap();
    let (one, other) = (pair.session(0, 600 * SECOND).await, pair.session(1, 600 * SECOND).await);
    let mut started = Vec::new();
    for _ in 0..4 {
        let (here, there) = tokio::join!(pair.claim(0, one), pair.claim(1, other));
        started.push(here + there);
        pair.clock.advance(SECOND);
    }
    assert_eq!(started, [8, 5, 5, 5]);
}

/// Shows: T9, T21, W10
#[tokio::test]
async fn a_node_that_dies_keeps_its_places_under_a_limit_until_its_lease_is_over() {
    let Some(pair) = Pair::new().await else { return };
    pair.set(0, of_mail().concurrency(3)).await;
    pair.nodes[1].apply(submits(10)).await.unwrap();
    let (dies, lives) = (pair.session(0, 5 * SECOND).await, pair.session(1, 600 * SECOND).await);
    assert_eq!(pair.claim(0, dies).await, 3);
    pair.clock.advance(4 * SECOND);
    assert_eq!(pair.claim(1, lives).await, 0, "its lease is not over");
    pair.clock.advance(2 * SECOND);
    assert_eq!(pair.claim(1, lives).await, 3, "its lease is over");
}

/// Shows: T9, W10
#[tokio::test]
async fn a_limit_that_is_changed_on_one_node_holds_for_the_next_claim_of_another() {
    let Some(pair) = Pair::new().await else { return };
    pair.nodes[1].apply(submits(10)).await.unwrap();
    let session = pair.session(1, 600 * SECOND).await;
    let mut claimed = Vec::new();
    for limit in [2, 2, 5] {
        pair.set(0, of_mail().concurrency(limit)).await;
        claimed.push(pair.claim(1, session).await);
    }
    assert_eq!(claimed, [2, 0, 3]);
}

/// Shows: T2, W10
#[tokio::test]
async fn the_most_urgent_task_goes_first_whichever_node_it_was_submitted_to() {
    let Some(pair) = Pair::new().await else { return };
    let mut urgency = Vec::new();
    for (node, priority) in [(0, Priority::LOW), (1, Priority::HIGH), (0, Priority::NORMAL)] {
        let task = NewTask { priority, ..NewTask::new("mail").unwrap() };
        pair.apply(node, Write::Submit(Box::new(task))).await;
    }
    let session = pair.session(0, 600 * SECOND).await;
    for _ in 0..3 {
        let Outcome::Claimed(claimed) = pair.apply(0, Write::Claim(Claim::any(session, 1))).await else {
            panic!("no claim")
        };
        urgency.push(claimed.tasks[0].priority);
    }
    assert_eq!(urgency, [Priority::HIGH, Priority::NORMAL, Priority::LOW]);
}
