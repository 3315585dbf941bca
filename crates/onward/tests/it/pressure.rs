//! Pressure that holds back less urgent tasks, and bytes that tasks read and write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use onward::pressure::{PressureFn, Throttle};
use onward::task::{Io, IoKind, WaitReason};
use onward::{Context, Engine, EngineBuilder, Failure, NewTask, Priority, TaskId, TaskState};

use crate::fixture::{Gate, SECOND, TestStore, record, start, state, stop, submit, task};

on_every_store! {
    under_pressure_only_what_is_urgent_starts_and_the_rest_when_it_falls,
    what_is_held_back_starts_when_it_has_waited_long_enough,
    a_run_until_idle_waits_for_what_pressure_holds_back,
    sources_are_asked_while_something_runs_and_not_while_nothing_does,
    a_snapshot_shows_the_pressure_and_what_it_lets_start,
    an_engine_reports_that_a_task_waits_because_of_pressure,
    what_was_moved_beyond_the_bandwidth_holds_back_what_follows_until_it_is_worked_off,
    what_a_task_is_expected_to_move_counts_from_its_start,
    what_a_handler_has_moved_stays_with_its_task,
}

/// A source of pressure that a test sets, and that counts its readings.
#[derive(Clone, Default)]
struct Dial {
    percent: Arc<AtomicU32>,
    asked: Arc<AtomicUsize>,
}

impl Dial {
    fn at(percent: u32) -> Self {
        let dial = Self::default();
        dial.set(percent);
        dial
    }

    fn set(&self, percent: u32) {
        self.percent.store(percent, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn source(&self) -> PressureFn {
        let dial = self.clone();
        PressureFn::new("dial", move || {
            dial.asked.fetch_add(1, Ordering::SeqCst);
            f32::from(u16::try_from(dial.percent.load(Ordering::SeqCst)).unwrap()) / 100.0
        })
    }
}

async fn open(builder: EngineBuilder, gate: &Gate) -> Engine {
    let engine = builder.open().await.unwrap();
    engine.handle("any", gate.handler());
    engine
}

async fn submit_at(engine: &Engine, priority: u8) -> TaskId {
    engine.submit_task(NewTask { priority: Priority(priority), ..task("any") }).await.unwrap().id()
}

/// Moves the clock until `handlers` handlers have entered a gate.
async fn entered(store: &TestStore, gate: &Gate, handlers: u32) {
    let gate = gate.clone();
    store.advance_until(SECOND / 10, tokio::spawn(async move { gate.entered(handlers).await })).await;
}

/// Lets the engine act while `seconds` pass.
async fn pass(store: &TestStore, seconds: u32) {
    for _ in 0..seconds * 10 {
        store.advance(SECOND / 10).await;
    }
}

/// Shows: T18
async fn under_pressure_only_what_is_urgent_starts_and_the_rest_when_it_falls(store: TestStore) {
    let (dial, gate) = (Dial::at(80), Gate::new());
    // There is one slot, which a held-back task must not take.
    let engine = open(store.builder().concurrency(1).pressure_source(dial.source()), &gate).await;
    let normal = submit_at(&engine, 128).await;
    let high = submit_at(&engine, 192).await;
    let run = start(&engine);
    gate.entered(1).await;
    assert_eq!(state(&store, high).await, TaskState::Running);
    gate.open(1);
    pass(&store, 5).await;
    assert_eq!((state(&store, high).await, state(&store, normal).await), (TaskState::Completed, TaskState::Waiting));
    dial.set(10);
    entered(&store, &gate, 1).await;
    assert_eq!(state(&store, normal).await, TaskState::Running);
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T18
async fn what_is_held_back_starts_when_it_has_waited_long_enough(store: TestStore) {
    let gate = Gate::new();
    let engine = open(store.builder().pressure_source(Dial::at(50).source()), &gate).await;
    let run = start(&engine);
    let below = submit_at(&engine, 127).await;
    pass(&store, 59).await;
    assert_eq!(state(&store, below).await, TaskState::Waiting);
    entered(&store, &gate, 1).await;
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T18
async fn a_run_until_idle_waits_for_what_pressure_holds_back(store: TestStore) {
    let (dial, gate) = (Dial::at(80), Gate::new());
    gate.open(1);
    let engine = open(store.builder().pressure_source(dial.source()), &gate).await;
    let held_back = submit_at(&engine, 128).await;
    let idle = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run_until_idle().await.unwrap() })
    };
    pass(&store, 3).await;
    assert!(!idle.is_finished());
    dial.set(0);
    assert_eq!(store.advance_until(SECOND / 10, idle).await.completed, 1);
    assert_eq!(state(&store, held_back).await, TaskState::Completed);
}

/// Shows: T18
async fn sources_are_asked_while_something_runs_and_not_while_nothing_does(store: TestStore) {
    let (dial, gate) = (Dial::at(0), Gate::new());
    let engine = open(store.builder().pressure_source(dial.source()), &gate).await;
    let run = start(&engine);
    let id = submit(&engine, "any").await;
    gate.entered(1).await;
    let before = dial.asked();
    pass(&store, 10).await;
    let asked = dial.asked() - before;
    assert!((8..=11).contains(&asked), "{asked} times in ten seconds");
    gate.open(1);
    engine.wait(id).await.unwrap();
    pass(&store, 2).await;
    let before = dial.asked();
    pass(&store, 100).await;
    assert_eq!(dial.asked(), before);
    stop(&engine, run).await;
}

/// Shows: T18, T19
async fn a_snapshot_shows_the_pressure_and_what_it_lets_start(store: TestStore) {
    let gate = Gate::new();
    let builder = store.builder().pressure_source(Dial::at(20).source()).pressure_source(Dial::at(60).source());
    let engine = open(builder.throttle(Throttle::none().from(0.6, Priority(99))), &gate).await;
    let run = start(&engine);
    submit(&engine, "any").await;
    gate.entered(1).await;
    let pressure = engine.snapshot().pressure;
    assert_eq!((pressure.highest, pressure.least, pressure.sources.len()), (0.6, Some(Priority(99)), 2));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T18, B6
async fn an_engine_reports_that_a_task_waits_because_of_pressure(store: TestStore) {
    let gate = Gate::new();
    let engine = open(store.builder().pressure_source(Dial::at(80).source()), &gate).await;
    let run = start(&engine);
    let high = submit_at(&engine, 255).await;
    gate.entered(1).await;
    let held_back = submit_at(&engine, 182).await;
    let submitted = record(&store, held_back).await.submitted_at;
    let reasons = engine.why(held_back).await.unwrap();
    let until = submitted.plus(Duration::from_secs(600));
    let pressure = WaitReason::Pressure { source: "dial".into(), percent: 80, least: Priority::HIGH, until };
    assert!(reasons.contains(&pressure), "{reasons:?}");
    assert!(!engine.why(high).await.unwrap().contains(&pressure));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T18
async fn what_was_moved_beyond_the_bandwidth_holds_back_what_follows_until_it_is_worked_off(store: TestStore) {
    let gate = Gate::new();
    let engine = open(store.builder().bandwidth(IoKind::NetworkReceived, 1000), &gate).await;
    engine.handle("download", |context: Context| async move {
        context.record_received(6_000);
        context.record_received(4_000);
        Ok::<(), Failure>(())
    });
    let run = start(&engine);
    let download = submit(&engine, "download").await;
    engine.wait(download).await.unwrap();
    // The engine notices the pressure at its next check, a second later.
    pass(&store, 1).await;
    let began = store.clock().steady();
    let next = submit(&engine, "any").await;
    let urgent = submit_at(&engine, 255).await;
    gate.entered(1).await;
    assert_eq!((state(&store, urgent).await, state(&store, next).await), (TaskState::Running, TaskState::Waiting));
    entered(&store, &gate, 1).await;
    let waited = store.clock().steady() - began;
    assert!((SECOND * 6..SECOND * 10).contains(&waited), "{waited:?}");
    gate.open(2);
    stop(&engine, run).await;
}

/// Shows: T18
async fn what_a_task_is_expected_to_move_counts_from_its_start(store: TestStore) {
    let gate = Gate::new();
    let engine = open(store.builder().bandwidth(IoKind::DiskWritten, 1000), &gate).await;
    let run = start(&engine);
    let io = Io { disk_written: 10_000, ..Io::default() };
    engine.submit_task(NewTask { io, ..task("any") }).await.unwrap();
    gate.entered(1).await;
    pass(&store, 1).await;
    let next = submit(&engine, "any").await;
    pass(&store, 3).await;
    assert_eq!(state(&store, next).await, TaskState::Waiting);
    assert_eq!(engine.snapshot().pressure.sources[0].name, "disk written");
    entered(&store, &gate, 1).await;
    gate.open(2);
    stop(&engine, run).await;
}

/// Shows: T18, T17
async fn what_a_handler_has_moved_stays_with_its_task(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("copy", |context: Context| async move {
        assert_eq!(context.expected_io().disk_read, 100);
        context.record_read(40);
        context.record_read(60);
        context.record_written(99);
        context.record_sent(1);
        Ok::<(), Failure>(())
    });
    let expected = Io { disk_read: 100, ..Io::default() };
    let id = engine.submit_task(NewTask { io: expected, ..task("copy") }).await.unwrap().id();
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    let moved = Io { disk_read: 100, disk_written: 99, network_received: 0, network_sent: 1 };
    assert_eq!((record.expected_io, record.io), (expected, Some(moved)));
}

/// Shows: T18
#[tokio::test]
async fn a_throttle_and_a_bandwidth_out_of_their_range_are_refused() {
    let throttle = Engine::builder().memory().throttle(Throttle::none().from(1.5, Priority::HIGH)).open().await;
    assert!(throttle.unwrap_err().to_string().contains("1.5"));
    let bandwidth = Engine::builder().memory().bandwidth(IoKind::DiskRead, 0).open().await;
    assert!(bandwidth.unwrap_err().to_string().contains("disk read"));
}
