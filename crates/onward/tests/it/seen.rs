//! Observation of tasks: events, progress, snapshots, application state.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward::observe::{Change, EventCursor};
use onward::{Failure, TaskId, TaskState};
use onward_store::{Prune, Write};
use onward_testkit::FaultyStore;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::fixture::{Gate, SECOND, TestStore, error, record, start, state, stop, submit, task};
use crate::orchestration_clients::Lines;

on_every_store! {
    a_slow_reader_misses_no_event,
    a_reader_goes_on_where_its_cursor_says,
    a_reader_that_a_prune_overtook_is_notified_once_and_continues,
    a_reader_is_woken_by_an_event,
    a_snapshot_shows_live_progress,
    the_last_progress_stays_with_an_ended_task,
    a_flood_of_progress_costs_next_to_no_writes,
    progress_reaches_the_store_while_the_handler_runs,
    a_handler_without_its_state_fails_with_the_name_of_the_type,
    a_handler_gets_the_state_that_the_engine_was_given,
    the_span_of_a_submit_of_several_has_their_count_and_numbers,
    the_end_of_an_attempt_is_reported_when_it_is_durable,
    the_spans_of_a_submit_and_of_its_attempt_have_the_number_of_the_task,
}

/// Shows: T16
/// Beats: lost-events
async fn a_slow_reader_misses_no_event(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("many", |_| async { Ok::<(), Failure>(()) });
    let mut events = engine.events(EventCursor::START);
    engine.submit_all(vec![task("many"); 2000]).await.unwrap();
    engine.drain().await.unwrap();
    let mut seen: BTreeMap<TaskId, Vec<Change>> = BTreeMap::new();
    while let Some(event) = events.try_next().await.unwrap() {
        seen.entry(event.task).or_default().push(event.change);
    }
    assert_eq!(seen.len(), 2000);
    for changes in seen.values() {
        assert_eq!(changes[..], [Change::Submitted, Change::Started { attempt: 1 }, Change::Completed]);
    }
}

/// Shows: T16
async fn a_reader_goes_on_where_its_cursor_says(store: TestStore) {
    let engine = store.engine().await;
    let mut events = engine.events(EventCursor::START);
    let first = submit(&engine, "any").await;
    assert_eq!(events.next().await.unwrap().task, first);
    let kept = events.cursor();
    let second = submit(&engine, "any").await;
    assert_eq!(engine.events(kept).next().await.unwrap().task, second);
}

/// Shows: T16
/// Beats: lost-events
async fn a_reader_that_a_prune_overtook_is_notified_once_and_continues(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |_| async { Ok(()) });
    let mut events = engine.events(EventCursor::START);
    submit(&engine, "k").await;
    events.next().await.unwrap();
    let kept = events.cursor();
    engine.run_until_idle().await.unwrap();
    let last = submit(&engine, "k").await;
    engine.run_until_idle().await.unwrap();
    let prune = Prune { keep: Some(0), older_than: None, limit: 10 };
    store.apply(vec![Write::Prune(prune)]).await.unwrap();
    for events in [&mut events, &mut engine.events(kept)] {
        let error = events.next().await.unwrap_err();
        assert!(error.events_forgotten().is_some(), "{error}");
        assert_eq!(events.cursor(), kept, "who goes on from here is told again");
        let event = events.next().await.unwrap();
        assert_eq!((event.task, event.change), (last, Change::Completed));
    }
}

/// Shows: T16
async fn a_reader_is_woken_by_an_event(store: TestStore) {
    let engine = store.engine().await;
    let mut events = engine.events(EventCursor::START);
    let reading = tokio::spawn(async move { events.next().await.unwrap() });
    store.settled().await;
    let id = submit(&engine, "any").await;
    assert_eq!(reading.await.unwrap().task, id);
}

/// Shows: T15, T19
async fn a_snapshot_shows_live_progress(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    let held = gate.clone();
    engine.handle("half", move |context| {
        let gate = held.clone();
        async move {
            context.progress_message(0.5, "halfway");
            gate.pass().await;
            Ok::<(), Failure>(())
        }
    });
    let id = submit(&engine, "half").await;
    let run = start(&engine);
    gate.entered(1).await;
    let running = engine.snapshot().running.remove(0);
    assert_eq!((running.id, running.fraction, running.message.as_deref()), (id, Some(0.5), Some("halfway")));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T15
async fn the_last_progress_stays_with_an_ended_task(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("flood", |context| async move {
        for step in 0..10_000_u16 {
            context.progress(f32::from(step) / 10_000.0);
        }
        context.progress_message(1.0, "all of it");
        Ok::<(), Failure>(())
    });
    let id = submit(&engine, "flood").await;
    engine.drain().await.unwrap();
    let progress = record(&store, id).await.progress.unwrap();
    assert_eq!((progress.fraction, progress.message.as_deref()), (Some(1.0), Some("all of it")));
}

/// Shows: T15
async fn a_flood_of_progress_costs_next_to_no_writes(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).open().await.unwrap();
    engine.handle("flood", |context| async move {
        for step in 0..1000_u16 {
            context.progress(f32::from(step) / 1000.0);
            tokio::task::yield_now().await;
        }
        Ok::<(), Failure>(())
    });
    submit(&engine, "flood").await;
    engine.drain().await.unwrap();
    // The calls are the submit, the session with the claim, a report, the end, and the end of the
    // session. A few more are allowed.
    assert!(faulty.calls() < 10, "{} calls", faulty.calls());
}

/// Shows: T15
async fn progress_reaches_the_store_while_the_handler_runs(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    let held = gate.clone();
    engine.handle("half", move |context| {
        let gate = held.clone();
        async move {
            context.progress(0.5);
            gate.pass().await;
            Ok::<(), Failure>(())
        }
    });
    let id = submit(&engine, "half").await;
    let run = start(&engine);
    gate.entered(1).await;
    while record(&store, id).await.progress.is_none() {
        store.advance(SECOND).await;
    }
    assert_eq!(state(&store, id).await, TaskState::Running);
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T20
async fn a_handler_without_its_state_fails_with_the_name_of_the_type(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("needs", |context| async move { context.state::<String>().map(drop) });
    let id = submit(&engine, "needs").await;
    engine.drain().await.unwrap();
    assert!(error(&store, id).await.contains("alloc::string::String"));
}

/// Shows: T20
async fn a_handler_gets_the_state_that_the_engine_was_given(store: TestStore) {
    let engine = store.engine().await;
    engine.state("from the engine".to_owned());
    engine.handle("needs", |context| async move { Ok::<_, Failure>(context.state::<String>()?.to_string()) });
    let id = submit(&engine, "needs").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"from the engine"[..]));
}

/// Records the tracing output of this thread from now on, as lines.
pub(crate) fn listen() -> (Lines, DefaultGuard) {
    let lines = Lines::default();
    let reported = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || reported.clone());
    (lines, tracing::subscriber::set_default(subscriber.finish()))
}

async fn the_span_of_a_submit_of_several_has_their_count_and_numbers(store: TestStore) {
    let (lines, _guard) = listen();
    let engine = store.engine().await;
    let submitted = engine.submit_all(vec![task("any"); 3]).await.unwrap();
    let (first, last) = (submitted[0].id(), submitted[2].id());
    let span = format!("submit_all{{tasks=3 first={first} last={last}}}");
    assert_eq!(lines.text().lines().filter(|line| line.contains(&span)).count(), 1, "{}", lines.text());
}

async fn the_end_of_an_attempt_is_reported_when_it_is_durable(store: TestStore) {
    let (lines, _guard) = listen();
    let engine = store.engine().await;
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    engine.handle("bad", |_| async { Err::<(), _>(Failure::permanent("bad")) });
    let (good, bad) = (submit(&engine, "any").await, submit(&engine, "bad").await);
    engine.drain().await.unwrap();
    let said = lines.text();
    for (task, kind, state) in [(good, "any", "completed"), (bad, "bad", "failed")] {
        let event = format!("durable task={task} kind=\"{kind}\" attempt=1 state=\"{state}\"");
        assert_eq!(said.lines().filter(|line| line.contains(&event)).count(), 1, "{said}");
    }
}

async fn the_spans_of_a_submit_and_of_its_attempt_have_the_number_of_the_task(store: TestStore) {
    let (lines, _guard) = listen();
    let engine = store.engine().await;
    engine.handle("any", |_| async {
        tracing::info!("in the handler");
        Ok::<(), Failure>(())
    });
    submit(&engine, "any").await;
    let id = submit(&engine, "any").await;
    engine.drain().await.unwrap();
    let said = lines.text();
    let about = |span: &str, what: &str| {
        let number = format!("task={id}");
        said.lines().filter(|line| line.contains(span) && line.contains(&number) && line.contains(what)).count()
    };
    assert_eq!(
        (about("submit{", "close"), about("attempt{", "in the handler"), about("attempt{", "close")),
        (1, 1, 1),
        "{said}"
    );
}
