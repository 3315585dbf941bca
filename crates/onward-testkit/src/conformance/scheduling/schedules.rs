//! Schedules: the record that a store keeps of them, and the effects of a firing.

use std::time::Duration;

use onward_store::{
    AfterFiring, CatchUp, FireSchedule, Fired, Firing, NewSchedule, NewTask, NextFiring, OnDuplicate, Outcome, Overlap,
    Recurrence, Refusal, ScheduleRecord, ScheduleSelection, ScheduleSet, SetSchedule, StoreReads, TaskFilter, TaskId,
    TaskState, Timestamp, Write,
};

use crate::test_store::{TestStore, keyed, name, task};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

fn schedule(called: &str) -> NewSchedule {
    NewSchedule::new(name(called), Recurrence::Every(HOUR), task("report"))
}

/// Returns a firing `number` hours after the start of the test.
fn hour(number: i64) -> NextFiring {
    let at = Timestamp::from_microseconds(1_704_067_200_000_000 + number * 3_600_000_000);
    NextFiring { at, due: at.plus(SECOND) }
}

fn setting(schedule: NewSchedule) -> Write {
    Write::SetSchedule(Box::new(SetSchedule { schedule, next: Some(hour(1)) }))
}

async fn set(store: &TestStore, schedule: NewSchedule) -> ScheduleSet {
    match store.write(setting(schedule)).await {
        Outcome::ScheduleSet(set) => set,
        other => unreachable!("the schedule should have been set: {other:?}"),
    }
}

async fn find(store: &TestStore, called: &str) -> Option<ScheduleRecord> {
    store.inner().schedules(ScheduleSelection::Named(name(called))).await.ok()?.pop()
}

/// Returns the record of the schedule `s`, which must exist.
async fn record(store: &TestStore) -> ScheduleRecord {
    find(store, "s").await.unwrap_or_else(|| unreachable!("the schedule is there"))
}

/// Returns a firing of `s` in its current revision.
async fn firing_of(store: &TestStore, hours: &[i64]) -> FireSchedule {
    FireSchedule {
        name: name("s"),
        revision: record(store).await.revision,
        firings: hours.iter().map(|number| hour(*number).at).collect(),
        overlap: None,
        missed: 0,
        error: None,
        then: AfterFiring::AsBefore,
    }
}

async fn fired(store: &TestStore, fire: FireSchedule) -> Vec<Firing> {
    match store.write(Write::FireSchedule(Box::new(fire))).await {
        Outcome::ScheduleFired(Fired { firings, .. }) => firings,
        other => unreachable!("the schedule should have fired: {other:?}"),
    }
}

async fn fire(store: &TestStore, hours: &[i64]) -> Vec<Firing> {
    fired(store, firing_of(store, hours).await).await
}

async fn with_overlap(store: &TestStore, overlap: Overlap) {
    set(store, NewSchedule { overlap, ..schedule("s") }).await;
}

fn submitted(task: i64) -> Firing {
    Firing::Submitted { task: TaskId(task) }
}

/// Shows: T5
pub async fn a_schedule_is_stored_as_it_was_set(store: TestStore) {
    let task = NewTask { payload: "{}".into(), queue: name("slow"), ..keyed("own", OnDuplicate::Reject) };
    let recurrence = Recurrence::Cron { expression: "0 3 * * *".into(), zone: "Europe/Berlin".into() };
    let schedule = NewSchedule {
        overlap: Overlap::QueueOne,
        catch_up: CatchUp::All(3),
        jitter: SECOND,
        starts_at: Some(hour(0).at),
        ends_at: Some(hour(9).at),
        provider: Some(name("reports")),
        ..NewSchedule::new(name("s"), recurrence, task)
    };
    assert_eq!(set(&store, schedule.clone()).await, ScheduleSet::Created);
    let record = record(&store).await;
    assert_eq!((record.schedule, record.next, record.paused), (schedule, Some(hour(1)), false));
}

/// Shows: T5
pub async fn setting_what_is_so_already_changes_nothing(store: TestStore) {
    set(&store, schedule("s")).await;
    let before = record(&store).await;
    assert_eq!(set(&store, schedule("s")).await, ScheduleSet::Unchanged);
    assert_eq!(record(&store).await, before);
}

/// Shows: T5
pub async fn a_changed_task_leaves_what_is_due_and_what_was(store: TestStore) {
    set(&store, schedule("s")).await;
    fired(&store, FireSchedule { then: AfterFiring::Next(hour(2)), ..firing_of(&store, &[1]).await }).await;
    let before = record(&store).await;
    let changed = NewSchedule { task: task("other"), ..schedule("s") };
    assert_eq!(set(&store, changed).await, ScheduleSet::Changed);
    let after = record(&store).await;
    assert_eq!((after.next, after.last, after.fired), (Some(hour(2)), before.last, 1));
    assert_eq!(after.schedule.task.kind.as_str(), "other");
}

/// Shows: T5
pub async fn a_schedule_that_no_store_takes_is_refused(store: TestStore) {
    let none = NewSchedule { recurrence: Recurrence::Every(Duration::ZERO), ..schedule("s") };
    assert!(store.invalid(setting(none)).await.contains("`s`"));
    let large = vec![0; store.payload_limit() + 1];
    let large = NewSchedule { task: NewTask { payload: large.into(), ..task("k") }, ..schedule("s") };
    store.invalid(setting(large)).await;
    assert_eq!(find(&store, "s").await, None);
}

/// Shows: T5
pub async fn a_schedule_of_a_provider_is_left_alone_by_others(store: TestStore) {
    set(&store, NewSchedule { provider: Some(name("reports")), ..schedule("s") }).await;
    let before = record(&store).await;
    assert!(store.invalid(setting(schedule("s"))).await.contains("`reports`"));
    assert_eq!(record(&store).await, before);
}

/// Shows: T5
pub async fn a_deleted_schedule_is_gone_and_its_tasks_stay(store: TestStore) {
    set(&store, schedule("s")).await;
    fire(&store, &[1]).await;
    store.done(Write::DeleteSchedule { schedule: name("s") }).await;
    assert_eq!(find(&store, "s").await, None);
    assert_eq!(store.state(TaskId(1)).await, TaskState::Waiting);
    let again = store.refused(Write::DeleteSchedule { schedule: name("s") }).await;
    assert_eq!(again, Refusal::ScheduleNotFound(name("s")));
}

/// Shows: T5
pub async fn what_was_read_of_a_deleted_schedule_fires_no_new_one(store: TestStore) {
    set(&store, schedule("s")).await;
    let old = firing_of(&store, &[1]).await;
    store.done(Write::DeleteSchedule { schedule: name("s") }).await;
    set(&store, schedule("s")).await;
    let refused = store.refused(Write::FireSchedule(Box::new(old))).await;
    assert_eq!(refused, Refusal::ScheduleChanged(name("s")));
}

/// Shows: T5
pub async fn a_firing_submits_a_task_that_knows_its_moment(store: TestStore) {
    set(&store, schedule("s")).await;
    assert_eq!(fire(&store, &[1]).await, [submitted(1)]);
    let key = store.record(TaskId(1)).await.key;
    assert_eq!(key.as_deref(), Some("schedule:s:2024-01-01T01:00:00Z"));
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await[0].scheduled_at, Some(hour(1).at));
}

pub async fn a_task_of_no_schedule_has_no_moment(store: TestStore) {
    store.submit("k").await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await[0].scheduled_at, None);
}

/// Shows: T5, Q11
pub async fn of_many_who_fire_at_once_one_does(store: TestStore) {
    set(&store, schedule("s")).await;
    let fire = FireSchedule { then: AfterFiring::Next(hour(2)), ..firing_of(&store, &[1]).await };
    let writes = vec![Write::FireSchedule(Box::new(fire)); 3];
    let outcomes = store.apply(writes).await;
    assert!(matches!(outcomes[0], Outcome::ScheduleFired(_)), "{outcomes:?}");
    let lost = Outcome::Refused(Refusal::ScheduleChanged(name("s")));
    assert_eq!(outcomes[1..], [lost.clone(), lost]);
    assert_eq!(store.list(TaskFilter::default()).await, [TaskId(1)]);
}

/// Shows: T5
pub async fn a_firing_returns_the_next_one(store: TestStore) {
    set(&store, schedule("s")).await;
    let then = AfterFiring::Next(hour(2));
    fired(&store, FireSchedule { then, missed: 4, ..firing_of(&store, &[1]).await }).await;
    let after = record(&store).await;
    assert_eq!((after.next, after.fired, after.missed), (Some(hour(2)), 1, 4));
    assert_eq!(after.last.map(|last| (last.at, last.task)), Some((hour(1).at, TaskId(1))));
    fired(&store, FireSchedule { then: AfterFiring::Over, ..firing_of(&store, &[2]).await }).await;
    assert_eq!(record(&store).await.next, None);
}

/// Shows: T5
pub async fn a_firing_is_left_out_while_the_task_before_is_active(store: TestStore) {
    with_overlap(&store, Overlap::Skip).await;
    fire(&store, &[1]).await;
    assert_eq!(fire(&store, &[2]).await, [Firing::Skipped { active: TaskId(1) }]);
    let lease = store.start_one().await;
    assert_eq!(fire(&store, &[3]).await, [Firing::Skipped { active: TaskId(1) }]);
    store.complete(lease).await;
    assert_eq!(fire(&store, &[4]).await, [submitted(2)]);
    assert_eq!(record(&store).await.skipped, 2);
}

/// Shows: T5
pub async fn firings_may_overlap_where_that_is_allowed(store: TestStore) {
    with_overlap(&store, Overlap::Allow).await;
    assert_eq!(fire(&store, &[1, 2]).await, [submitted(1), submitted(2)]);
    assert_eq!(fire(&store, &[3]).await, [submitted(3)]);
}

/// Shows: T5
pub async fn one_firing_is_held_and_no_second(store: TestStore) {
    with_overlap(&store, Overlap::QueueOne).await;
    fire(&store, &[1]).await;
    let firings = fire(&store, &[2, 3]).await;
    assert_eq!(firings, [Firing::Pending { behind: TaskId(1) }, Firing::Skipped { active: TaskId(1) }]);
    assert_eq!(record(&store).await.pending_at, Some(hour(2).at));
}

/// Shows: T5
pub async fn a_held_firing_is_done_when_the_task_has_ended(store: TestStore) {
    with_overlap(&store, Overlap::QueueOne).await;
    fire(&store, &[1]).await;
    fire(&store, &[2]).await;
    assert_eq!(fire(&store, &[2]).await, [Firing::Pending { behind: TaskId(1) }]);
    store.complete_next().await;
    assert_eq!(fire(&store, &[2]).await, [submitted(2)]);
    let after = record(&store).await;
    assert_eq!((after.pending_at, after.fired, after.skipped), (None, 2, 0));
}

/// Shows: T5
pub async fn a_task_that_waits_makes_room_for_the_next_firing(store: TestStore) {
    with_overlap(&store, Overlap::CancelRunning).await;
    fire(&store, &[1]).await;
    assert_eq!(fire(&store, &[2]).await, [submitted(2)]);
    assert_eq!(store.state(TaskId(1)).await, TaskState::Cancelled);
}

/// Shows: T5
pub async fn a_task_that_runs_is_asked_to_stop_for_the_next_firing(store: TestStore) {
    with_overlap(&store, Overlap::CancelRunning).await;
    fire(&store, &[1]).await;
    let lease = store.start_one().await;
    assert_eq!(fire(&store, &[2]).await, [Firing::Pending { behind: TaskId(1) }]);
    assert!(store.record(TaskId(1)).await.cancel_requested);
    assert_eq!(fire(&store, &[3]).await, [Firing::Pending { behind: TaskId(1) }]);
    store.done(Write::ConfirmCancel { lease, reason: "stopped".into() }).await;
    assert_eq!(fire(&store, &[3]).await, [submitted(2)]);
    assert_eq!(record(&store).await.skipped, 1);
}

/// Shows: T5
pub async fn extra_firings_that_may_overlap_delay_no_other(store: TestStore) {
    with_overlap(&store, Overlap::Skip).await;
    let extra = FireSchedule { overlap: Some(Overlap::Allow), ..firing_of(&store, &[-2, -1]).await };
    assert_eq!(fired(&store, extra).await, [submitted(1), submitted(2)]);
    assert_eq!(fire(&store, &[1]).await, [submitted(3)]);
}

/// Shows: T5
pub async fn a_moment_whose_task_is_active_fires_no_second_time(store: TestStore) {
    with_overlap(&store, Overlap::Allow).await;
    let firings = fire(&store, &[1, 1]).await;
    assert!(matches!(&firings[1], Firing::Failed { message } if message.contains("task 1")), "{firings:?}");
}

/// Shows: T5
/// Beats: silent-schedules
pub async fn a_schedule_continues_after_a_task_that_could_not_be_submitted(store: TestStore) {
    set(&store, NewSchedule { task: keyed("own", OnDuplicate::Reject), ..schedule("s") }).await;
    let holder = store.submit_new(keyed("own", OnDuplicate::Reject)).await;
    let then = AfterFiring::Next(hour(2));
    let firings = fired(&store, FireSchedule { then, ..firing_of(&store, &[1]).await }).await;
    assert!(matches!(&firings[0], Firing::Failed { message } if message.contains("task 1")), "{firings:?}");
    let after = record(&store).await;
    assert_eq!((after.next, after.failed, after.last), (Some(hour(2)), 1, None));
    assert!(after.error.is_some_and(|error| error.message.contains("key") && error.at == store.now()));
    store.cancel(holder).await;
    assert_eq!(fire(&store, &[2]).await, [submitted(2)]);
    assert_eq!(record(&store).await.error, None);
}

/// Shows: T5
pub async fn an_error_is_kept_with_a_schedule(store: TestStore) {
    set(&store, schedule("s")).await;
    fired(&store, FireSchedule { error: Some("no such zone".into()), ..firing_of(&store, &[]).await }).await;
    let after = record(&store).await;
    assert_eq!((after.error.map(|error| error.message).as_deref(), after.next), (Some("no such zone"), Some(hour(1))));
}

/// Shows: T5
pub async fn too_many_firings_at_once_are_refused(store: TestStore) {
    set(&store, schedule("s")).await;
    let fire = firing_of(&store, &[1; 1001]).await;
    assert!(store.invalid(Write::FireSchedule(Box::new(fire))).await.contains("1000"));
    assert_eq!(store.list(TaskFilter::default()).await, []);
}

/// Shows: T5
pub async fn a_paused_schedule_is_not_next_until_it_is_resumed(store: TestStore) {
    set(&store, schedule("s")).await;
    store.done(Write::PauseSchedule { schedule: name("s") }).await;
    let next = ScheduleSelection::Next { limit: 10 };
    assert_eq!(store.inner().schedules(next.clone()).await.ok(), Some(vec![]));
    let revision = record(&store).await.revision;
    let resume = |revision| Write::ResumeSchedule { schedule: name("s"), revision, next: Some(hour(7)) };
    assert_eq!(store.refused(resume(revision - 1)).await, Refusal::ScheduleChanged(name("s")));
    store.done(resume(revision)).await;
    let resumed = store.inner().schedules(next).await.unwrap_or_default();
    assert_eq!(resumed.iter().map(|it| it.next).collect::<Vec<_>>(), [Some(hour(7))]);
}

/// Shows: T5
pub async fn schedules_come_in_the_order_in_which_they_are_due(store: TestStore) {
    for (called, number) in [("a", 3), ("b", 1), ("c", 2), ("d", 1)] {
        let set = SetSchedule { schedule: schedule(called), next: Some(hour(number)) };
        store.write(Write::SetSchedule(Box::new(set))).await;
    }
    let over = SetSchedule { schedule: schedule("e"), next: None };
    store.write(Write::SetSchedule(Box::new(over))).await;
    let names = |which| async {
        let found = store.inner().schedules(which).await.unwrap_or_default();
        found.iter().map(|it| it.schedule.name.as_str()).collect::<String>()
    };
    assert_eq!(names(ScheduleSelection::Next { limit: 3 }).await, "bdc");
    assert_eq!(names(ScheduleSelection::All).await, "abcde");
}

/// Shows: T5
pub async fn a_refused_all_undoes_a_firing(store: TestStore) {
    set(&store, schedule("s")).await;
    let before = record(&store).await;
    let fire = Write::FireSchedule(Box::new(firing_of(&store, &[1]).await));
    let unknown = Write::Cancel { task: TaskId(99) };
    store.refused(Write::All(vec![fire, Write::PauseSchedule { schedule: name("s") }, unknown])).await;
    assert_eq!(record(&store).await, before);
    assert_eq!(store.list(TaskFilter::default()).await, []);
}

/// Shows: T5
pub async fn schedules_are_as_they_were_after_a_restart(mut store: TestStore) {
    with_overlap(&store, Overlap::QueueOne).await;
    fire(&store, &[1]).await;
    fire(&store, &[2]).await;
    store.done(Write::PauseSchedule { schedule: name("s") }).await;
    let before = record(&store).await;
    store.reopen().await;
    assert_eq!(record(&store).await, before);
    assert_eq!((before.paused, before.pending_at), (true, Some(hour(2).at)));
}

/// Shows: T5
pub async fn a_change_of_a_schedule_hints_at_schedules(store: TestStore) {
    let mut changes = store.inner().changes();
    let before = changes.hint().schedules;
    set(&store, schedule("s")).await;
    let hint = tokio::time::timeout(Duration::from_secs(10), changes.changed()).await;
    assert!(hint.is_ok_and(|hint| hint.is_some_and(|hint| hint.schedules > before)));
}
