//! The cost of a round trip behind tasks that may not start, counted in steps of SQLite. Here no
//! task is in memory; [`backlog`](crate::backlog) measures the time with tasks in memory.

use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Durability, LimitScope, Name, NewTask, OpenSession, Outcome, Rate, Scope, SessionId, SetLimit,
    SqliteStore, Store, Write,
};

use crate::steps::Steps;

/// The number of tasks that are held back, each in a group of its own or all in one group.
const MANY: usize = 10_000;
/// The number of round trips of which the cheapest counts, because others include occasional work.
const LIVES: usize = 10;
/// The longest period of a rate.
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// Shows: T9
/// Beats: saturated-group
#[tokio::test]
async fn behind_groups_that_run_as_much_as_they_may_a_life_takes_no_more_steps() {
    assert_no_dearer(async |bench, tasks| {
        bench.set(groups().concurrency(1)).await;
        bench.submit(tasks, group).await;
        bench.claim_all().await;
        bench.submit(tasks, group).await;
    })
    .await;
}

/// Shows: T9
/// Beats: saturated-group
#[tokio::test]
async fn behind_groups_whose_rate_lets_nothing_start_a_life_takes_no_more_steps() {
    assert_no_dearer(async |bench, tasks| {
        bench.set(groups().rate(Rate::new(1, MONTH).burst(1))).await;
        bench.submit(tasks, group).await;
        let ends = bench.claim_all().await;
        bench.store.apply(ends.iter().map(complete).collect()).await.unwrap();
        bench.submit(tasks, group).await;
    })
    .await;
}

/// Shows: T9, T14
/// Beats: saturated-group
#[tokio::test]
async fn behind_the_tasks_of_a_paused_group_a_life_takes_no_more_steps() {
    assert_no_dearer(async |bench, tasks| {
        bench.store.apply(vec![Write::Pause { scope: Scope::Group(group(0)), until: None }]).await.unwrap();
        bench.submit(tasks, |_| group(0)).await;
    })
    .await;
}

/// Shows: T9
/// Beats: saturated-group
#[tokio::test]
async fn behind_groups_whose_kind_runs_as_much_as_it_may_a_life_takes_no_more_steps() {
    assert_no_dearer(async |bench, tasks| {
        bench.set(SetLimit::new(LimitScope::Kind(name("other"))).concurrency(1)).await;
        bench.submit(1, group).await;
        bench.claim_all().await;
        bench.submit(tasks, group).await;
    })
    .await;
}

/// Checks that a round trip behind many held-back tasks takes at most a tenth more steps than one
/// behind few.
async fn assert_no_dearer(hold_back: impl AsyncFn(&Bench, usize)) {
    let (few, many) = (life_behind(1, &hold_back).await, life_behind(MANY, &hold_back).await);
    assert!(few > 0, "steps are counted");
    assert!(many <= few + few / 10, "a life takes {many} steps behind {MANY} tasks, and {few} behind one");
}

/// Returns the steps of the cheapest round trip of a task, from its submit to its end, behind this
/// many held-back tasks.
async fn life_behind(tasks: usize, hold_back: &impl AsyncFn(&Bench, usize)) -> u64 {
    let bench = Bench::open().await;
    hold_back(&bench, tasks).await;
    let mut fewest = u64::MAX;
    for _ in 0..LIVES {
        let before = bench.steps.so_far();
        let mail = NewTask { group: Some(name("mail")), ..NewTask::new("mail").unwrap() };
        bench.store.apply(vec![Write::Submit(Box::new(mail))]).await.unwrap();
        let claimed = bench.claim(1).await;
        assert_eq!(claimed[0].kind.as_str(), "mail", "the others are held back");
        bench.store.apply(vec![complete(&claimed[0])]).await.unwrap();
        fewest = fewest.min(bench.steps.so_far() - before);
    }
    fewest
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn group(number: usize) -> Name {
    name(&format!("tenant-{number}"))
}

/// Returns a limit that applies to each group separately.
fn groups() -> SetLimit {
    SetLimit::new(LimitScope::Groups("tenant-".to_owned()))
}

fn complete(task: &ClaimedTask) -> Write {
    Write::Complete { lease: task.lease, result: None }
}

/// A store whose steps are counted, and a session.
struct Bench {
    steps: Steps,
    store: SqliteStore,
    session: SessionId,
    /// The directory is removed after the store is closed.
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let steps = Steps::of(&path);
        let options = SqliteStore::options().durability(Durability::Normal).memory_tasks(0);
        let store = options.open(&path).await.unwrap();
        let open = Write::OpenSession(OpenSession::new("test", Duration::from_secs(3600)));
        let opened = store.apply(vec![open]).await.unwrap().remove(0);
        let Outcome::SessionOpened(session) = opened else { panic!("a session answered {opened:?}") };
        Self { steps, store, session, _directory: directory }
    }

    async fn set(&self, limit: SetLimit) {
        self.store.apply(vec![Write::SetLimit(limit)]).await.unwrap();
    }

    /// Submits tasks, whose groups depend on their numbers.
    async fn submit(&self, tasks: usize, group: impl Fn(usize) -> Name) {
        let task = |number| NewTask { group: Some(group(number)), ..NewTask::new("other").unwrap() };
        self.store.apply((0..tasks).map(|number| Write::Submit(Box::new(task(number)))).collect()).await.unwrap();
    }

    async fn claim(&self, limit: usize) -> Vec<ClaimedTask> {
        match self.store.apply(vec![Write::Claim(Claim::any(self.session, limit))]).await.unwrap().remove(0) {
            Outcome::Claimed(claimed) => claimed.tasks,
            other => panic!("a claim answered {other:?}"),
        }
    }

    /// Claims every task that may start.
    async fn claim_all(&self) -> Vec<ClaimedTask> {
        let mut all = Vec::new();
        loop {
            let claimed = self.claim(4096).await;
            if claimed.is_empty() {
                return all;
            }
            all.extend(claimed);
        }
    }
}
