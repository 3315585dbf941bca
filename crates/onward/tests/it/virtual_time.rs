//! The manual clock, moved from one due time to the next.

use std::time::Duration;

use onward::limits::{Rate, SetLimit};
use onward::store::Clock as _;
use onward::task::When;
use onward::testing::{advance_to_next, run_for};
use onward::{Backoff, Failure, NewTask, RetryPolicy, TaskState};

use crate::fixture::{HOUR, SECOND, TestStore, state, submit, task};
use crate::orchestrations::{engine as orchestrating, start as start_orchestration};

on_every_store! {
    a_week_costs_as_many_steps_as_something_happens_in_it,
    what_a_rate_holds_back_starts_in_its_time,
    the_next_due_moment_is_one_step_away,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Returns how often the clock has been moved.
fn moves(store: &TestStore) -> u64 {
    store.clock.moved().unwrap().get()
}

/// Shows: B7, D12
async fn a_week_costs_as_many_steps_as_something_happens_in_it(store: TestStore) {
    let engine = orchestrating(&store, |_, context| async move {
        for _ in 0..7 {
            context.timer(DAY).await;
        }
        Ok(context.now().to_string())
    })
    .await;
    engine.handle("report", |_| async { Ok::<(), Failure>(()) });
    engine.schedule("noon").every(DAY / 2).task(task("report")).await.unwrap();
    let began = store.clock.now();
    let orchestration = start_orchestration(&engine).await;
    let summary = run_for(&engine, &store.clock, 7 * DAY).await.unwrap();
    assert_eq!(store.clock.now() - began, 7 * DAY);
    assert_eq!(state(&store, orchestration).await, TaskState::Completed);
    assert_eq!(summary.completed, 14 + 1, "{summary:?}");
    assert!((14..=20).contains(&moves(&store)), "{} moves", moves(&store));
}

/// Shows: B7, D12
async fn what_a_rate_holds_back_starts_in_its_time(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("call", |_| async { Ok::<(), Failure>(()) });
    let rate = Rate { tasks: 1, per: HOUR, burst: 1 };
    engine.set_limit(SetLimit::group("a".parse().unwrap()).rate(rate)).await.unwrap();
    let call = NewTask { group: Some("a".parse().unwrap()), ..task("call") };
    engine.submit_all(vec![call; 5]).await.unwrap();
    assert_eq!(run_for(&engine, &store.clock, HOUR * 2).await.unwrap().completed, 3);
    assert_eq!(run_for(&engine, &store.clock, HOUR * 5).await.unwrap().completed, 2);
}

/// Shows: B7, D12
async fn the_next_due_moment_is_one_step_away(store: TestStore) {
    let engine = store.engine().await;
    assert_eq!(advance_to_next(&engine, &store.clock).await.unwrap(), None);
    let later = NewTask { when: When::After(DAY), ..task("fails") };
    let retry = Some(RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: SECOND } });
    let id = engine.submit_task(NewTask { retry, ..later }).await.unwrap().id();
    engine.handle("fails", |_| async { Err::<(), _>(Failure::retryable("not yet")) });
    // No handler serves this task, and it blocks nothing.
    submit(&engine, "other").await;
    for expected in [DAY, SECOND] {
        engine.run_until_idle().await.unwrap();
        assert_eq!(state(&store, id).await, TaskState::Scheduled);
        assert_eq!(advance_to_next(&engine, &store.clock).await.unwrap(), Some(expected));
    }
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Dead);
}
