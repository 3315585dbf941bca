//! Hooks that are called after a commit.

use onward_store::StoreReads;
use std::sync::Arc;
use std::time::Duration;

use onward::observe::{Change, Transition};
use onward::{Backoff, Engine, Failure, HandlerOptions, RetryPolicy, TaskId, TaskState};
use onward_testkit::{Fault, FaultyStore, Side};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::fixture::{Gate, TestStore, start, stop, submit, task};

on_every_store! {
    a_hook_is_called_for_each_change_in_the_order_of_one_task,
    a_change_is_durable_when_a_hook_is_called,
    a_hook_is_not_called_for_a_failed_commit,
    a_hook_that_hangs_holds_up_no_task_and_no_other_hook,
    a_run_ends_when_its_hooks_have_had_every_change,
    a_hook_that_hangs_is_left_when_the_shutdown_limit_has_passed,
    a_hook_that_panics_is_called_for_what_follows,
}

/// Registers a hook that sends each transition to a channel.
fn follow(engine: &Engine) -> UnboundedReceiver<Transition> {
    let (sender, receiver) = unbounded_channel();
    engine.after_commit(move |transition| {
        let reported = sender.send(transition);
        async move { reported.unwrap() }
    });
    receiver
}

fn all(mut receiver: UnboundedReceiver<Transition>) -> Vec<(TaskId, Change)> {
    std::iter::from_fn(|| receiver.try_recv().ok()).map(|reported| (reported.task, reported.change)).collect()
}

fn fine(engine: &Engine) {
    engine.handle("fine", |_| async { Ok::<(), Failure>(()) });
}

/// Shows: Q7
async fn a_hook_is_called_for_each_change_in_the_order_of_one_task(store: TestStore) {
    let engine = store.engine().await;
    let retry = RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: Duration::ZERO } };
    engine.handle_with("again", HandlerOptions::new().retry(retry), |context| async move {
        if context.attempt() == 1 { Err(Failure::retryable("not yet")) } else { Ok(()) }
    });
    let reported = follow(&engine);
    let id = submit(&engine, "again").await;
    engine.drain().await.unwrap();
    let expected = [
        Change::Started { attempt: 1 },
        Change::Retrying { attempt: 1, after: Duration::ZERO },
        Change::Started { attempt: 2 },
        Change::Completed,
    ];
    assert_eq!(all(reported), expected.map(|change| (id, change)));
}

/// Shows: Q7
async fn a_change_is_durable_when_a_hook_is_called(store: TestStore) {
    let engine = store.engine().await;
    fine(&engine);
    let (store, (sender, mut receiver)) = (store.shared(), unbounded_channel());
    engine.after_commit(move |transition| {
        let (store, sender) = (Arc::clone(&store), sender.clone());
        async move {
            if transition.change == Change::Completed {
                sender.send(store.task(transition.task).await.unwrap().unwrap().state).unwrap();
            }
        }
    });
    submit(&engine, "fine").await;
    engine.drain().await.unwrap();
    assert_eq!(receiver.recv().await, Some(TaskState::Completed));
}

/// Shows: Q7
async fn a_hook_is_not_called_for_a_failed_commit(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).open().await.unwrap();
    let failing = faulty.clone();
    engine.handle("fine", move |_| {
        failing.fail_from(1, Side::Before, Fault::Full);
        async { Ok::<(), Failure>(()) }
    });
    let mut reported = follow(&engine);
    submit(&engine, "fine").await;
    let run = start(&engine);
    assert_eq!(reported.recv().await.map(|reported| reported.change), Some(Change::Started { attempt: 1 }));
    let calls = faulty.calls();
    while faulty.calls() < calls + 3 {
        store.advance(Duration::from_secs(1)).await;
    }
    assert!(reported.try_recv().is_err(), "nothing has been committed since");
    faulty.heal();
    let next = tokio::spawn(async move { reported.recv().await.map(|reported| reported.change) });
    assert_eq!(store.advance_until(Duration::from_secs(1), next).await, Some(Change::Completed));
    stop(&engine, run).await;
}

/// Shows: Q7
async fn a_hook_that_hangs_holds_up_no_task_and_no_other_hook(store: TestStore) {
    let engine = store.engine().await;
    fine(&engine);
    let gate = Gate::new();
    let hanging = gate.clone();
    engine.after_commit(move |_| {
        let gate = hanging.clone();
        async move { gate.pass().await }
    });
    let mut reported = follow(&engine);
    let ids = [submit(&engine, "fine").await, submit(&engine, "fine").await];
    let run = start(&engine);
    gate.entered(1).await;
    for id in ids {
        assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    }
    for _ in 0..4 {
        assert!(reported.recv().await.is_some());
    }
    gate.open(4);
    stop(&engine, run).await;
}

/// Shows: Q7
async fn a_run_ends_when_its_hooks_have_had_every_change(store: TestStore) {
    let engine = store.engine().await;
    fine(&engine);
    let reported = follow(&engine);
    engine.submit_all(vec![task("fine"); 500]).await.unwrap();
    engine.drain().await.unwrap();
    let completed = all(reported).iter().filter(|(_, change)| *change == Change::Completed).count();
    assert_eq!(completed, 500);
}

/// Shows: Q7
async fn a_hook_that_hangs_is_left_when_the_shutdown_limit_has_passed(store: TestStore) {
    let engine = store.builder().shutdown_limit(Duration::from_secs(3)).open().await.unwrap();
    fine(&engine);
    engine.after_commit(|_| std::future::pending());
    submit(&engine, "fine").await;
    let drained = crate::fixture::start_drain(&engine);
    assert_eq!(store.advance_until(Duration::from_secs(1), drained).await.completed, 1);
}

/// Shows: Q7
async fn a_hook_that_panics_is_called_for_what_follows(store: TestStore) {
    let engine = store.engine().await;
    fine(&engine);
    let (sender, mut receiver) = unbounded_channel();
    engine.after_commit(move |transition| {
        sender.send(transition.change).unwrap();
        async { panic!("a fault in the hook") }
    });
    submit(&engine, "fine").await;
    engine.drain().await.unwrap();
    assert_eq!(receiver.recv().await, Some(Change::Started { attempt: 1 }));
    assert_eq!(receiver.recv().await, Some(Change::Completed));
}
