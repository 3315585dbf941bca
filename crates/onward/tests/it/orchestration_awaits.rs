//! The awaits of orchestrations: several things at once, moments, and events in order.

use onward::orchestration::{Either, OrchestrationContext, join_all, select, select_all};
use onward::{Failure, NewTask, TaskId, TaskState};

use crate::fixture::{HOUR, SECOND, TestStore, state};
use crate::orchestrations::{Part, Work, engine, finish, start};

on_every_store! {
    the_first_of_many_is_answered_with_its_place_and_the_others_are_cancelled,
    of_several_that_are_there_the_one_of_the_lowest_place_is_answered_and_a_replay_answers_the_same,
    an_event_that_loses_a_select_goes_to_the_next_that_waits,
    those_who_wait_for_the_same_event_are_served_in_their_order,
    a_timer_may_be_set_for_a_moment,
    an_orchestration_that_loses_a_select_is_asked_to_stop,
    code_may_ask_whether_it_is_to_stop,
}

/// Shows: D4
async fn the_first_of_many_is_answered_with_its_place_and_the_others_are_cancelled(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let kinds = ["nobody-does-this", "seven", "nobody-does-this"];
        let tasks = kinds.map(|kind| NewTask::new(kind).map(|task| context.activity_task::<u32>(task)));
        let (place, first) = select_all(tasks.into_iter().collect::<Result<Vec<_>, _>>()?).await;
        Ok(format!("{place} {}", first?))
    })
    .await;
    engine.handle("seven", |_| async { Ok::<_, Failure>("7") });
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "1 7");
    for number in [1, 3] {
        assert_eq!(state(&store, TaskId(task.0 + number)).await, TaskState::Cancelled);
    }
}

/// Shows: D4
async fn of_several_that_are_there_the_one_of_the_lowest_place_is_answered_and_a_replay_answers_the_same(
    store: TestStore,
) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context.event::<String>("begin")?.await?;
        let events = ["late", "early"].map(|name| context.event::<String>(name));
        let (place, said) = select_all(events.into_iter().collect::<Result<Vec<_>, _>>()?).await;
        context.event::<()>("end")?.await?;
        Ok(format!("{place} {}", said?))
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    for name in ["early", "late", "begin"] {
        first.signal(task, name, &name).await.unwrap();
    }
    first.run_until_idle().await.unwrap();
    first.signal(task, "end", &()).await.unwrap();
    assert_eq!(finish(&engine(&store, code).await, task).await.unwrap(), "0 late");
}

/// Shows: D3, D4
async fn an_event_that_loses_a_select_goes_to_the_next_that_waits(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.event::<()>("begin")?.await?;
        let both = select(context.event::<u32>("one")?, context.event::<u32>("other")?);
        let Either::First(one) = both.await else { return Ok("the other came first".to_owned()) };
        Ok(format!("{} {}", one?, context.event::<u32>("other")?.await?))
    })
    .await;
    let task = start(&engine).await;
    engine.signal(task, "other", &2).await.unwrap();
    engine.signal(task, "one", &1).await.unwrap();
    engine.signal(task, "begin", &()).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "1 2");
}

/// Shows: D3
async fn those_who_wait_for_the_same_event_are_served_in_their_order(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let waiting = [context.event::<String>("word")?, context.event::<String>("word")?];
        let words = join_all(waiting).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(words.join(" "))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    for word in ["good", "night"] {
        engine.signal(task, "word", &word).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "good night");
}

/// Shows: D3
async fn a_timer_may_be_set_for_a_moment(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let noon = context.now().plus(HOUR);
        context.timer_until(noon).await;
        // A moment in the past is ready at once.
        context.timer_until(noon).await;
        Ok((context.now() == noon).to_string())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(HOUR - SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Scheduled);
    store.clock.advance(SECOND);
    assert_eq!(finish(&engine, task).await.unwrap(), "true");
}

/// Shows: D4, D8
async fn an_orchestration_that_loses_a_select_is_asked_to_stop(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let part = context.orchestration(Part("a".into()));
        let won = select(part, context.timer(SECOND)).await;
        Ok(matches!(won, Either::Second(())).to_string())
    })
    .await;
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move {
        context.cancelled().await;
        Ok("cleaned up".to_owned())
    });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(SECOND);
    assert_eq!(finish(&engine, task).await.unwrap(), "true");
    assert_eq!(finish(&engine, TaskId(task.0 + 1)).await.unwrap(), "cleaned up");
}

/// Shows: D8
async fn code_may_ask_whether_it_is_to_stop(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let _listening = context.cancelled();
        let before = context.is_cancel_requested();
        context.event::<()>("go")?.await?;
        Ok(format!("{before} {}", context.is_cancel_requested()))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "false true");
}
