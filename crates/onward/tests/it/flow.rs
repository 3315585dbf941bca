//! Limits: the number of tasks of a group that run at once, the rate at which they start, and the
//! reasons why a task waits.

use onward_store::StoreReads;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::limits::{LimitScope, Rate, SetLimit};
use onward::queues::Scope;
use onward::task::WaitReason;
use onward::{Engine, EngineBuilder, Failure, Name, NewTask, Priority, RetryPolicy, Task, TaskState};

use crate::fixture::{Gate, HOUR, SECOND, TestStore, start, start_drain, state, stop, task};

on_every_store! {
    one_groups_flood_of_urgent_tasks_leaves_another_its_share_of_one_slot,
    no_more_tasks_of_a_group_run_than_its_limit_allows,
    a_saturated_group_leaves_the_other_slots_to_others,
    a_limit_holds_for_two_engines_together,
    tasks_start_no_faster_than_their_rate,
    a_run_until_idle_waits_for_what_a_rate_holds_back,
    each_attempt_of_a_task_counts_for_its_rate,
    a_higher_limit_is_used_at_once,
    every_reason_why_a_task_waits_is_listed,
    a_task_that_a_limit_holds_back_names_it_and_how_far_it_is_used,
    a_task_that_is_not_there_has_no_reasons_but_an_error,
    a_task_whose_kind_no_worker_serves_says_so_and_names_who_serves_its_queue,
    a_typed_task_names_its_group_and_a_submit_may_name_another,
}

fn name(group: &str) -> Name {
    Name::new(group).unwrap()
}

fn of(group: &str) -> NewTask {
    NewTask { group: Some(name(group)), ..task("any") }
}

fn groups() -> SetLimit {
    SetLimit::new(LimitScope::Groups(String::new()))
}

/// Opens an engine whose handlers record the most tasks of each group that run at once.
async fn counting(builder: EngineBuilder) -> (Engine, Arc<Mutex<HashMap<String, usize>>>) {
    let engine = builder.open().await.unwrap();
    let most = Arc::new(Mutex::new(HashMap::new()));
    let (noted, running) = (Arc::clone(&most), Arc::new(Mutex::new(HashMap::<String, usize>::new())));
    engine.handle("any", move |context| {
        let (noted, running) = (Arc::clone(&noted), Arc::clone(&running));
        async move {
            let group = context.group().map(ToString::to_string).unwrap_or_default();
            let now = {
                let mut running = running.lock().unwrap();
                let running = running.entry(group.clone()).or_default();
                *running += 1;
                *running
            };
            noted
                .lock()
                .unwrap()
                .entry(group.clone())
                .and_modify(|most: &mut usize| *most = now.max(*most))
                .or_insert(now);
            tokio::task::yield_now().await;
            *running.lock().unwrap().entry(group).or_default() -= 1;
            Ok::<(), Failure>(())
        }
    });
    (engine, most)
}

/// Shows: T9
async fn one_groups_flood_of_urgent_tasks_leaves_another_its_share_of_one_slot(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let order = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&order);
    engine.handle("any", move |context| {
        noted.lock().unwrap().push_str(context.group().map_or("-", Name::as_str));
        async { Ok::<(), Failure>(()) }
    });
    engine.set_limit(groups().weight(1)).await.unwrap();
    let urgent = NewTask { priority: Priority::URGENT, ..of("a") };
    let tasks = std::iter::repeat_n(urgent, 200).chain(std::iter::repeat_n(of("b"), 20));
    engine.submit_all(tasks.collect()).await.unwrap();
    start_drain(&engine).await.unwrap();
    let order = order.lock().unwrap().clone();
    let last = order.rfind('b').unwrap();
    assert!(last < 45, "twenty and twenty take turns: {order}");
}

/// Shows: T9
async fn no_more_tasks_of_a_group_run_than_its_limit_allows(store: TestStore) {
    let (engine, most) = counting(store.builder()).await;
    engine.set_limit(groups().concurrency(2)).await.unwrap();
    let tasks = (0..60).map(|number| of(["a", "b", "c"][number % 3])).collect();
    engine.submit_all(tasks).await.unwrap();
    let summary = engine.drain().await.unwrap();
    assert_eq!(summary.completed, 60);
    assert!(most.lock().unwrap().values().all(|most| *most <= 2), "{most:?}");
}

/// Shows: T9
/// Beats: saturated-group
async fn a_saturated_group_leaves_the_other_slots_to_others(store: TestStore) {
    let engine = store.builder().concurrency(4).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("any", gate.handler());
    engine.set_limit(SetLimit::group(name("slow")).concurrency(1)).await.unwrap();
    engine.submit_all(vec![of("slow"); 50]).await.unwrap();
    engine.submit_all(vec![of("other"); 3]).await.unwrap();
    let run = start(&engine);
    gate.entered(4).await;
    gate.open(53);
    stop(&engine, run).await;
}

/// Shows: T9
async fn a_limit_holds_for_two_engines_together(store: TestStore) {
    let gate = Gate::new();
    let (one, other) = (store.engine().await, store.engine().await);
    one.handle("any", gate.handler());
    other.handle("any", gate.handler());
    one.set_limit(SetLimit::group(name("a")).concurrency(3)).await.unwrap();
    let tasks = one.submit_all(vec![of("a"); 10]).await.unwrap();
    let (first, second) = (start_drain(&one), start_drain(&other));
    gate.entered(3).await;
    let mut running = 0;
    for task in &tasks {
        running += usize::from(state(&store, task.id()).await == TaskState::Running);
    }
    assert_eq!(running, 3);
    gate.open(10);
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.completed + second.completed, 10);
}

/// Opens an engine whose handlers record when they start.
async fn noting_starts(store: &TestStore) -> (Engine, Arc<Mutex<Vec<Duration>>>) {
    let engine = store.engine().await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let (noted, clock) = (Arc::clone(&starts), Arc::clone(&store.clock));
    engine.handle("any", move |_| {
        noted.lock().unwrap().push(onward::store::Clock::steady(&*clock));
        async { Ok::<(), Failure>(()) }
    });
    (engine, starts)
}

/// Shows: T9
async fn tasks_start_no_faster_than_their_rate(store: TestStore) {
    let (engine, starts) = noting_starts(&store).await;
    let rate = Rate { tasks: 10, per: SECOND, burst: 3 };
    engine.set_limit(SetLimit::group(name("a")).rate(rate)).await.unwrap();
    engine.submit_all(vec![of("a"); 13]).await.unwrap();
    let drain = start_drain(&engine);
    store.advance_until(Duration::from_millis(20), drain).await;
    let starts = starts.lock().unwrap();
    assert_eq!(starts.len(), 13);
    for (number, start) in starts.iter().enumerate() {
        let allowed = starts.iter().filter(|other| **other + SECOND / 10 > *start && *other <= start).count();
        assert!(allowed <= 4, "{allowed} starts within a tenth of a second up to number {number}");
    }
    assert!(starts[12] - starts[0] >= SECOND);
}

/// Shows: T9
async fn a_run_until_idle_waits_for_what_a_rate_holds_back(store: TestStore) {
    let (engine, starts) = noting_starts(&store).await;
    engine.set_limit(SetLimit::group(name("a")).rate(Rate { tasks: 1, per: SECOND, burst: 1 })).await.unwrap();
    engine.submit_all(vec![of("a"); 3]).await.unwrap();
    let idle = tokio::spawn(async move { engine.run_until_idle().await.unwrap() });
    store.advance_until(Duration::from_millis(100), idle).await;
    assert_eq!(starts.lock().unwrap().len(), 3);
}

/// Shows: T9
async fn each_attempt_of_a_task_counts_for_its_rate(store: TestStore) {
    let engine = store.builder().retry(RetryPolicy { attempts: 3, ..RetryPolicy::default() }).open().await.unwrap();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    engine.handle("any", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(Failure::retry_after("again", Duration::ZERO)) }
    });
    engine.set_limit(groups().rate(Rate { tasks: 1, per: HOUR, burst: 1 })).await.unwrap();
    let id = engine.submit_task(of("a")).await.unwrap().id();
    let drain = start_drain(&engine);
    while attempts.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    while state(&store, id).await == TaskState::Running {
        tokio::task::yield_now().await;
    }
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    store.advance_until(HOUR / 2, drain).await;
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
}

/// Shows: T9
async fn a_higher_limit_is_used_at_once(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("any", gate.handler());
    engine.set_limit(groups().concurrency(1)).await.unwrap();
    engine.submit_all(vec![of("a"); 4]).await.unwrap();
    let run = start(&engine);
    gate.entered(1).await;
    assert!(!gate.has_entered());
    engine.set_limit(groups().concurrency(3)).await.unwrap();
    gate.entered(2).await;
    gate.open(4);
    stop(&engine, run).await;
}

/// Shows: B6
async fn every_reason_why_a_task_waits_is_listed(store: TestStore) {
    let engine = store.engine().await;
    engine.set_limit(groups().rate(Rate { tasks: 1, per: SECOND, burst: 1 })).await.unwrap();
    engine.pause(Scope::Kind(name("any"))).await.unwrap();
    engine.submit_task(of("a")).await.unwrap();
    let waiting = engine.submit_task(of("a")).await.unwrap().id();
    assert_eq!(
        engine.why(waiting).await.unwrap(),
        [
            WaitReason::Paused { scope: Scope::Kind(name("any")), until: None },
            WaitReason::Behind { tasks: 1 },
            WaitReason::NoWorker,
        ]
    );
}

/// Shows: B6
async fn a_task_that_a_limit_holds_back_names_it_and_how_far_it_is_used(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("any", gate.handler());
    engine.set_limit(groups().concurrency(1)).await.unwrap();
    engine.submit_task(of("a")).await.unwrap();
    let run = start(&engine);
    gate.entered(1).await;
    let waiting = engine.submit_task(of("a")).await.unwrap().id();
    let limit_on = LimitScope::Groups(String::new());
    let reasons = engine.why(waiting).await.unwrap();
    assert_eq!(reasons, [WaitReason::Concurrency { limit_on, concurrency: 1, running: 1 }]);
    assert!(reasons[0].to_string().contains("waits until one of them ends"), "{}", reasons[0]);
    gate.open(2);
    stop(&engine, run).await;
}

/// Shows: B6
async fn a_task_that_is_not_there_has_no_reasons_but_an_error(store: TestStore) {
    assert!(store.engine().await.why(onward::TaskId(7)).await.unwrap_err().to_string().contains("no task 7"));
}

/// Shows: B6
async fn a_task_whose_kind_no_worker_serves_says_so_and_names_who_serves_its_queue(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("any", gate.handler());
    let served = engine.submit_task(NewTask::new("any").unwrap()).await.unwrap().id();
    let other = engine.submit_task(NewTask::new("other").unwrap()).await.unwrap().id();
    let run = start(&engine);
    gate.entered(1).await;
    let reasons = engine.why(other).await.unwrap();
    let [WaitReason::NotServed { kind, kind_served_by, queue_served_by, .. }] = &reasons[..] else {
        panic!("{reasons:?}")
    };
    let sessions = engine.store().sessions().await.unwrap();
    assert_eq!(
        (kind, &kind_served_by[..], &queue_served_by[..]),
        (&name("other"), &[][..], &[sessions[0].name.clone()][..])
    );
    assert_eq!(engine.serving(served).await.unwrap(), sessions);
    assert_eq!(engine.serving(other).await.unwrap(), []);
    gate.open(1);
    stop(&engine, run).await;
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Thumbnail {
    tenant: u32,
}

impl Task for Thumbnail {
    const KIND: &'static str = "thumbnail";
    type Output = ();

    fn group(&self) -> Option<String> {
        Some(format!("tenant-{}", self.tenant))
    }
}

/// Shows: T9, T20
async fn a_typed_task_names_its_group_and_a_submit_may_name_another(store: TestStore) {
    let engine = store.engine().await;
    let own = engine.submit(Thumbnail { tenant: 7 }).await.unwrap();
    let other = engine.submit_with(Thumbnail { tenant: 7 }).group("night").await.unwrap();
    let group = async |id| crate::fixture::record(&store, id).await.group;
    assert_eq!(group(own.id()).await, Some(name("tenant-7")));
    assert_eq!(group(other.id()).await, Some(name("night")));
}
