//! Orchestrations that change their tags, so that they are found by their current work, on every
//! store.

use onward::orchestration::{HistoryEvent, OrchestrationContext};
use onward::task::Tags;
use onward::{Engine, Failure, TaskFilter, TaskId, TaskState};
use onward_store::StoreReads;

use crate::fixture::{TestStore, error, record, state};
use crate::orchestrations::{Answer, Work, engine, finish, start};

on_every_store! {
    an_orchestration_is_found_by_what_it_is_doing_now,
    an_engine_that_takes_over_continues_with_the_tags_that_were_set,
    changes_of_tags_are_events_of_the_history,
    code_that_sets_another_tag_than_it_did_is_a_dead_letter_that_says_so,
    an_invalid_tag_is_an_error_in_the_code_and_changes_nothing,
    a_turn_that_is_not_written_changes_no_tags,
    an_orchestration_that_continues_as_new_keeps_its_tags,
    a_fork_and_a_reset_begin_with_the_tags_of_their_place,
    a_fork_has_room_for_one_tag_fewer_and_says_so_to_its_code,
    tags_are_there_before_the_step_that_follows_them_runs,
    a_history_from_before_code_set_tags_goes_on_behind_a_patch,
}

/// Runs an order whose tags show its current stage.
async fn order(_: Work, context: OrchestrationContext) -> Answer {
    context.set_tag("stage", "picking")?;
    context.event::<()>("picked")?.await?;
    context.set_tag("stage", "packing")?;
    context.set_tag("by", "ada")?;
    context.event::<()>("packed")?.await?;
    context.remove_tag("by")?;
    context.set_tag("stage", "sent")?;
    Ok(shown(&context))
}

fn shown(context: &OrchestrationContext) -> String {
    let tags: Vec<String> = context.tags().iter().map(|(key, value)| format!("{key}={value}")).collect();
    tags.join(" ")
}

fn tags(tags: &[(&str, &str)]) -> Tags {
    tags.iter().copied().collect()
}

async fn start_tagged(engine: &Engine, with: &[(&str, &str)]) -> TaskId {
    with.iter().fold(engine.submit_with(Work(7)), |submit, (key, value)| submit.tag(*key, *value)).await.unwrap().id()
}

/// Returns the orchestrations that have a tag.
async fn with(store: &TestStore, key: &str, value: &str) -> Vec<TaskId> {
    let filter = TaskFilter { tags: tags(&[(key, value)]), orchestration: Some(true), ..TaskFilter::default() };
    store.task_ids(filter, onward::store::Page::default()).await.unwrap().tasks
}

async fn send(engine: &Engine, task: TaskId, name: &str) {
    engine.signal(task, name, &()).await.unwrap();
    engine.run_until_idle().await.unwrap();
}

/// Shows: D10
async fn an_orchestration_is_found_by_what_it_is_doing_now(store: TestStore) {
    let engine = engine(&store, order).await;
    let task = start_tagged(&engine, &[("customer", "42"), ("stage", "new")]).await;
    assert_eq!(with(&store, "stage", "new").await, [task]);
    engine.run_until_idle().await.unwrap();
    assert_eq!((with(&store, "stage", "new").await, with(&store, "stage", "picking").await), (vec![], vec![task]));
    send(&engine, task, "picked").await;
    let expected = tags(&[("by", "ada"), ("customer", "42"), ("stage", "packing")]);
    assert_eq!(record(&store, task).await.tags, expected);
    assert_eq!(with(&store, "by", "ada").await, [task]);
    engine.signal(task, "packed", &()).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "customer=42 stage=sent");
    assert_eq!((with(&store, "by", "ada").await, with(&store, "stage", "sent").await), (vec![], vec![task]));
}

/// Shows: D10
async fn an_engine_that_takes_over_continues_with_the_tags_that_were_set(store: TestStore) {
    let first = engine(&store, order).await;
    let task = start_tagged(&first, &[("customer", "42"), ("stage", "new")]).await;
    first.run_until_idle().await.unwrap();
    send(&engine(&store, order).await, task, "picked").await;
    assert_eq!(with(&store, "stage", "packing").await, [task]);
    let third = engine(&store, order).await;
    third.signal(task, "packed", &()).await.unwrap();
    assert_eq!(finish(&third, task).await.unwrap(), "customer=42 stage=sent");
    assert_eq!(record(&store, task).await.tags, tags(&[("customer", "42"), ("stage", "sent")]));
}

/// Shows: D10, D5
async fn changes_of_tags_are_events_of_the_history(store: TestStore) {
    let engine = engine(&store, order).await;
    let task = start_tagged(&engine, &[("stage", "new")]).await;
    engine.run_until_idle().await.unwrap();
    send(&engine, task, "picked").await;
    let history = engine.orchestration_history(task).await.unwrap();
    let of = |text: &str| Some(text.to_owned());
    let set = |key: &str, value: &str, before| HistoryEvent::TagSet { key: key.into(), value: value.into(), before };
    assert_eq!(history[1], set("stage", "picking", of("new")));
    assert_eq!(history[4..], [set("stage", "packing", of("picking")), set("by", "ada", None)]);
    send(&engine, task, "packed").await;
    let recorded = engine.record_history(task).await.unwrap();
    assert_eq!(recorded.events[8], HistoryEvent::TagRemoved { key: "by".into(), before: of("ada") });
    let kept = onward::orchestration::RecordedHistory::from_bytes(&recorded.to_bytes().unwrap()).unwrap();
    assert_eq!((&kept, &kept.tags), (&recorded, &tags(&[("stage", "sent")])));
    engine.check_history(&kept).unwrap();
}

/// Shows: D10, D5
async fn code_that_sets_another_tag_than_it_did_is_a_dead_letter_that_says_so(store: TestStore) {
    let first = engine(&store, order).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let other = |_: Work, context: OrchestrationContext| async move {
        context.set_tag("stage", "waiting")?;
        context.event::<()>("picked")?.await?;
        Ok(String::new())
    };
    send(&engine(&store, other).await, task, "picked").await;
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    for expected in ["at event 1 the history has the tag `stage=picking`", "the code has the tag `stage=waiting`"] {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(with(&store, "stage", "picking").await, [task]);
}

/// Sets tags that no task may have, and returns the errors.
async fn invalid_tags(_: Work, context: OrchestrationContext) -> Answer {
    let (long, longer) = ("k".repeat(65), "v".repeat(257));
    let wrong =
        [("", "v"), (long.as_str(), "v"), ("k", longer.as_str()), ("a=b", "v"), ("onward.forked-from", "1:2:3:4")];
    let mut said: Vec<String> = Vec::new();
    for (key, value) in wrong {
        said.push(context.set_tag(key, value).unwrap_err().to_string());
    }
    said.push(context.remove_tag("onward.forked-from").unwrap_err().to_string());
    for number in 0..31 {
        context.set_tag(number.to_string(), "")?;
    }
    said.push(context.set_tag("one too many", "").unwrap_err().to_string());
    context.event::<()>("go")?.await?;
    context.remove_tag("30")?;
    context.set_tag("one fewer", "")?;
    Ok(said.join("\n"))
}

/// Shows: D10, D9
async fn an_invalid_tag_is_an_error_in_the_code_and_changes_nothing(store: TestStore) {
    let first = engine(&store, invalid_tags).await;
    let task = start_tagged(&first, &[("customer", "42")]).await;
    first.run_until_idle().await.unwrap();
    assert_eq!(record(&store, task).await.tags.len(), 32);
    // A replay returns the same errors.
    let second = engine(&store, invalid_tags).await;
    second.signal(task, "go", &()).await.unwrap();
    let said = finish(&second, task).await.unwrap();
    let expected = [
        "has an empty key",
        "has 65 bytes and may have 64",
        "has 257 bytes and may have 256",
        "has `=`",
        "keys that begin with `onward.` are Onward's",
        "keys that begin with `onward.` are Onward's",
        "has 33 tags and may have 32",
    ];
    assert_eq!(said.lines().count(), expected.len(), "{said}");
    said.lines().zip(expected).for_each(|(line, expected)| assert!(line.contains(expected), "{line}"));
    let after = record(&store, task).await.tags;
    assert_eq!((after.len(), after.get("customer"), after.get("one fewer")), (32, Some("42"), Some("")));
}

/// Opens an engine whose code sets a tag in its second turn, and panics there unless it is fixed.
async fn packing(store: &TestStore, is_mended: bool) -> Engine {
    engine(store, move |_, context| async move {
        context.set_tag("stage", "picking")?;
        context.event::<()>("go")?.await?;
        context.set_tag("stage", "packing")?;
        assert!(is_mended, "no box is large enough");
        Ok(shown(&context))
    })
    .await
}

/// Shows: D10
async fn a_turn_that_is_not_written_changes_no_tags(store: TestStore) {
    let broken = packing(&store, false).await;
    let task = start(&broken).await;
    broken.run_until_idle().await.unwrap();
    send(&broken, task, "go").await;
    assert_eq!(state(&store, task).await, TaskState::Dead);
    assert_eq!((with(&store, "stage", "picking").await, with(&store, "stage", "packing").await), (vec![task], vec![]));
    // The fixed code continues from there.
    let mended = packing(&store, true).await;
    mended.retry(task).await.unwrap();
    assert_eq!(finish(&mended, task).await.unwrap(), "stage=packing");
}

/// Shows: D10, D4
async fn an_orchestration_that_continues_as_new_keeps_its_tags(store: TestStore) {
    let code = |work: Work, context: OrchestrationContext| async move {
        if work.0 == 7 {
            context.set_tag("round", "1")?;
            context.remove_tag("stage")?;
            return Err(context.continue_as_new(&Work(8)));
        }
        let before = shown(&context);
        context.event::<()>("go")?.await?;
        context.set_tag("round", "2")?;
        Ok(before)
    };
    let first = engine(&store, code).await;
    let task = start_tagged(&first, &[("customer", "42"), ("stage", "new")]).await;
    first.run_until_idle().await.unwrap();
    assert_eq!(record(&store, task).await.tags, tags(&[("customer", "42"), ("round", "1")]));
    let second = engine(&store, code).await;
    second.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&second, task).await.unwrap(), "customer=42 round=1");
    assert_eq!(with(&store, "round", "2").await, [task]);
}

/// Returns the number of events before the first event of a name.
async fn events_before(engine: &Engine, task: TaskId, name: &str) -> u64 {
    let history = engine.orchestration_history(task).await.unwrap();
    let is_it = |event: &HistoryEvent| matches!(event, HistoryEvent::SignalReceived { name: it, .. } if it == name);
    history.iter().position(is_it).unwrap() as u64
}

/// Shows: D10, D8
async fn a_fork_and_a_reset_begin_with_the_tags_of_their_place(store: TestStore) {
    let engine = engine(&store, order).await;
    let task = start_tagged(&engine, &[("customer", "42"), ("stage", "new")]).await;
    engine.run_until_idle().await.unwrap();
    send(&engine, task, "picked").await;
    engine.signal(task, "packed", &()).await.unwrap();
    finish(&engine, task).await.unwrap();

    let packing = events_before(&engine, task, "packed").await;
    let fork = engine.fork(task, packing).await.unwrap();
    assert_eq!((with(&store, "stage", "packing").await, with(&store, "by", "ada").await), (vec![fork], vec![fork]));
    let picking = events_before(&engine, task, "picked").await;
    let reset = engine.reset(task, picking, "again").await.unwrap();
    assert_eq!((with(&store, "stage", "picking").await, with(&store, "by", "ada").await), (vec![reset], vec![fork]));
    assert_eq!(with(&store, "stage", "sent").await, [task]);

    engine.run_until_idle().await.unwrap();
    send(&engine, reset, "picked").await;
    for other in [fork, reset] {
        engine.signal(other, "packed", &()).await.unwrap();
        assert_eq!(finish(&engine, other).await.unwrap(), "customer=42 stage=sent");
    }
    // A fork of a fork, at a point before the end of what the first fork took over.
    let again = engine.fork(fork, picking).await.unwrap();
    assert_eq!(with(&store, "stage", "picking").await, [again]);
    assert_eq!(with(&store, "customer", "42").await, [again, reset, fork, task]);
}

/// Sets the maximum number of tags.
async fn many_tags(_: Work, context: OrchestrationContext) -> Answer {
    for number in 0..31 {
        context.set_tag(number.to_string(), "")?;
    }
    context.event::<()>("go")?.await?;
    Ok(context.set_tag("last", "").map_or_else(|error| error.to_string(), |()| "it has 32".to_owned()))
}

/// Shows: D10, D8
async fn a_fork_has_room_for_one_tag_fewer_and_says_so_to_its_code(store: TestStore) {
    let first = engine(&store, many_tags).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let fork = first.fork(task, first.orchestration_history(task).await.unwrap().len() as u64).await.unwrap();
    first.run_until_idle().await.unwrap();
    let second = engine(&store, many_tags).await;
    for of in [task, fork] {
        second.signal(of, "go", &()).await.unwrap();
    }
    assert_eq!(finish(&second, task).await.unwrap(), "it has 32");
    let said = finish(&second, fork).await.unwrap();
    assert!(said.contains("would have 33 tags, of which 1 is Onward's"), "{said}");
    second.check_history(&second.record_history(fork).await.unwrap()).unwrap();
}

/// Shows: D10
async fn tags_are_there_before_the_step_that_follows_them_runs(store: TestStore) {
    let reads = store.shared();
    let engine = engine(&store, move |_, context| {
        let reads = std::sync::Arc::clone(&reads);
        async move {
            context.set_tag("stage", "picking")?;
            let filter = TaskFilter { tags: tags(&[("stage", "picking")]), ..TaskFilter::default() };
            let look =
                || async move { reads.count(filter).await.map_err(|error| Failure::permanent(error.to_string())) };
            Ok(context.step("look", look).await?.to_string())
        }
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "1");
}

/// Shows: D10
async fn a_history_from_before_code_set_tags_goes_on_behind_a_patch(store: TestStore) {
    let old = |_: Work, context: OrchestrationContext| async move {
        context.event::<()>("go")?.await?;
        Ok(shown(&context))
    };
    let first = engine(&store, old).await;
    let task = start_tagged(&first, &[("stage", "new")]).await;
    first.run_until_idle().await.unwrap();
    let new = |_: Work, context: OrchestrationContext| async move {
        if context.patched("tags") {
            context.set_tag("stage", "waiting")?;
        }
        context.event::<()>("go")?.await?;
        context.set_tag("stage", "gone on")?;
        Ok(shown(&context))
    };
    let second = engine(&store, new).await;
    let later = start(&second).await;
    second.run_until_idle().await.unwrap();
    second.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&second, task).await.unwrap(), "stage=gone on");
    assert_eq!(with(&store, "stage", "waiting").await, [later]);
}
