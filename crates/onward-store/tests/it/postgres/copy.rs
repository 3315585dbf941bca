//! Copies of stores to another place, also on the other backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterTurn, Claim, CopyEnd, EventCursor, ManualClock, NewTask, OpenSession, Outcome, PostgresStore, Prune,
    Recipient, Signal, SqliteStore, Store, StoreReads, Submitted, TaskFilter, TaskId, Turn, Write, copy,
};
use onward_testkit::model_based::{self, Step};
use onward_testkit::{Conditions, Fixture, MemoryFixture, Opening, StoreLocation, close_sessions, soak};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::schemas::new_name;
use super::server::url;
use super::trouble::connect;

/// The number of stores that are generated and copied. `ONWARD_SEQUENCES` sets another number.
const STORES: u64 = 3;

/// The steps of the sequence that makes a store, and the steps played on both stores after the
/// copy.
const STEPS: [usize; 2] = [60, 5];

/// A store at a place that outlives it.
#[derive(Debug, Clone)]
enum Kept {
    File(PathBuf),
    Schema(String),
}

impl Kept {
    fn end(&self) -> CopyEnd {
        let end = match self {
            Self::File(path) => CopyEnd::sqlite(path),
            Self::Schema(url) => CopyEnd::postgres(url),
        };
        end.clock(Arc::<ManualClock>::default())
    }
}

impl Fixture for Kept {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(self.clone())
    }
}

impl StoreLocation for Kept {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let Conditions { clock, payload_limit, .. } = conditions.clone();
        Box::pin(async move {
            let store: Arc<dyn Store> = match self {
                Self::File(path) => {
                    let options = SqliteStore::options().clock(clock).payload_limit(payload_limit);
                    Arc::new(options.open(path).await.unwrap())
                }
                Self::Schema(url) => {
                    let options = PostgresStore::options().clock(clock).payload_limit(payload_limit);
                    Arc::new(options.open(url).await.unwrap())
                }
            };
            close_sessions(&*store).await;
            store
        })
    }
}

fn made_up(seed: u64, count: u64) -> Vec<[Vec<Step>; 2]> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let mut sequence = |steps| model_based::sequences(steps).new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| STEPS.map(&mut sequence)).collect()
}

/// Plays a sequence on two stores and compares everything that can be read of them: events from the
/// start, tasks from the first.
async fn play(one: &dyn Fixture, other: &dyn Fixture, steps: Vec<Step>) {
    // The first step lets the player learn which tasks exist.
    let steps: Vec<Step> = std::iter::once(Step::Advance(Duration::ZERO)).chain(steps).collect();
    if let Err(difference) = model_based::check(one, other, &steps).await {
        panic!("{difference}");
    }
}

/// Closes the sessions that a comparison left open, and copies the store.
async fn copied(from: &Kept, to: Kept) -> Kept {
    drop(from.clone().open(&Conditions::default()).await);
    copy(from.end(), to.end(), |_, _| {}).await.unwrap();
    if let Kept::File(path) = &to {
        let report = SqliteStore::open(path).await.unwrap().check().await.unwrap();
        assert!(report.integrity.is_empty() && report.consistency.is_empty(), "{report:#?}");
    }
    to
}

/// Shows: B2
#[tokio::test]
async fn a_copied_store_answers_as_the_old_one_and_goes_on_as_it_would() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let seed = soak::seed();
    println!("seed={seed}");
    let file = |name: &str, number: usize| Kept::File(directory.path().join(format!("{name}{number}.db")));
    let schema = || Kept::Schema(format!("{url}#{}", new_name()));
    let stores = made_up(seed, soak::number("ONWARD_SEQUENCES").unwrap_or(STORES));
    for (number, [before, after]) in stores.into_iter().enumerate() {
        let old = file("old", number);
        play(&old, &MemoryFixture, before).await;
        let on_server = copied(&old, schema()).await;
        let beside = copied(&old, file("beside", number)).await;
        play(&old, &on_server, after.clone()).await;
        let back = copied(&on_server, file("back", number)).await;
        let again = copied(&on_server, schema()).await;
        play(&beside, &copied(&beside, schema()).await, after.clone()).await;
        play(&on_server, &back, Vec::new()).await;
        play(&again, &back, after).await;
    }
}

async fn submit(store: &dyn Store) -> TaskId {
    let outcomes = store.apply(vec![Write::Submit(Box::new(NewTask::new("mail").unwrap()))]).await.unwrap();
    let Outcome::Submitted(Submitted::Inserted { id }) = outcomes[0] else { panic!("{outcomes:?}") };
    id
}

async fn file_store(path: &Path) -> SqliteStore {
    SqliteStore::open(path).await.unwrap()
}

/// This also holds for numbers of removed tasks.
///
/// Beats: reused-ids
#[tokio::test]
async fn a_copied_store_gives_no_number_again() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let paths = ["one.db", "two.db"].map(|name| directory.path().join(name));
    let schema = format!("{url}#{}", new_name());
    let store = file_store(&paths[0]).await;
    let open = Write::OpenSession(OpenSession::new("worker", Duration::from_secs(10)));
    let opened = store.apply(vec![open.clone()]).await.unwrap();
    let gone = submit(&store).await;
    store.apply(vec![Write::Delete { task: gone }]).await.unwrap();
    drop(store);
    copy(CopyEnd::sqlite(&paths[0]), CopyEnd::postgres(&schema), |_, _| {}).await.unwrap();
    copy(CopyEnd::postgres(&schema), CopyEnd::sqlite(&paths[1]), |_, _| {}).await.unwrap();
    let stores: [Box<dyn Store>; 2] =
        [Box::new(PostgresStore::open(&schema).await.unwrap()), Box::new(file_store(&paths[1]).await)];
    for store in stores {
        assert!(submit(&*store).await > gone);
        let (Outcome::SessionOpened(before), Outcome::SessionOpened(now)) =
            (&opened[0], &store.apply(vec![open.clone()]).await.unwrap()[0])
        else {
            panic!("no session")
        };
        assert!(now > before);
    }
}

/// The task with the higher number ended first, in the same call.
#[tokio::test]
async fn a_copied_store_forgets_what_ended_in_one_call_in_the_order_in_which_it_ended() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let schema = format!("{url}#{}", new_name());
    let store = file_store(&path).await;
    let (last, first) = (submit(&store).await, submit(&store).await);
    store.apply(vec![Write::Cancel { task: first }, Write::Cancel { task: last }]).await.unwrap();
    drop(store);
    copy(CopyEnd::sqlite(&path), CopyEnd::postgres(&schema), |_, _| {}).await.unwrap();
    let stores: [Box<dyn Store>; 2] =
        [Box::new(PostgresStore::open(&schema).await.unwrap()), Box::new(file_store(&path).await)];
    for store in stores {
        let prune = Prune { older_than: None, keep: Some(1), limit: 10 };
        store.apply(vec![Write::Prune(prune)]).await.unwrap();
        assert!(store.task(first).await.unwrap().is_none());
        assert!(store.task(last).await.unwrap().is_some());
    }
}

/// A prune keeps the entry before its own, which contains events of the first task.
#[tokio::test]
async fn a_copied_store_forgets_no_event_that_the_old_one_keeps() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db");
    let schema = format!("{url}#{}", new_name());
    let old = PostgresStore::open(&schema).await.unwrap();
    let first = submit(&old).await;
    old.apply(vec![Write::Cancel { task: first }]).await.unwrap();
    let second = submit(&old).await;
    drop(old);
    copy(CopyEnd::postgres(&schema), CopyEnd::sqlite(&path), |_, _| {}).await.unwrap();
    let stores: [Box<dyn Store>; 2] =
        [Box::new(PostgresStore::open(&schema).await.unwrap()), Box::new(file_store(&path).await)];
    for store in stores {
        let prune = Prune { older_than: None, keep: Some(0), limit: 10 };
        store.apply(vec![Write::Cancel { task: second }, Write::Prune(prune)]).await.unwrap();
        let page = store.events(EventCursor::START, 10).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.task).collect::<Vec<_>>(), [first, second]);
    }
}

#[tokio::test]
async fn a_store_with_a_worker_is_not_copied() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let schema = format!("{url}#{}", new_name());
    let stores: [(CopyEnd, Box<dyn Store>); 2] = [
        (CopyEnd::sqlite(&path), Box::new(file_store(&path).await)),
        (CopyEnd::postgres(&schema), Box::new(PostgresStore::open(&schema).await.unwrap())),
    ];
    for (from, store) in stores {
        store.apply(vec![Write::OpenSession(OpenSession::new("busy", Duration::from_secs(600)))]).await.unwrap();
        let to = directory.path().join("new.db");
        let error = copy(from, CopyEnd::sqlite(&to), |_, _| {}).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("busy"), "{error}");
        assert!(!to.exists());
    }
}

/// Runs a statement on a connection of its own, from code that cannot await.
fn by_another_process(url: &str, statement: &str) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { connect(url).await.batch_execute(statement).await.unwrap() });
        });
    });
}

/// Shows: B2
#[tokio::test]
async fn a_copy_leaves_nothing_behind_in_the_inbox_without_a_word() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (to, schema) = (directory.path().join("new.db"), new_name());
    let from = CopyEnd::postgres(format!("{url}#{schema}"));
    submit(&PostgresStore::open(&format!("{url}#{schema}")).await.unwrap()).await;
    let mut late = Some(format!("SELECT {schema}.onward_submit('mail')"));
    let meanwhile = |_, _| late.take().into_iter().for_each(|submit| by_another_process(&url, &submit));
    let error = copy(from.clone(), CopyEnd::sqlite(&to), meanwhile).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("inbox"), "{error}");
    assert!(!to.exists());
    let copied = copy(from, CopyEnd::sqlite(&to), |_, _| {}).await.unwrap();
    assert_eq!(copied.tasks, 2, "opening the store took it in");
}

#[tokio::test]
async fn nothing_is_written_over() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let schema = format!("{url}#{}", new_name());
    submit(&file_store(&path).await).await;
    let on_server = PostgresStore::open(&schema).await.unwrap();
    submit(&on_server).await;
    for to in [CopyEnd::sqlite(&path), CopyEnd::postgres(&schema)] {
        let error = copy(CopyEnd::sqlite(&path), to, |_, _| {}).await.unwrap_err();
        assert!(error.is_invalid(), "{error}");
    }
    assert_eq!(on_server.count(TaskFilter::default()).await.unwrap(), 1);
}

/// Neither tables nor a file are left.
#[tokio::test]
async fn a_copy_that_is_broken_off_leaves_nothing() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let store = file_store(&path).await;
    for _ in 0..3 {
        store.apply((0..400).map(|_| Write::Submit(Box::new(NewTask::new("mail").unwrap()))).collect()).await.unwrap();
    }
    drop(store);
    let schema = format!("{url}#{}", new_name());
    let file = directory.path().join("new.db");
    for to in [CopyEnd::sqlite(&file), CopyEnd::postgres(&schema)] {
        let (half, reached) = tokio::sync::oneshot::channel();
        let mut half = Some(half);
        let from = CopyEnd::sqlite(&path);
        let copying = tokio::spawn(async move {
            let broken_off = |done, all| {
                if done > all / 2 {
                    half.take().map(|half| half.send(()));
                    panic!("somebody breaks it off");
                }
            };
            copy(from, to, broken_off).await
        });
        reached.await.unwrap();
        assert!(copying.await.is_err(), "it was broken off");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("new.db")), "{left:?}");
    let error = PostgresStore::options().create(false).open(&schema).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

/// Makes an orchestration that is parked after a turn, with a status, a value, and an unconsumed
/// signal.
async fn orchestrate(store: &dyn Store) -> TaskId {
    let new = NewTask { orchestration: true, ..NewTask::new("order").unwrap() };
    let open = Write::OpenSession(OpenSession::new("worker", Duration::from_secs(10)));
    let outcomes = store.apply(vec![Write::Submit(Box::new(new)), open]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[1] else { panic!("{outcomes:?}") };
    let outcomes = store.apply(vec![Write::Claim(Claim::any(session, 1))]).await.unwrap();
    let Outcome::Claimed(claimed) = &outcomes[0] else { panic!("{outcomes:?}") };
    let lease = claimed.tasks[0].lease;
    let turn = Turn {
        events: 2,
        chunk: "two events".into(),
        status: Some("asked for payment".into()),
        values: vec![("total".to_owned(), Some("42".into()))],
        ..Turn::new(lease, 0, AfterTurn::Park { until: None })
    };
    let signal = Signal { to: Recipient::Task(lease.task), name: "paid".parse().unwrap(), payload: "yes".into() };
    let writes = vec![Write::Turn(Box::new(turn)), Write::Signal(Box::new(signal)), Write::CloseSession { session }];
    let outcomes = store.apply(writes).await.unwrap();
    assert!(matches!(&outcomes[..], [Outcome::Turned(_), Outcome::Done, Outcome::Done]), "{outcomes:?}");
    lease.task
}

/// Returns everything that can be read of an orchestration, and the messages for its next turn.
async fn reported(store: &dyn Store, task: TaskId) -> impl PartialEq + std::fmt::Debug + use<> {
    let instance = store.instance(task).await.unwrap().unwrap();
    let history = store.instance_history(task, 0, 10).await.unwrap();
    let open = Write::OpenSession(OpenSession::new("worker", Duration::from_secs(10)));
    let Outcome::SessionOpened(session) = store.apply(vec![open]).await.unwrap()[0] else { panic!("no session") };
    let outcomes = store.apply(vec![Write::Claim(Claim::any(session, 1))]).await.unwrap();
    let Outcome::Claimed(claimed) = &outcomes[0] else { panic!("{outcomes:?}") };
    let claimed = claimed.tasks[0].instance.clone().unwrap();
    // Closing the session releases the claimed orchestration.
    store.apply(vec![Write::CloseSession { session }]).await.unwrap();
    (instance, history, claimed)
}

/// Shows: B2
#[tokio::test]
async fn a_copied_store_has_orchestrations_with_history_mailbox_and_values() {
    let Some(url) = url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let paths = ["one.db", "two.db"].map(|name| directory.path().join(name));
    let schema = format!("{url}#{}", new_name());
    let store = file_store(&paths[0]).await;
    let task = orchestrate(&store).await;
    let before = reported(&store, task).await;
    drop(store);
    copy(CopyEnd::sqlite(&paths[0]), CopyEnd::postgres(&schema), |_, _| {}).await.unwrap();
    copy(CopyEnd::postgres(&schema), CopyEnd::sqlite(&paths[1]), |_, _| {}).await.unwrap();
    assert_eq!(reported(&PostgresStore::open(&schema).await.unwrap(), task).await, before);
    assert_eq!(reported(&file_store(&paths[1]).await, task).await, before);
}
