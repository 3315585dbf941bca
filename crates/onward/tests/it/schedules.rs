//! Recurring tasks, fired by running engines.

use std::sync::Arc;
use std::time::Duration;

use onward::schedules::{CatchUp, Firing, NewSchedule, Overlap, Recurrence, ScheduleRecord, ScheduleSet};
use onward::task::{OnDuplicate, UniqueKey};
use onward::{Engine, Failure, Name, NewTask, Store, TaskFilter, TaskId, TaskState, Timestamp};
use onward_store::{NextFiring, SetSchedule, SqliteStore, StoreReads, Write};
use onward_testkit::{Fault, FaultyStore, Side};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use crate::fixture::{Gate, HOUR, SECOND, TestStore, start, start_drain, state, stop, task};

on_every_store! {
    a_store_that_fails_for_a_while_ends_no_schedule,
    firings_missed_while_no_engine_ran_follow_the_policy,
    an_engine_fires_a_due_schedule_and_passes_its_moment_to_the_handler,
    a_cron_schedule_follows_the_wall_clock_of_its_zone_over_a_change_to_summer_time,
    a_sleeping_engine_is_notified_of_a_schedule_that_another_sets,
    of_several_engines_on_one_store_one_fires,
    a_firing_is_left_out_while_the_task_before_runs,
    a_firing_that_waits_for_the_task_before_starts_when_that_ends,
    a_running_task_is_stopped_for_the_next_firing_and_the_two_never_run_at_once,
    a_schedule_goes_on_after_its_task_could_not_be_submitted,
    a_schedule_goes_on_after_its_task_has_failed,
    a_schedule_that_cannot_be_read_says_so_and_holds_no_other_up,
    a_paused_schedule_fires_nothing_until_it_is_resumed_and_then_nothing_of_what_it_passed_over,
    a_schedule_is_triggered_beside_its_moments_also_while_it_is_paused,
    a_backfill_fires_every_moment_of_a_range_once,
    a_backfill_of_too_many_moments_is_refused_and_does_nothing,
    what_comes_next_is_shown_without_waiting_for_it,
    firings_with_jitter_come_later_and_say_the_moment_that_was_meant,
    what_cannot_be_meant_is_refused_before_anything_changes,
    setting_a_schedule_at_every_start_changes_nothing,
    a_drain_ends_although_a_schedule_goes_on_for_ever,
    schedules_follow_their_provider_while_it_changes,
    a_provider_that_fails_or_names_nonsense_takes_no_schedule_away,
    a_schedule_of_a_provider_is_not_changed_by_hand,
}

const MINUTE: Duration = Duration::from_secs(60);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Returns the time `number` hours after the start of a store's clock.
fn hour(number: u64) -> Timestamp {
    let start: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    start.plus(HOUR * u32::try_from(number).unwrap())
}

/// Opens an engine whose leases outlast the hours by which tests move the clock.
async fn engine_on(store: &TestStore) -> Engine {
    store.builder().lease(24 * HOUR).open().await.unwrap()
}

/// Registers a handler that sends the scheduled moment of each task to a channel.
fn moments(engine: &Engine) -> UnboundedReceiver<Timestamp> {
    let (reported, moments) = unbounded_channel();
    engine.handle("report", move |context| {
        let reported = reported.clone();
        async move {
            let moment = context.scheduled_at().ok_or_else(|| Failure::permanent("no moment"))?;
            reported.send(moment).map_err(|_| Failure::permanent("the test is over"))?;
            Ok::<(), Failure>(())
        }
    });
    moments
}

async fn hourly(engine: &Engine, called: &str) {
    engine.schedule(called).every(HOUR).task(task("report")).await.unwrap();
}

/// Makes an hourly schedule that allows overlaps. An hour of the manual clock may pass before a
/// started task has ended, and the next one must start anyway.
async fn hourly_whatever_runs(engine: &Engine, called: &str) {
    engine.schedule(called).every(HOUR).task(task("report")).overlap(Overlap::Allow).await.unwrap();
}

async fn record(engine: &Engine, called: &str) -> ScheduleRecord {
    engine.find_schedule(&name(called)).await.unwrap()
}

/// Waits until a schedule fulfils a condition.
async fn until(engine: &Engine, called: &str, is_so: impl Fn(&ScheduleRecord) -> bool) -> ScheduleRecord {
    loop {
        let found = record(engine, called).await;
        if is_so(&found) {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

async fn tasks(store: &TestStore) -> usize {
    store.tasks(TaskFilter::default(), Default::default()).await.unwrap().tasks.len()
}

/// Shows: T5
async fn an_engine_fires_a_due_schedule_and_passes_its_moment_to_the_handler(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    hourly_whatever_runs(&engine, "s").await;
    let run = start(&engine);
    for number in 1..4 {
        store.clock.advance(HOUR);
        assert_eq!(moments.recv().await, Some(hour(number)));
    }
    stop(&engine, run).await;
    assert_eq!((tasks(&store).await, record(&engine, "s").await.fired), (3, 3));
}

/// Shows: T5
async fn a_cron_schedule_follows_the_wall_clock_of_its_zone_over_a_change_to_summer_time(store: TestStore) {
    store.clock.set_wall("2026-03-28T12:00:00Z".parse().unwrap());
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    // The clock may pass the second moment before the first task has ended.
    let daily = engine.schedule("s").cron("0 3 * * *", "Europe/Berlin").task(task("report"));
    daily.overlap(Overlap::Allow).await.unwrap();
    let run = start(&engine);
    for expected in ["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"] {
        let expected: Timestamp = expected.parse().unwrap();
        store.clock.advance(expected - onward::store::Clock::now(&*store.clock));
        assert_eq!(moments.recv().await, Some(expected));
    }
    stop(&engine, run).await;
}

/// Shows: T5, Q5
async fn a_sleeping_engine_is_notified_of_a_schedule_that_another_sets(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    let run = start(&engine);
    let other = engine_on(&store).await;
    hourly_whatever_runs(&other, "s").await;
    store.clock.advance(HOUR);
    assert_eq!(moments.recv().await, Some(hour(1)));
    stop(&engine, run).await;
}

/// Shows: T5, Q11
async fn of_several_engines_on_one_store_one_fires(store: TestStore) {
    let engines = [engine_on(&store).await, engine_on(&store).await, engine_on(&store).await];
    hourly_whatever_runs(&engines[0], "s").await;
    let mut moments: Vec<_> = engines.iter().map(moments).collect();
    let runs: Vec<_> = engines.iter().map(start).collect();
    for _ in 0..5 {
        store.clock.advance(HOUR);
        let fired = record(&engines[0], "s").await.fired;
        until(&engines[0], "s", |it| it.fired > fired || it.skipped > 0).await;
        let [a, b, c] = &mut moments[..] else { unreachable!() };
        tokio::select! { _ = a.recv() => {} _ = b.recv() => {} _ = c.recv() => {} }
    }
    for (engine, run) in engines.iter().zip(runs) {
        stop(engine, run).await;
    }
    assert!(moments.iter_mut().all(|moments| moments.try_recv().is_err()), "a moment was handled twice");
    assert_eq!(tasks(&store).await, 5);
}

/// Shows: T5, Q5, Q11
#[tokio::test]
async fn a_schedule_set_by_another_opening_of_the_file_is_fired_once() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(onward::testing::ManualClock::default());
    let mut engines = Vec::new();
    for _ in 0..2 {
        let options = SqliteStore::options().clock(clock.clone());
        let store: Arc<dyn Store> = Arc::new(options.open(directory.path().join("onward.db")).await.unwrap());
        engines.push(Engine::builder().store(store).lease(24 * HOUR).open().await.unwrap());
    }
    let [sleeper, other] = &engines[..] else { unreachable!() };
    let mut moments = moments(sleeper);
    other.handle("other", |_| async { Ok::<(), Failure>(()) });
    let runs = [start(sleeper), start(other)];
    hourly_whatever_runs(other, "s").await;
    for number in 1..4 {
        clock.advance(HOUR);
        assert_eq!(moments.recv().await, Some(hour(number)));
    }
    for (engine, run) in engines.iter().zip(runs) {
        stop(engine, run).await;
    }
    assert_eq!(record(other, "s").await.fired, 3);
}

/// Shows: T5
async fn firings_missed_while_no_engine_ran_follow_the_policy(store: TestStore) {
    for (catch_up, expected) in [(CatchUp::None, vec![]), (CatchUp::Last, vec![5]), (CatchUp::All(2), vec![4, 5])] {
        let store = store.fresh().await;
        let engine = engine_on(&store).await;
        let mut moments = moments(&engine);
        let schedule = engine.schedule("s").every(HOUR).task(task("report"));
        schedule.catch_up(catch_up).overlap(Overlap::Allow).await.unwrap();
        store.clock.advance(5 * HOUR + 10 * MINUTE);
        engine.run_until_idle().await.unwrap();
        let mut reported: Vec<Timestamp> = std::iter::from_fn(|| moments.try_recv().ok()).collect();
        reported.sort();
        assert_eq!(reported, expected.iter().map(|number| hour(*number)).collect::<Vec<_>>());
        let after = record(&engine, "s").await;
        assert_eq!((after.next.map(|next| next.at), after.missed), (Some(hour(6)), 5 - expected.len() as u64));
    }
}

/// Shows: T5
async fn a_firing_is_left_out_while_the_task_before_runs(store: TestStore) {
    let engine = engine_on(&store).await;
    let gate = Gate::new();
    engine.handle("report", gate.handler());
    hourly(&engine, "s").await;
    let run = start(&engine);
    store.clock.advance(HOUR);
    gate.entered(1).await;
    store.clock.advance(HOUR);
    until(&engine, "s", |it| it.skipped == 1).await;
    gate.open(1);
    engine.wait(TaskId(1)).await.unwrap();
    store.clock.advance(HOUR);
    gate.entered(1).await;
    gate.open(1);
    stop(&engine, run).await;
    assert_eq!(tasks(&store).await, 2);
}

/// Shows: T5
async fn a_firing_that_waits_for_the_task_before_starts_when_that_ends(store: TestStore) {
    let engine = engine_on(&store).await;
    let gate = Gate::new();
    engine.handle("report", gate.handler());
    engine.schedule("s").every(HOUR).task(task("report")).overlap(Overlap::QueueOne).await.unwrap();
    let run = start(&engine);
    store.clock.advance(HOUR);
    gate.entered(1).await;
    store.clock.advance(HOUR);
    until(&engine, "s", |it| it.pending_at == Some(hour(2))).await;
    gate.open(1);
    // Only the end of the first task can start the second, because the clock stands still.
    gate.entered(1).await;
    gate.open(1);
    stop(&engine, run).await;
    let after = record(&engine, "s").await;
    assert_eq!((after.pending_at, after.fired, after.last.map(|last| last.at)), (None, 2, Some(hour(2))));
}

/// Shows: T5
async fn a_running_task_is_stopped_for_the_next_firing_and_the_two_never_run_at_once(store: TestStore) {
    let engine = engine_on(&store).await;
    let gate = Gate::new();
    engine.handle("report", gate.stoppable());
    engine.schedule("s").every(HOUR).task(task("report")).overlap(Overlap::CancelRunning).await.unwrap();
    let run = start(&engine);
    store.clock.advance(HOUR);
    gate.entered(1).await;
    store.clock.advance(HOUR);
    let second = gate.clone();
    let second = tokio::spawn(async move { second.entered(1).await });
    store.advance_until(SECOND, second).await;
    assert_eq!(state(&store, TaskId(1)).await, TaskState::Cancelled);
    gate.open(1);
    engine.wait(TaskId(2)).await.unwrap();
    stop(&engine, run).await;
}

/// Shows: T5
/// Beats: silent-schedules
async fn a_schedule_goes_on_after_its_task_could_not_be_submitted(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    let unique = UniqueKey { key: "own".into(), on_duplicate: OnDuplicate::Reject, keep_for: Duration::ZERO };
    let report = NewTask { unique: Some(unique.clone()), ..task("report") };
    let holder = NewTask { when: onward::task::When::After(1000 * HOUR), ..report.clone() };
    let holder = engine.submit_task(holder).await.unwrap().id();
    engine.schedule("s").every(HOUR).task(report).await.unwrap();
    let run = start(&engine);
    store.clock.advance(HOUR);
    let failed = until(&engine, "s", |it| it.failed == 1).await;
    assert!(failed.error.is_some_and(|error| error.message.contains("has its key")));
    engine.cancel(holder).await.unwrap();
    store.clock.advance(HOUR);
    assert_eq!(moments.recv().await, Some(hour(2)));
    stop(&engine, run).await;
    assert_eq!(record(&engine, "s").await.error, None);
}

/// Shows: T5
/// Beats: silent-schedules
async fn a_schedule_goes_on_after_its_task_has_failed(store: TestStore) {
    let engine = engine_on(&store).await;
    engine.handle("report", |_| async { Err::<(), _>(Failure::permanent("no")) });
    hourly(&engine, "s").await;
    let run = start(&engine);
    for number in 1..4 {
        store.clock.advance(HOUR);
        until(&engine, "s", |it| it.fired == number).await;
        engine.wait(TaskId(i64::try_from(number).unwrap())).await.unwrap();
    }
    stop(&engine, run).await;
}

/// Shows: T5
/// Beats: silent-schedules
async fn a_schedule_that_cannot_be_read_says_so_and_holds_no_other_up(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    let zone = Recurrence::Cron { expression: "0 * * * *".into(), zone: "Mars/Olympus".into() };
    let schedule = NewSchedule::new(name("broken"), zone, task("report"));
    let next = Some(NextFiring { at: hour(1), due: hour(1) });
    store.apply(vec![Write::SetSchedule(Box::new(SetSchedule { schedule, next }))]).await.unwrap();
    hourly_whatever_runs(&engine, "s").await;
    let run = start(&engine);
    for number in 1..3 {
        store.clock.advance(HOUR);
        assert_eq!(moments.recv().await, Some(hour(number)));
    }
    let broken = until(&engine, "broken", |it| it.error.is_some()).await;
    assert!(broken.error.is_some_and(|error| error.message.contains("Mars/Olympus")));
    assert_eq!(broken.next, next);
    stop(&engine, run).await;
}

/// Shows: T5
/// Beats: silent-schedules
async fn a_store_that_fails_for_a_while_ends_no_schedule(store: TestStore) {
    for side in [Side::Before, Side::After] {
        let store = store.fresh().await;
        let faulty = Arc::new(FaultyStore::new(store.shared()));
        let builder = Engine::builder().store(Arc::clone(&faulty) as Arc<dyn Store>).lease(24 * HOUR);
        let engine = builder.open().await.unwrap();
        let mut moments = moments(&engine);
        hourly(&engine, "s").await;
        let run = start(&engine);
        store.clock.advance(HOUR);
        assert_eq!(moments.recv().await, Some(hour(1)));
        engine.wait(TaskId(1)).await.unwrap();
        let calls = faulty.calls();
        faulty.fail_from(calls + 1, side, Fault::Io);
        store.clock.advance(HOUR);
        while faulty.calls() == calls {
            tokio::task::yield_now().await;
        }
        faulty.heal();
        let second = tokio::spawn(async move { moments.recv().await });
        assert_eq!(store.advance_until(SECOND, second).await, Some(hour(2)));
        stop(&engine, run).await;
        assert_eq!(record(&engine, "s").await.fired, 2);
    }
}

/// Shows: T5
async fn a_paused_schedule_fires_nothing_until_it_is_resumed_and_then_nothing_of_what_it_passed_over(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    hourly(&engine, "s").await;
    engine.pause_schedule(&name("s")).await.unwrap();
    store.clock.advance(5 * HOUR);
    engine.run_until_idle().await.unwrap();
    assert!(moments.try_recv().is_err());
    engine.resume_schedule(&name("s")).await.unwrap();
    store.clock.advance(HOUR);
    engine.run_until_idle().await.unwrap();
    assert_eq!((moments.try_recv(), moments.try_recv().is_err()), (Ok(hour(6)), true));
}

/// Shows: T5
async fn a_schedule_is_triggered_beside_its_moments_also_while_it_is_paused(store: TestStore) {
    let engine = engine_on(&store).await;
    hourly(&engine, "s").await;
    engine.pause_schedule(&name("s")).await.unwrap();
    store.clock.advance(MINUTE);
    let fired = engine.trigger_schedule(&name("s"), None).await.unwrap();
    assert_eq!(fired, Firing::Submitted { task: TaskId(1) });
    let again = engine.trigger_schedule(&name("s"), None).await.unwrap();
    assert_eq!(again, Firing::Skipped { active: TaskId(1) });
    let after = record(&engine, "s").await;
    assert_eq!(after.last.map(|last| last.at), Some(hour(0).plus(MINUTE)));
    assert_eq!(after.next.map(|next| next.at), Some(hour(1)));
}

/// Shows: T5
async fn a_backfill_fires_every_moment_of_a_range_once(store: TestStore) {
    store.clock.advance(10 * HOUR);
    let engine = engine_on(&store).await;
    hourly(&engine, "s").await;
    let filled = engine.backfill_schedule(&name("s"), hour(2), hour(5), Overlap::Allow).await.unwrap();
    let submitted = |task| Firing::Submitted { task: TaskId(task) };
    assert_eq!(filled, [(hour(2), submitted(1)), (hour(3), submitted(2)), (hour(4), submitted(3))]);
    let again = engine.backfill_schedule(&name("s"), hour(4), hour(6), Overlap::Allow).await.unwrap();
    assert!(matches!(again[0].1, Firing::Failed { .. }), "{again:?}");
    assert_eq!(again[1], (hour(5), submitted(4)));
    assert_eq!(record(&engine, "s").await.next.map(|next| next.at), Some(hour(11)));
}

/// Shows: T5
async fn a_backfill_of_too_many_moments_is_refused_and_does_nothing(store: TestStore) {
    let engine = engine_on(&store).await;
    hourly(&engine, "s").await;
    let refused = engine.backfill_schedule(&name("s"), hour(1), hour(1002), Overlap::Allow).await.unwrap_err();
    assert!(refused.is_invalid() && refused.to_string().contains("1000"), "{refused}");
    assert_eq!(tasks(&store).await, 0);
}

/// Shows: T5
async fn what_comes_next_is_shown_without_waiting_for_it(store: TestStore) {
    let engine = engine_on(&store).await;
    let schedule = engine.schedule("s").every(HOUR).task(task("report")).starts_at(hour(3)).ends_at(hour(6));
    schedule.await.unwrap();
    let upcoming = engine.upcoming(&name("s"), 9).await.unwrap();
    assert_eq!(upcoming.iter().map(|firing| firing.at).collect::<Vec<_>>(), [3, 4, 5].map(hour));
}

/// Shows: T5
async fn firings_with_jitter_come_later_and_say_the_moment_that_was_meant(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    engine.schedule("s").every(HOUR).task(task("report")).jitter(30 * MINUTE).await.unwrap();
    let next = record(&engine, "s").await.next.unwrap();
    assert!(next.due > next.at, "{next:?}");
    let run = start(&engine);
    store.advance(HOUR).await;
    assert_eq!(record(&engine, "s").await.fired, 0);
    store.clock.advance(next.due - next.at);
    assert_eq!(moments.recv().await, Some(hour(1)));
    stop(&engine, run).await;
}

/// Shows: T5
async fn what_cannot_be_meant_is_refused_before_anything_changes(store: TestStore) {
    let engine = engine_on(&store).await;
    let daily = |cron: &str, zone: &str| engine.schedule("s").cron(cron, zone).task(task("report"));
    for (schedule, part) in [
        (daily("0 25 * * *", "UTC"), "`0 25 * * *`"),
        (daily("0 3 * * *", "Europe/Berln"), "`Europe/Berln`"),
        (daily("0 0 30 2 *", "UTC"), "never fires"),
        (engine.schedule("s").every(Duration::ZERO).task(task("report")), "100 ms"),
        (engine.schedule("s").every(HOUR), "no task"),
        (engine.schedule("s").task(task("report")), "no recurrence"),
    ] {
        let error = schedule.await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(part), "{error}");
    }
    assert_eq!(engine.schedules().await.unwrap(), []);
}

/// Shows: T5
async fn setting_a_schedule_at_every_start_changes_nothing(store: TestStore) {
    let engine = engine_on(&store).await;
    let set = || engine.schedule("s").every(HOUR).task(task("report"));
    assert_eq!(set().await.unwrap(), ScheduleSet::Created);
    store.clock.advance(90 * MINUTE);
    assert_eq!(set().await.unwrap(), ScheduleSet::Unchanged);
    assert_eq!(record(&engine, "s").await.next.map(|next| next.at), Some(hour(1)));
}

async fn a_drain_ends_although_a_schedule_goes_on_for_ever(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    hourly(&engine, "s").await;
    store.clock.advance(HOUR);
    start_drain(&engine).await.unwrap();
    assert!(moments.try_recv().is_err());
}

fn every_hour(called: &str, kind: &str) -> NewSchedule {
    NewSchedule::new(name(called), Recurrence::Every(HOUR), task(kind))
}

async fn names(engine: &Engine) -> Vec<String> {
    engine.schedules().await.unwrap().iter().map(|it| it.schedule.name.to_string()).collect()
}

async fn until_there_are(engine: &Engine, expected: &[&str]) {
    while names(engine).await != expected {
        tokio::task::yield_now().await;
    }
}

/// Shows: Q11
async fn schedules_follow_their_provider_while_it_changes(store: TestStore) {
    let engine = engine_on(&store).await;
    let mut moments = moments(&engine);
    hourly(&engine, "by-hand").await;
    let (wanted, provider) = watch::channel(vec![every_hour("a", "other"), every_hour("b", "other")]);
    engine.provide_schedules("reports", provider).unwrap();
    let run = start(&engine);
    until_there_are(&engine, &["a", "b", "by-hand"]).await;
    engine.delete_schedule(&name("by-hand")).await.unwrap();
    engine.pause_schedule(&name("b")).await.unwrap();
    wanted.send(vec![every_hour("b", "report"), every_hour("c", "report")]).unwrap();
    until_there_are(&engine, &["b", "c"]).await;
    let changed = until(&engine, "b", |it| it.schedule.task.kind.as_str() == "report").await;
    assert!(changed.paused, "a pause is not the provider's to end");
    store.clock.advance(HOUR);
    assert_eq!(moments.recv().await, Some(hour(1)));
    stop(&engine, run).await;
    assert_eq!(tasks(&store).await, 1);
}

/// Shows: Q11
async fn a_provider_that_fails_or_names_nonsense_takes_no_schedule_away(store: TestStore) {
    let engine = engine_on(&store).await;
    let _moments = moments(&engine);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let provide = move || {
        let time = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            let nonsense = Recurrence::Cron { expression: "soon".into(), zone: "UTC".into() };
            let nonsense = NewSchedule::new(name("nonsense"), nonsense, task("report"));
            match time {
                0 => Ok(vec![nonsense, every_hour("a", "report")]),
                1 => Err(Failure::retryable("the table is locked")),
                _ => Ok(vec![every_hour("a", "report"), every_hour("b", "report")]),
            }
        }
    };
    engine.provide_schedules_every("table", MINUTE, provide).unwrap();
    let run = start(&engine);
    until_there_are(&engine, &["a"]).await;
    // The clock moves in steps, because the interval of a minute starts only once the first reply
    // has been processed, which is after its schedule exists.
    while asked.load(std::sync::atomic::Ordering::SeqCst) < 2 {
        store.advance(SECOND).await;
    }
    assert_eq!(names(&engine).await, ["a"]);
    while names(&engine).await != ["a", "b"] {
        store.advance(SECOND).await;
    }
    stop(&engine, run).await;
}

/// Shows: Q11
async fn a_schedule_of_a_provider_is_not_changed_by_hand(store: TestStore) {
    let engine = engine_on(&store).await;
    let _moments = moments(&engine);
    let (_wanted, provider) = watch::channel(vec![every_hour("a", "report")]);
    engine.provide_schedules("reports", provider).unwrap();
    let run = start(&engine);
    until_there_are(&engine, &["a"]).await;
    let refused = engine.set_schedule(every_hour("a", "other")).await.unwrap_err();
    assert!(refused.to_string().contains("`reports`"), "{refused}");
    stop(&engine, run).await;
}
