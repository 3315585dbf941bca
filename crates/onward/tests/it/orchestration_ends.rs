//! Signals that arrive while an orchestration ends: its code consumes them, or they are kept
//! unread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onward::orchestration::{Either, HistoryEvent, OrchestrationContext, select};
use onward::{Engine, Failure, TaskFilter, TaskId, TaskState};
use onward_store::bounds::TURN_MESSAGES;
use onward_store::{
    AfterTurn, Name, Outcome, Recipient, Signal, Store, StoreDecorator, StoreFuture, StoreReads, Write,
};

use crate::fixture::{TestStore, record, state};
use crate::orchestrations::{Double, Part, Work, finish, start};

on_every_store! {
    a_signal_during_the_last_step_is_offered,
    a_step_is_not_run_again_for_a_signal_during_it,
    a_signal_during_the_last_activity_is_offered,
    a_signal_goes_before_the_timer_that_would_have_ended_the_code,
    a_signal_goes_before_the_step_that_would_have_ended_the_code,
    signals_that_follow_the_last_one_keep_their_order,
    a_signal_before_the_start_is_there_at_the_first_poll,
    a_signal_that_starts_an_orchestration_is_there_at_the_first_poll,
    a_signal_during_the_only_poll_is_offered,
    what_was_sent_is_there_when_an_orchestration_begins_again,
    more_signals_than_a_turn_takes_are_there_before_the_end,
    an_update_before_the_start_is_answered,
    what_the_code_submitted_before_an_end_that_is_put_off_is_submitted_once,
    what_the_code_showed_before_an_end_that_is_put_off_stays,
    tags_that_were_set_before_an_end_that_is_put_off_stay,
    a_history_with_an_end_that_was_put_off_is_replayed,
    signals_that_completed_code_did_not_read_stand_in_its_history,
    signals_that_failed_code_did_not_read_stand_in_its_history,
    signals_that_cancelled_code_did_not_read_stand_in_its_history,
    a_cancellation_that_arrives_at_the_end_is_offered_to_code_that_asks,
    a_flood_of_signals_does_not_keep_an_orchestration_from_its_end,
    a_failed_orchestration_that_is_tried_again_sees_its_mailbox,
    a_signal_after_the_end_starts_the_next_orchestration_of_the_key,
}

/// A store that applies a write just before it receives the end of an orchestration, a number of
/// times.
struct Intruder {
    inner: Arc<dyn Store>,
    times: AtomicU32,
    write: fn(TaskId) -> Write,
}

impl std::fmt::Debug for Intruder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intruder").field("times", &self.times).finish_non_exhaustive()
    }
}

fn ended(write: &Write) -> Option<TaskId> {
    let turn = match write {
        Write::Turn(turn) => turn,
        Write::EndWithTurn(end) => &end.turn,
        _ => return None,
    };
    let ends = matches!(turn.next, AfterTurn::Complete { .. } | AfterTurn::Fail { .. } | AfterTurn::Cancelled { .. });
    ends.then_some(turn.lease.task)
}

impl StoreDecorator for Intruder {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        let comes =
            |_: &TaskId| self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        let Some(task) = writes.iter().find_map(ended).filter(comes) else { return self.inner.apply(writes) };
        Box::pin(async move {
            self.inner.apply(vec![(self.write)(task)]).await?;
            self.inner.apply(writes).await
        })
    }
}

fn late(task: TaskId) -> Write {
    let (to, name) = (Recipient::Task(task), Name::new("late").unwrap());
    Write::Signal(Box::new(Signal { to, name, payload: "7".into() }))
}

fn cancel(task: TaskId) -> Write {
    Write::Cancel { task }
}

/// Opens an engine with code for `work`. A write is applied before each of its first `times` ends.
async fn intruded<F, A>(store: &TestStore, times: u32, write: fn(TaskId) -> Write, code: F) -> Engine
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<String, Failure>> + Send + 'static,
{
    let intruder = Intruder { inner: store.shared(), times: AtomicU32::new(times), write };
    let engine = store.builder().store(Arc::new(intruder)).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(code);
    engine
}

/// Opens an engine with code for `work`. A signal arrives before its first end.
async fn engine<F, A>(store: &TestStore, code: F) -> Engine
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<String, Failure>> + Send + 'static,
{
    intruded(store, 1, late, code).await
}

/// Takes all signals in the queue, and returns them.
fn drained(context: &OrchestrationContext) -> Result<Vec<u32>, Failure> {
    let queue = context.queue("late")?;
    let mut taken = Vec::new();
    while let Some(number) = queue.try_next()? {
        taken.push(number);
    }
    Ok(taken)
}

async fn ran(engine: &Engine) -> String {
    let task = start(engine).await;
    finish(engine, task).await.unwrap()
}

/// Returns the number of unread signals according to a history.
async fn unread(engine: &Engine, task: TaskId) -> u64 {
    let history = engine.orchestration_history(task).await.unwrap();
    let count = |event: &HistoryEvent| {
        if let HistoryEvent::SignalsUnread { name, count } = event { (name == "late").then_some(*count) } else { None }
    };
    history.iter().filter_map(count).sum()
}

async fn waiting(engine: &Engine, task: TaskId) -> u64 {
    engine.orchestration_status(task).await.unwrap().record().waiting
}

/// Shows: D3
async fn a_signal_during_the_last_step_is_offered(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.step("charge", || async { Ok(()) }).await?;
        Ok(format!("{:?}", drained(&context)?))
    })
    .await;
    assert_eq!(ran(&engine).await, "[7]");
}

/// Shows: D1, D3
async fn a_step_is_not_run_again_for_a_signal_during_it(store: TestStore) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let engine = engine(&store, move |_, context| {
        let counted = Arc::clone(&counted);
        async move {
            let step = move || async move { Ok(counted.fetch_add(1, Ordering::SeqCst)) };
            context.step("charge", step).await?;
            Ok(format!("{:?}", drained(&context)?))
        }
    })
    .await;
    assert_eq!(ran(&engine).await, "[7]");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Shows: D3
async fn a_signal_during_the_last_activity_is_offered(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = context.activity(Double(4)).await?;
        Ok(format!("{doubled} {:?}", drained(&context)?))
    })
    .await;
    assert_eq!(ran(&engine).await, "8 [7]");
}

/// Takes signals until none has arrived for a time.
async fn until_idle(context: OrchestrationContext, idle: Duration) -> Result<String, Failure> {
    let (queue, mut taken) = (context.queue::<u32>("late")?, Vec::new());
    while let Either::First(number) = select(queue.next(), context.timer(idle)).await {
        taken.push(number?);
    }
    Ok(format!("{taken:?}"))
}

/// Shows: D3
async fn a_signal_goes_before_the_timer_that_would_have_ended_the_code(store: TestStore) {
    let engine = engine(&store, |_, context| until_idle(context, Duration::ZERO)).await;
    assert_eq!(ran(&engine).await, "[7]");
}

/// Shows: D3
async fn a_signal_goes_before_the_step_that_would_have_ended_the_code(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let step = context.step("charge", || async { Ok(()) });
        match select(context.event::<u32>("late")?, step).await {
            Either::First(number) => Ok(format!("{}", number?)),
            Either::Second(charged) => charged.map(|()| "charged".to_owned()),
        }
    })
    .await;
    assert_eq!(ran(&engine).await, "7");
}

/// Shows: D3
async fn signals_that_follow_the_last_one_keep_their_order(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let first: u32 = context.event("late")?.await?;
        Ok(format!("{first} {:?}", drained(&context)?))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    for number in [1, 2] {
        engine.signal(task, "late", &number).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "1 [2, 7]");
}

/// Shows: D3
async fn a_signal_before_the_start_is_there_at_the_first_poll(store: TestStore) {
    let engine =
        crate::orchestrations::engine(&store, |_, context| async move { Ok(format!("{:?}", drained(&context)?)) })
            .await;
    let task = start(&engine).await;
    for number in [1, 2] {
        engine.signal(task, "late", &number).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "[1, 2]");
}

/// Opens an engine whose `part` takes the waiting signals and ends.
async fn draining(store: &TestStore) -> Engine {
    let engine = store.engine().await;
    engine.orchestrate(|_: Part, context| async move { Ok(format!("{:?}", drained(&context)?)) });
    engine
}

/// Shows: D3
async fn a_signal_that_starts_an_orchestration_is_there_at_the_first_poll(store: TestStore) {
    let engine = draining(&store).await;
    let part = engine.signal_or_start(Part("a".into()), "late", &7).await.unwrap();
    assert_eq!(finish(&engine, part.id()).await.unwrap(), "[7]");
}

/// Shows: D3
async fn a_signal_during_the_only_poll_is_offered(store: TestStore) {
    let engine = engine(&store, |_, context| async move { Ok(format!("{:?}", drained(&context)?)) }).await;
    assert_eq!(ran(&engine).await, "[7]");
}

/// Shows: D3, D7
async fn what_was_sent_is_there_when_an_orchestration_begins_again(store: TestStore) {
    let engine = crate::orchestrations::engine(&store, |_, context| async move {
        if context.generation() == 0 {
            context.event::<()>("again")?.await?;
            return Err(context.continue_as_new(&Work(0)));
        }
        Ok(format!("{:?}", drained(&context)?))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "late", &1).await.unwrap();
    engine.signal(task, "again", &()).await.unwrap();
    engine.signal(task, "late", &2).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "[1, 2]");
}

/// Shows: D3
async fn more_signals_than_a_turn_takes_are_there_before_the_end(store: TestStore) {
    let engine =
        crate::orchestrations::engine(&store, |_, context| async move { Ok(format!("{}", drained(&context)?.len())) })
            .await;
    let task = start(&engine).await;
    let many = TURN_MESSAGES + 100;
    store.apply((0..many).map(|_| late(task)).collect()).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), many.to_string());
    assert_eq!(unread(&engine, task).await, 0);
}

/// Shows: D3
async fn an_update_before_the_start_is_answered(store: TestStore) {
    let engine = crate::orchestrations::engine(&store, |_, context| async move {
        let updates = context.updates::<u32>("add")?;
        let Some(update) = updates.try_next() else { return Ok("none".to_owned()) };
        let sum = update.payload() + 1;
        update.accept(&sum)?;
        Ok("answered".to_owned())
    })
    .await;
    let task = start(&engine).await;
    let asked = engine.update::<_, u32>(task, "add", &4);
    let (answer, said) = tokio::join!(asked, async {
        while waiting(&engine, task).await == 0 {
            tokio::task::yield_now().await;
        }
        finish(&engine, task).await.unwrap()
    });
    assert_eq!((answer.unwrap(), said.as_str()), (5, "answered"));
}

/// Shows: D1
async fn what_the_code_submitted_before_an_end_that_is_put_off_is_submitted_once(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.detach(Double(1))?;
        let doubled = context.activity(Double(2)).start();
        context.step("pack", || async { Ok(()) }).await?;
        context.detach(Double(3))?;
        context.step("send", || async { Ok(()) }).await?;
        drop(doubled);
        Ok(format!("{:?}", drained(&context)?))
    })
    .await;
    assert_eq!(ran(&engine).await, "[7]");
    let doubles = TaskFilter { kind: Some(Name::new("double").unwrap()), ..TaskFilter::default() };
    assert_eq!(store.count(doubles).await.unwrap(), 3);
}

/// Shows: D10
async fn what_the_code_showed_before_an_end_that_is_put_off_stays(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.set_status(&"packing")?;
        context.set_value("boxes", &2)?;
        context.step("pack", || async { Ok(()) }).await?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let status = engine.orchestration_status(task).await.unwrap();
    assert_eq!(status.status::<String>().unwrap().as_deref(), Some("packing"));
    assert_eq!(status.value::<u32>("boxes").unwrap(), Some(2));
}

/// Changes a tag before each of two steps. The first change is in a part of the turn of its own.
async fn tagging(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    context.set_tag("stage", "packing")?;
    context.step("pack", || async { Ok(()) }).await?;
    context.set_tag("stage", "sending")?;
    context.step("send", || async { Ok(()) }).await?;
    context.set_tag("stage", "sent")?;
    Ok(format!("{:?}", drained(&context)?))
}

/// Shows: D10
async fn tags_that_were_set_before_an_end_that_is_put_off_stay(store: TestStore) {
    let engine = engine(&store, tagging).await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "[7]");
    assert_eq!(record(&store, task).await.tags.get("stage"), Some("sent"));
}

/// Shows: D5
async fn a_history_with_an_end_that_was_put_off_is_replayed(store: TestStore) {
    let engine = engine(&store, tagging).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let history = engine.record_history(task).await.unwrap();
    engine.check_history(&history).unwrap();
}

/// Shows: D3, D10
async fn signals_that_completed_code_did_not_read_stand_in_its_history(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    assert_eq!((unread(&engine, task).await, waiting(&engine, task).await), (1, 0));
}

/// Shows: D3, D10
async fn signals_that_failed_code_did_not_read_stand_in_its_history(store: TestStore) {
    let engine = engine(&store, |_, _| async { Err(Failure::permanent("no")) }).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap_err();
    assert_eq!((unread(&engine, task).await, waiting(&engine, task).await), (1, 0));
}

/// Shows: D3, D8
async fn signals_that_cancelled_code_did_not_read_stand_in_its_history(store: TestStore) {
    let engine = engine(&store, |_, context| async move { context.event::<String>("never")?.await }).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
    assert_eq!((unread(&engine, task).await, waiting(&engine, task).await), (1, 0));
}

/// Shows: D8
async fn a_cancellation_that_arrives_at_the_end_is_offered_to_code_that_asks(store: TestStore) {
    let engine = intruded(&store, 1, cancel, |_, context| async move {
        let step = context.step("charge", || async { Ok(()) });
        match select(context.cancelled(), step).await {
            Either::First(()) => Ok("cleaned up".to_owned()),
            Either::Second(_) => Ok("charged".to_owned()),
        }
    })
    .await;
    assert_eq!(ran(&engine).await, "cleaned up");
}

/// Shows: D3
async fn a_flood_of_signals_does_not_keep_an_orchestration_from_its_end(store: TestStore) {
    let engine = intruded(&store, u32::MAX, late, |_, _| async { Ok(String::new()) }).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    assert_eq!((unread(&engine, task).await, waiting(&engine, task).await), (100, 1));
}

/// Shows: D3, D9
async fn a_failed_orchestration_that_is_tried_again_sees_its_mailbox(store: TestStore) {
    let first = intruded(&store, u32::MAX, late, |_, context| async move {
        context.step("charge", || async { Ok(()) }).await?;
        Err(Failure::permanent("no"))
    })
    .await;
    let task = start(&first).await;
    finish(&first, task).await.unwrap_err();
    let mended = crate::orchestrations::engine(&store, |_, context| async move {
        context.step("charge", || async { Ok(()) }).await?;
        let queue = context.queue::<u32>("late")?;
        for _ in 0..101 {
            queue.next().await?;
        }
        Ok("all".to_owned())
    })
    .await;
    mended.retry(task).await.unwrap();
    mended.run_until_idle().await.unwrap();
    assert_eq!((state(&store, task).await, waiting(&mended, task).await), (TaskState::Completed, 0));
}

/// Shows: D3
async fn a_signal_after_the_end_starts_the_next_orchestration_of_the_key(store: TestStore) {
    let engine = draining(&store).await;
    let first = engine.signal_or_start(Part("a".into()), "late", &1).await.unwrap();
    finish(&engine, first.id()).await.unwrap();
    let second = engine.signal_or_start(Part("a".into()), "late", &2).await.unwrap();
    assert_ne!(first.id(), second.id());
    assert_eq!(finish(&engine, second.id()).await.unwrap(), "[2]");
}
