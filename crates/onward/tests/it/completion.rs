//! Tasks that are completed externally, moved and found by their keys, and results that are
//! streamed.

use std::io::Write as _;
use std::time::Duration;

use onward::control::Moved;
use onward::store::Refusal;
use onward::task::{CompletionToken, OnDuplicate, UniqueKey};
use onward::{Backoff, Context, Engine, Failure, NewTask, RetryPolicy, Task, TaskState};

use crate::fixture::{HOUR, SECOND, TestStore, error, record, start, state, stop, submit, task};

on_every_store! {
    a_task_whose_handler_let_go_of_it_frees_its_slot_and_is_completed_from_elsewhere,
    an_attempt_that_is_failed_from_elsewhere_is_tried_again_and_its_token_is_outdated,
    a_running_engine_fails_what_is_not_finished_in_time_and_tries_it_again,
    an_extension_is_granted_on_request,
    a_handler_moves_its_task_to_another_queue_without_using_an_attempt_up,
    a_task_is_moved_to_a_queue_that_another_engine_serves,
    a_handler_that_names_no_queue_fails_for_good,
    a_task_is_found_by_the_key_that_its_submitter_chose,
    a_typed_task_is_unique_for_the_time_that_its_type_or_its_submit_says,
    a_typed_submit_may_count_the_time_to_live_from_the_first_attempt,
    of_several_tasks_that_had_a_key_the_live_one_is_found,
    what_a_handler_writes_is_its_result_unless_it_answers_one,
    a_further_attempt_begins_with_an_empty_result,
    a_written_result_stays_within_the_limit,
}

/// Registers a handler that releases its task for external completion and sends its token, as text.
fn ask(engine: &Engine, within: Option<Duration>) -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, tokens) = tokio::sync::mpsc::unbounded_channel();
    engine.handle("approve", move |context: Context| {
        let sender = sender.clone();
        async move {
            sender.send(context.completion_token().to_string()).unwrap();
            Err::<(), _>(within.map_or_else(Failure::await_completion, Failure::await_completion_within))
        }
    });
    tokens
}

async fn token(tokens: &mut tokio::sync::mpsc::UnboundedReceiver<String>) -> CompletionToken {
    tokens.recv().await.unwrap().parse().unwrap()
}

/// Opens an engine that makes two attempts of each task.
async fn patient(store: &TestStore) -> Engine {
    let policy = RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: Duration::ZERO } };
    store.builder().retry(policy).concurrency(1).open().await.unwrap()
}

/// Shows: Q8
async fn a_task_whose_handler_let_go_of_it_frees_its_slot_and_is_completed_from_elsewhere(store: TestStore) {
    let engine = patient(&store).await;
    let mut tokens = ask(&engine, None);
    engine.handle("other", |_| async { Ok(()) });
    let id = submit(&engine, "approve").await;
    let other = submit(&engine, "other").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!((state(&store, id).await, state(&store, other).await), (TaskState::Blocked, TaskState::Completed));
    let elsewhere = store.engine().await;
    elsewhere.complete(token(&mut tokens).await, "yes").await.unwrap();
    assert_eq!(elsewhere.wait(id).await.unwrap().result.as_deref(), Some(b"yes".as_slice()));
    let refused = elsewhere.complete(id, "no").await.unwrap_err();
    assert!(refused.is_already_ended(), "{refused}");
}

/// Shows: Q8
async fn an_attempt_that_is_failed_from_elsewhere_is_tried_again_and_its_token_is_outdated(store: TestStore) {
    let engine = patient(&store).await;
    let mut tokens = ask(&engine, None);
    let id = submit(&engine, "approve").await;
    engine.run_until_idle().await.unwrap();
    let first = token(&mut tokens).await;
    assert_eq!(engine.fail(first, Failure::retryable("declined")).await.unwrap(), TaskState::Waiting);
    engine.run_until_idle().await.unwrap();
    let second = token(&mut tokens).await;
    let refused = engine.complete(first, "late").await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::TokenOutdated(first)));
    assert_eq!(engine.fail(second, Failure::retryable("again")).await.unwrap(), TaskState::Dead);
    assert_eq!(record(&store, id).await.errors.len(), 2);
}

/// Shows: Q8
async fn a_running_engine_fails_what_is_not_finished_in_time_and_tries_it_again(store: TestStore) {
    let engine = patient(&store).await;
    let mut tokens = ask(&engine, Some(HOUR));
    let id = submit(&engine, "approve").await;
    let run = start(&engine);
    let _first = token(&mut tokens).await;
    let second = tokio::spawn(async move { token(&mut tokens).await });
    let second = store.advance_until(HOUR / 10, second).await;
    assert_eq!(error(&store, id).await, "it was not completed within 3600s");
    engine.complete(second, ()).await.unwrap();
    stop(&engine, run).await;
}

/// Shows: Q8
async fn an_extension_is_granted_on_request(store: TestStore) {
    let engine = patient(&store).await;
    let mut tokens = ask(&engine, Some(SECOND));
    let id = submit(&engine, "approve").await;
    engine.run_until_idle().await.unwrap();
    engine.extend(token(&mut tokens).await, Some(HOUR)).await.unwrap();
    store.clock.advance(HOUR / 2);
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Blocked);
}

/// Shows: Q8
async fn a_handler_moves_its_task_to_another_queue_without_using_an_attempt_up(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("convert", |context: Context| async move {
        if context.queue().as_str() == "default" {
            return Err(Failure::move_to("slow"));
        }
        Ok(format!("{} {}", context.queue(), context.attempt()))
    });
    let id = submit(&engine, "convert").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(b"slow 1".as_slice()));
}

/// Shows: Q8
async fn a_task_is_moved_to_a_queue_that_another_engine_serves(store: TestStore) {
    let fast = store.builder().queues(["default"]).open().await.unwrap();
    fast.handle("convert", |_| async { Ok(()) });
    let slow = store.builder().queues(["slow"]).open().await.unwrap();
    slow.handle("convert", |_| async { Ok("slow") });
    let id = submit(&slow, "convert").await;
    assert_eq!(fast.move_to(id, "slow").await.unwrap(), Moved::Now);
    assert_eq!(fast.drain().await.unwrap().completed, 0);
    assert_eq!(slow.drain().await.unwrap().completed, 1);
    assert!(fast.move_to(id, "default").await.unwrap_err().is_already_ended());
}

async fn a_handler_that_names_no_queue_fails_for_good(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("convert", |_| async { Err::<(), _>(Failure::move_to("")) });
    let id = submit(&engine, "convert").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Failed);
}

fn keyed(key: &str, keep_for: Duration) -> NewTask {
    let unique = Some(UniqueKey { key: key.to_owned(), on_duplicate: OnDuplicate::Skip, keep_for });
    NewTask { unique, ..task("order") }
}

/// Shows: Q6
async fn a_task_is_found_by_the_key_that_its_submitter_chose(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("order", |_| async { Ok("done") });
    let id = engine.submit_task(keyed("order-7", HOUR)).await.unwrap().id();
    let found = engine.find("order", "order-7").await.unwrap().unwrap();
    assert_eq!((found.id, found.state), (id, TaskState::Waiting));
    engine.drain().await.unwrap();
    assert_eq!(engine.submit_task(keyed("order-7", HOUR)).await.unwrap().id(), id, "its key is kept");
    let found = engine.find("order", "order-7").await.unwrap().unwrap();
    assert_eq!((found.id, found.result.as_deref()), (id, Some(b"done".as_slice())));
    assert!(engine.find("order", "order-8").await.unwrap().is_none());
    assert!(engine.find("other", "order-7").await.unwrap().is_none());
}

/// A task that runs once a day.
#[derive(serde::Serialize, serde::Deserialize)]
struct Digest(u32);

impl Task for Digest {
    const KIND: &'static str = "digest";
    type Output = ();

    fn key(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn keep_key_for(&self) -> Duration {
        24 * HOUR
    }
}

/// Shows: Q6, T3, T20
async fn a_typed_task_is_unique_for_the_time_that_its_type_or_its_submit_says(store: TestStore) {
    let engine = patient(&store).await;
    engine.register(|_: Digest, _| async { Ok(()) });
    let first = engine.submit(Digest(1)).await.unwrap().id();
    let other = engine.submit_with(Digest(2)).keep_key_for(HOUR).await.unwrap().id();
    engine.drain().await.unwrap();
    assert_eq!(engine.submit(Digest(1)).await.unwrap().id(), first);
    assert_eq!(engine.submit(Digest(2)).await.unwrap().id(), other);
    store.clock.advance(2 * HOUR);
    assert_eq!(engine.submit(Digest(1)).await.unwrap().id(), first);
    assert_ne!(engine.submit(Digest(2)).await.unwrap().id(), other);
}

/// Shows: T6, T20
async fn a_typed_submit_may_count_the_time_to_live_from_the_first_attempt(store: TestStore) {
    let engine = patient(&store).await;
    let submit = engine.submit_with(Digest(1)).ttl_from_first_attempt(HOUR);
    let id = submit.await.unwrap().id();
    store.clock.advance(2 * HOUR);
    engine.register(|_: Digest, _| async { Ok(()) });
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: Q6
async fn of_several_tasks_that_had_a_key_the_live_one_is_found(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("order", |_| async { Ok(()) });
    let first = engine.submit_task(keyed("a", Duration::ZERO)).await.unwrap().id();
    engine.drain().await.unwrap();
    let second = engine.submit_task(keyed("a", Duration::ZERO)).await.unwrap().id();
    engine.drain().await.unwrap();
    assert_eq!(engine.find("order", "a").await.unwrap().map(|task| task.id), Some(second));
    engine.retry(first).await.unwrap();
    assert_eq!(engine.find("order", "a").await.unwrap().map(|task| task.id), Some(first));
}

/// Shows: Q6
async fn what_a_handler_writes_is_its_result_unless_it_answers_one(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("written", |context: Context| async move {
        writeln!(context.result_writer(), "first")?;
        context.result_writer().append("second")?;
        Ok(())
    });
    engine.handle("answered", |context: Context| async move {
        context.result_writer().append("written")?;
        Ok("answered")
    });
    let (written, answered) = (submit(&engine, "written").await, submit(&engine, "answered").await);
    engine.drain().await.unwrap();
    assert_eq!(record(&store, written).await.result.as_deref(), Some(b"first\nsecond".as_slice()));
    assert_eq!(record(&store, answered).await.result.as_deref(), Some(b"answered".as_slice()));
}

/// Shows: Q6
async fn a_further_attempt_begins_with_an_empty_result(store: TestStore) {
    let engine = patient(&store).await;
    engine.handle("written", |context: Context| async move {
        context.result_writer().append(format!("attempt {}", context.attempt()))?;
        if context.attempt() == 1 { Err(Failure::retryable("again")) } else { Ok(()) }
    });
    let id = submit(&engine, "written").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(b"attempt 2".as_slice()));
}

/// Shows: Q6
async fn a_written_result_stays_within_the_limit(store: TestStore) {
    let engine = patient(&store).await;
    let limit = store.info().payload_limit;
    engine.handle("written", move |context: Context| async move {
        context.result_writer().append(vec![b'x'; limit])?;
        let refused = context.result_writer().append("y").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::FileTooLarge);
        Ok(())
    });
    let id = submit(&engine, "written").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.into_bytes().map(|result| result.len()), Some(limit));
}
