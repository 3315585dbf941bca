//! The metrics that an engine records, compared with their documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use onward::limits::Preemption;
use onward::orchestration::OrchestrationContext;
use onward::{Backoff, Failure, NewTask, Priority, RetryPolicy};
use onward_testkit::{Fault, FaultyStore, Side};

use crate::fixture::{Gate, HOUR, SECOND, TestStore, start, start_drain, stop, submit, task};
use crate::orchestrations;

on_every_store! {
    the_metrics_that_are_recorded_are_those_that_are_documented,
}

/// The recorded values, by name and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded(Arc<Mutex<BTreeMap<String, f64>>>);

struct Cell(Recorded, String);

impl Cell {
    fn change(&self, change: impl FnOnce(&mut f64)) {
        change(self.0.0.lock().unwrap().entry(self.1.clone()).or_default());
    }
}

#[expect(clippy::cast_precision_loss, reason = "tests count to ten")]
impl CounterFn for Cell {
    fn increment(&self, by: u64) {
        self.change(|value| *value += by as f64);
    }

    fn absolute(&self, to: u64) {
        self.change(|value| *value = to as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, by: f64) {
        self.change(|value| *value += by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| *value -= by);
    }

    fn set(&self, to: f64) {
        self.change(|value| *value = to);
    }
}

/// A histogram that counts its records.
impl HistogramFn for Cell {
    fn record(&self, _: f64) {
        self.change(|value| *value += 1.0);
    }
}

impl Recorded {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Cell(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }

    pub(crate) fn value(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

impl metrics::Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// Returns the metrics in the documentation of the API, as `name label,label`.
fn documented() -> BTreeSet<String> {
    let rows = include_str!("../../src/observe/telemetry.rs").lines().filter(|line| line.starts_with("//! | `onward_"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let labels = cells[2].replace([' ', '`', '–'], "");
        format!("{} {labels}", cells[1].trim_matches('`'))
    };
    rows.map(row).collect()
}

/// Returns the recorded metrics in that form.
fn recorded(all: &Recorded) -> BTreeSet<String> {
    let metric = |name: &String| {
        let (name, labels) = name.split_once(' ').unwrap();
        let labels: Vec<&str> = labels.split_whitespace().map(|label| label.split('=').next().unwrap()).collect();
        format!("{name} {}", labels.join(","))
    };
    all.0.lock().unwrap().keys().map(metric).collect()
}

/// Causes everything for which there is a metric.
async fn everything(store: &TestStore) {
    an_end_and_a_retry(store).await;
    a_firing(store).await;
    a_lost_lease(store).await;
    an_error_of_the_store(store).await;
    a_preemption(store).await;
    a_replay(store).await;
}

async fn an_end_and_a_retry(store: &TestStore) {
    let engine = store.engine().await;
    engine.handle("once", |_| async { Ok::<(), Failure>(()) });
    engine.handle("twice", |context| async move {
        if context.attempt() == 1 { Err(Failure::retryable("not yet")) } else { Ok(()) }
    });
    submit(&engine, "once").await;
    let retry = RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: std::time::Duration::ZERO } };
    engine.submit_task(NewTask { retry: Some(retry), ..task("twice") }).await.unwrap();
    assert_eq!(engine.drain().await.unwrap().completed, 2);
}

async fn a_firing(store: &TestStore) {
    let engine = store.builder().lease(HOUR * 24).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("report", gate.handler());
    engine.schedule("hourly").every(HOUR).task(task("report")).await.unwrap();
    let run = start(&engine);
    store.clock.advance(HOUR);
    gate.entered(1).await;
    gate.open(1);
    stop(&engine, run).await;
    engine.delete_schedule(&onward::Name::new("hourly").unwrap()).await.unwrap();
}

async fn a_lost_lease(store: &TestStore) {
    let engine = store.builder().shutdown_limit(HOUR * 3).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("late", gate.handler());
    submit(&engine, "late").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.stop();
    store.settled().await;
    store.clock.advance(HOUR * 2);
    store.apply(vec![onward_store::Write::Sweep]).await.unwrap();
    gate.open(1);
    run.await.unwrap();
}

async fn an_error_of_the_store(store: &TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).open().await.unwrap();
    engine.handle("once", |_| async { Ok::<(), Failure>(()) });
    submit(&engine, "once").await;
    faulty.fail_once(faulty.calls() + 1, Side::Before, Fault::Io);
    store.advance_until(SECOND, start_drain(&engine)).await;
}

async fn a_preemption(store: &TestStore) {
    let policy = Preemption { from: Priority(200), levels: 64 };
    let engine = store.builder().concurrency(1).preemption(policy).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("low", gate.stoppable()).handle("urgent", |_| async { Ok::<(), Failure>(()) });
    submit(&engine, "low").await;
    let run = start(&engine);
    gate.entered(1).await;
    let urgent = engine.submit_task(NewTask { priority: Priority(255), ..task("urgent") }).await.unwrap().id();
    let waiting = engine.clone();
    let ended = tokio::spawn(async move { drop(waiting.wait(urgent).await.unwrap()) });
    store.advance_until(SECOND / 10, ended).await;
    gate.open(1);
    stop(&engine, run).await;
}

async fn a_replay(store: &TestStore) {
    let code = |_, context: OrchestrationContext| async move {
        context.timer(SECOND).await;
        Ok(String::new())
    };
    let first = orchestrations::engine(store, code).await;
    let task = orchestrations::start(&first).await;
    first.run_until_idle().await.unwrap();
    store.clock.advance(SECOND);
    let second = orchestrations::engine(store, code).await;
    orchestrations::finish(&second, task).await.unwrap();
}

/// Shows: D10
async fn the_metrics_that_are_recorded_are_those_that_are_documented(store: TestStore) {
    let all = Recorded::default();
    let _installed = metrics::set_default_local_recorder(&all);
    everything(&store).await;
    assert_eq!(recorded(&all), documented());
}

#[test]
fn the_metrics_to_watch_are_among_those_that_are_documented() {
    let names: BTreeSet<String> =
        documented().iter().map(|metric| metric.split(' ').next().unwrap().to_owned()).collect();
    let guide = include_str!("../../../../docs/guides/operating.md");
    let watched: Vec<&str> = guide.split('`').filter(|word| word.starts_with("onward_")).collect();
    assert!(!watched.is_empty());
    for metric in watched {
        assert!(names.contains(metric.split('{').next().unwrap()), "{metric} is not among {names:?}");
    }
}
