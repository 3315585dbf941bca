//! Handlers that block the thread they run on: the progress of other tasks, and the limits of the
//! handlers.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::{Engine, Failure, HandlerOptions, TaskId, TaskState};
use onward_testkit::FaultyStore;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::fixture::{HOUR, SECOND, TestStore, error, record, start, state, stop, submit, task};

on_every_store! {
    other_tasks_go_on_while_a_handler_blocks_its_thread with threads,
    a_handler_that_blocks_beyond_its_timeout_keeps_its_slot_until_it_returns_and_its_result_counts with threads,
    an_error_of_a_handler_that_blocked_beyond_its_timeout_is_an_error_like_any_other with threads,
    the_timeout_of_a_handler_that_blocked_beyond_it_takes_effect_when_it_awaits with threads,
    the_lease_of_a_handler_that_blocks_its_thread_is_kept with threads,
    a_stop_gives_back_the_task_of_a_handler_that_blocks_its_thread_and_drops_what_it_answers with threads,
}

/// The time limit of a wait. A longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shows: T6
async fn other_tasks_go_on_while_a_handler_blocks_its_thread(store: TestStore) {
    let engine = store.engine().await;
    let (blocked, run, id) = block(&engine, HandlerOptions::new()).await;
    for quick in engine.submit_all(vec![task("quick"); 100]).await.unwrap() {
        assert_goes_on(&engine, quick.id()).await;
    }
    assert_eq!(state(&store, id).await, TaskState::Running);
    blocked.end(Answer::Result);
    stop(&engine, run).await;
}

/// Shows: T6
async fn a_handler_that_blocks_beyond_its_timeout_keeps_its_slot_until_it_returns_and_its_result_counts(
    store: TestStore,
) {
    let engine = store.engine().await;
    let (blocked, run, id) = block(&engine, HandlerOptions::new().timeout(SECOND)).await;
    store.clock.advance(HOUR / 2);
    let quick = submit(&engine, "quick").await;
    assert_goes_on(&engine, quick).await;
    assert_eq!((state(&store, id).await, engine.snapshot().running.len()), (TaskState::Running, 1));
    blocked.end(Answer::Result);
    let ended = engine.wait(id).await.unwrap();
    assert_eq!((ended.state, ended.result.as_deref()), (TaskState::Completed, Some(&b"late"[..])));
    stop(&engine, run).await;
}

/// Shows: T6
async fn an_error_of_a_handler_that_blocked_beyond_its_timeout_is_an_error_like_any_other(store: TestStore) {
    let engine = store.engine().await;
    let (blocked, run, id) = block(&engine, HandlerOptions::new().timeout(SECOND)).await;
    store.clock.advance(HOUR / 2);
    blocked.end(Answer::Error);
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Dead);
    assert_eq!(error(&store, id).await, "too late");
    stop(&engine, run).await;
}

/// Shows: T6
async fn the_timeout_of_a_handler_that_blocked_beyond_it_takes_effect_when_it_awaits(store: TestStore) {
    let engine = store.engine().await;
    let (blocked, run, id) = block(&engine, HandlerOptions::new().timeout(SECOND)).await;
    store.clock.advance(HOUR / 2);
    blocked.end(Answer::Await);
    let ended = tokio::spawn(async move {
        let record = engine.wait(id).await.unwrap();
        stop(&engine, run).await;
        record
    });
    let record = store.advance_until(SECOND, ended).await;
    assert_eq!((record.state, &*record.errors[0].message), (TaskState::Dead, "timed out after 1s"));
}

/// Shows: T6, T21
async fn the_lease_of_a_handler_that_blocks_its_thread_is_kept(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).lease(SECOND * 10).open().await.unwrap();
    let (blocked, run, id) = block(&engine, HandlerOptions::new()).await;
    for _ in 0..10 {
        let before = faulty.calls();
        store.clock.advance(SECOND * 5);
        let renewed = async {
            while faulty.calls() == before {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, renewed).await.expect("the lease is renewed");
    }
    blocked.end(Answer::Result);
    let ended = engine.wait(id).await.unwrap();
    assert_eq!((ended.state, ended.attempts), (TaskState::Completed, 1));
    stop(&engine, run).await;
}

/// Shows: T21
async fn a_stop_gives_back_the_task_of_a_handler_that_blocks_its_thread_and_drops_what_it_answers(store: TestStore) {
    let engine = store.builder().shutdown_limit(SECOND).open().await.unwrap();
    let (blocked, run, id) = block(&engine, HandlerOptions::new()).await;
    engine.stop();
    store.advance_until(SECOND, run).await;
    assert_eq!((state(&store, id).await, record(&store, id).await.attempts), (TaskState::Waiting, 0));
    blocked.end(Answer::Result);
    blocked.over().await;
    assert_eq!(state(&store, id).await, TaskState::Waiting);
}

/// The action of a handler once it no longer blocks.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Result,
    Error,
    Await,
}

/// A handler that blocks its thread.
struct Blocked {
    answer: Sender<Answer>,
    is_over: Arc<Semaphore>,
}

impl Blocked {
    fn end(&self, answer: Answer) {
        self.answer.send(answer).unwrap();
    }

    /// Waits until the handler has returned.
    async fn over(&self) {
        drop(self.is_over.acquire().await.unwrap());
    }
}

/// Starts an engine on which a task of the kind `blocks` blocks its thread. Tasks of the kind
/// `quick` end at once.
async fn block(engine: &Engine, options: HandlerOptions) -> (Blocked, JoinHandle<()>, TaskId) {
    let (answer, answers) = channel();
    let (begun, is_over) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (starts, ends, answers) = (Arc::clone(&begun), Arc::clone(&is_over), Arc::new(Mutex::new(answers)));
    engine.handle("quick", |_| async { Ok::<(), Failure>(()) });
    engine.handle_with("blocks", options, move |_| {
        let (starts, ends, answers) = (Arc::clone(&starts), Arc::clone(&ends), Arc::clone(&answers));
        async move {
            starts.add_permits(1);
            let answer = wait_on_this_thread(&answers);
            ends.add_permits(1);
            match answer {
                Answer::Result => Ok("late"),
                Answer::Error => Err(Failure::retryable("too late")),
                Answer::Await => std::future::pending().await,
            }
        }
    });
    let id = submit(engine, "blocks").await;
    let run = start(engine);
    begun.acquire().await.unwrap().forget();
    (Blocked { answer, is_over }, run, id)
}

/// Blocks until the test sends an answer. If a test fails, its sender is dropped and the handler
/// returns; otherwise it could not be ended.
fn wait_on_this_thread(answers: &Mutex<Receiver<Answer>>) -> Answer {
    answers.lock().unwrap().recv().unwrap_or(Answer::Result)
}

async fn assert_goes_on(engine: &Engine, task: TaskId) {
    let ended = tokio::time::timeout(PATIENCE, engine.wait(task)).await.expect("it is not held up");
    assert_eq!(ended.unwrap().state, TaskState::Completed);
}
