//! Ends of tasks that are written with the turns to which they lead, and their commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use onward::orchestration::{OrchestrationContext, try_join_all};
use onward::workflow::template::TemplateFile;
use onward::{Context, Engine, Failure, TaskId, TaskState};
use onward_store::{
    Ended, MemoryStore, Outcome, Recipient, Signal, SqliteStore, Store, StoreDecorator, StoreFuture, StoreReads,
    TaskResult, Write,
};
use serde_json::{Value, json};

use crate::fixture::{TestStore, start as start_run, stop, task};
use crate::orchestrations::{Double, Work, start};

on_every_store! {
    an_activity_costs_one_commit,
    a_step_of_a_workflow_costs_one_commit,
    a_workflow_of_four_steps_costs_six_commits,
    a_signal_before_an_end_loses_nothing_of_an_orchestration,
    a_signal_before_an_end_loses_nothing_of_a_run,
    a_result_too_large_for_a_report_reaches_the_code,
}

/// A store that counts the calls that write something, except renewals and sweeps. It can send a
/// signal to the parent of a task just before the task's end is written.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn Store>,
    calls: AtomicU64,
    /// The ends that were written with a turn, and those whose turn was not written.
    ends: Mutex<(u64, u64)>,
    /// True if a signal comes before each end with a turn.
    signals: bool,
}

impl Counting {
    fn of(inner: Arc<dyn Store>, signals: bool) -> Arc<Self> {
        Arc::new(Self { inner, calls: AtomicU64::new(0), ends: Mutex::default(), signals })
    }

    /// Returns the numbers of ends with a turn and without the turn that was planned.
    fn ends(&self) -> (u64, u64) {
        *self.ends.lock().unwrap()
    }

    fn note(&self, outcome: &Outcome) {
        if let Outcome::Ended(Ended { turned, .. }) = outcome {
            let mut ends = self.ends.lock().unwrap();
            *(if turned.is_some() { &mut ends.0 } else { &mut ends.1 }) += 1;
        }
    }

    async fn signal(&self, to: TaskId) {
        let name = onward_store::Name::new("noise").unwrap();
        let signal = Signal { to: Recipient::Task(to), name, payload: "null".into() };
        self.inner.apply(vec![Write::Signal(Box::new(signal))]).await.unwrap();
    }
}

impl StoreDecorator for Counting {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move {
            let counts = writes.iter().any(|write| !matches!(write, Write::RenewSession { .. } | Write::Sweep));
            self.calls.fetch_add(u64::from(counts), Ordering::SeqCst);
            for write in &writes {
                if let Write::EndWithTurn(end) = write
                    && self.signals
                {
                    self.signal(end.turn.lease.task).await;
                }
            }
            let outcomes = self.inner.apply(writes).await?;
            outcomes.iter().for_each(|outcome| self.note(outcome));
            Ok(outcomes)
        })
    }
}

async fn ten_doublings(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let mut number = work.0;
    for _ in 0..10 {
        number = context.activity(Double(number)).await?;
    }
    Ok(number.to_string())
}

/// Returns an engine with the orchestration of ten activities in a row.
async fn engine_of_activities(store: &Arc<Counting>) -> Engine {
    let engine = Engine::builder().store(store.clone()).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(ten_doublings);
    engine
}

/// Returns an engine with a workflow of steps in a row, each of which doubles a number.
async fn engine_of_steps(store: &Arc<Counting>, steps: u64) -> Engine {
    let engine = Engine::builder().store(store.clone()).open().await.unwrap();
    let first = "- {task: double, with: '${{ input }}'}".to_owned();
    let later = (1..steps).map(|step| format!("- {{task: double, with: '${{{{ steps.step_{step}.result }}}}'}}"));
    let template = std::iter::once(first).chain(later).collect::<Vec<_>>().join("\n");
    engine.add_workflow(TemplateFile::read("chain.yaml", &template).unwrap());
    engine.handle("double", |context: Context| async move {
        let number: u64 = serde_json::from_slice(context.payload()).unwrap();
        Ok(json!(number * 2).to_string())
    });
    engine
}

/// Waits for the end of a task, and returns its result.
async fn result(engine: &Engine, task: TaskId) -> Value {
    let record = engine.wait(task).await.unwrap();
    assert_eq!(record.state, TaskState::Completed, "{:?}", record.errors);
    serde_json::from_slice(record.result.bytes().unwrap()).unwrap()
}

async fn commits_of_activities(store: Arc<dyn Store>) -> u64 {
    let store = Counting::of(store, false);
    let engine = engine_of_activities(&store).await;
    let run = start_run(&engine);
    // The first chain opens the session.
    let task = start(&engine).await;
    result(&engine, task).await;
    let before = store.calls.load(Ordering::SeqCst);
    let task = start(&engine).await;
    assert_eq!(result(&engine, task).await, json!("7168"));
    let commits = store.calls.load(Ordering::SeqCst) - before;
    stop(&engine, run).await;
    assert_eq!(store.ends(), (20, 0));
    commits
}

/// The start with its claim, the first turn with the first claim, and the end of each activity.
const COMMITS: u64 = 12;

/// Shows: D11
async fn an_activity_costs_one_commit(store: TestStore) {
    let commits = commits_of_activities(store.shared()).await;
    assert!(commits <= COMMITS, "{commits} commits");
}

/// Shows: D11
#[tokio::test]
async fn an_activity_costs_one_commit_that_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("onward.db")).await.unwrap();
    let commits = commits_of_activities(Arc::new(store)).await;
    assert!(commits <= COMMITS, "{commits} commits");
}

/// Returns the commits of a run whose template is stored.
async fn commits_of_steps(store: Arc<dyn Store>, steps: u64) -> u64 {
    let store = Counting::of(store, false);
    let engine = engine_of_steps(&store, steps).await;
    let run = start_run(&engine);
    // The first run also stores the template.
    let first = engine.start_run("chain").input(&json!(1)).await.unwrap().id;
    result(&engine, first).await;
    let before = store.calls.load(Ordering::SeqCst);
    let second = engine.start_run("chain").input(&json!(7)).await.unwrap().id;
    assert_eq!(result(&engine, second).await, json!(7 << steps));
    let commits = store.calls.load(Ordering::SeqCst) - before;
    stop(&engine, run).await;
    assert_eq!(store.ends(), (2 * steps, 0));
    commits
}

/// Shows: W2
async fn a_step_of_a_workflow_costs_one_commit(store: TestStore) {
    let commits = commits_of_steps(store.shared(), 10).await;
    assert!(commits <= COMMITS, "{commits} commits");
}

/// Shows: W2
async fn a_workflow_of_four_steps_costs_six_commits(store: TestStore) {
    let commits = commits_of_steps(store.shared(), 4).await;
    assert!(commits <= 6, "{commits} commits");
}

/// Shows: W2
#[tokio::test]
async fn a_step_of_a_workflow_costs_one_commit_that_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("onward.db")).await.unwrap();
    let commits = commits_of_steps(Arc::new(store), 10).await;
    assert!(commits <= COMMITS, "{commits} commits");
}

/// A step can end on one thread before the turn that submitted it has parked its run on the other.
///
/// Shows: W2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_two_threads_each_step_ends_together_with_its_turn() {
    const RUNS: u64 = 200;
    let store = Counting::of(Arc::new(MemoryStore::new()), false);
    let engine = engine_of_steps(&store, 4).await;
    let run = start_run(&engine);
    for number in 0..RUNS {
        let id = engine.start_run("chain").input(&json!(number)).await.unwrap().id;
        assert_eq!(result(&engine, id).await, json!(number << 4));
    }
    stop(&engine, run).await;
    assert_eq!(store.ends(), (4 * RUNS, 0));
}

async fn five_doublings_at_once(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let doubled = try_join_all((0..5).map(|_| context.activity(Double(work.0)))).await?;
    Ok(doubled.iter().sum::<u32>().to_string())
}

/// The first of the ends that come together could be planned, but then they need two turns.
///
/// Shows: D11
#[tokio::test]
async fn ends_that_come_together_are_soon_planned_no_more() {
    const RUNS: u64 = 40;
    let store = Counting::of(Arc::new(MemoryStore::new()), false);
    let engine = Engine::builder().store(store.clone()).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(five_doublings_at_once);
    let run = start_run(&engine);
    for _ in 0..RUNS {
        let task = start(&engine).await;
        assert_eq!(result(&engine, task).await, json!("70"));
    }
    stop(&engine, run).await;
    let (with_turn, without) = store.ends();
    assert!(with_turn + without < RUNS / 2, "{with_turn} ends with a turn, {without} without the planned one");
}

/// Shows: D2
async fn a_signal_before_an_end_loses_nothing_of_an_orchestration(store: TestStore) {
    let store = Counting::of(store.shared(), true);
    let engine = engine_of_activities(&store).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&engine, task).await, json!("7168"));
    let (with_turn, alone) = store.ends();
    assert!(with_turn == 0 && alone > 0, "{with_turn} with a turn, {alone} alone");
    assert_eq!(store.inner.instance(task).await.unwrap().unwrap().received, 10 + alone);
}

/// Shows: W2
async fn a_signal_before_an_end_loses_nothing_of_a_run(store: TestStore) {
    let store = Counting::of(store.shared(), true);
    let engine = engine_of_steps(&store, 10).await;
    let run = engine.start_run("chain").input(&json!(7)).await.unwrap().id;
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&engine, run).await, json!(7168));
    let (with_turn, alone) = store.ends();
    assert!(with_turn == 0 && alone > 0, "{with_turn} with a turn, {alone} alone");
    assert_eq!(store.inner.instance(run).await.unwrap().unwrap().received, 10 + alone);
}

/// Shows: D2
async fn a_result_too_large_for_a_report_reaches_the_code(store: TestStore) {
    let counting = Counting::of(store.shared(), true);
    let engine = Engine::builder().store(counting.clone()).open().await.unwrap();
    let large = "x".repeat(onward_store::bounds::REPORTED_RESULT + 1);
    let (payload, size) = (json!(large).to_string(), large.len());
    engine.handle("large", move |_: Context| std::future::ready(Ok(payload.clone())));
    engine.orchestrate(move |_: Work, context: OrchestrationContext| async move {
        let large: String = context.activity_task(task("large")).await?;
        Ok(large.len().to_string())
    });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&engine, task).await, json!(size.to_string()));
    assert_eq!(counting.ends(), (0, 1));
    assert!(matches!(store.task(TaskId(task.0 + 1)).await.unwrap().unwrap().result, TaskResult::Value(_)));
}
