//! Histories that earlier versions wrote. Every later version must understand them.
//!
//! They are in `histories/`, with one directory for each version. The ignored test
//! `write_histories` writes those of this version.

use onward_store::StoreReads;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use onward::orchestration::{Either, HistoryEvent, OrchestrationContext, RecordedHistory, select};
use onward::{Engine, Failure, NewTask, Task};
use serde::{Deserialize, Serialize};

use crate::fixture::{HOUR, SECOND, TestStore};
use crate::orchestrations::{Double, Part};
use crate::test_store::StoreKind;

/// An orchestration that uses every feature once.
#[derive(Serialize, Deserialize)]
enum Tour {
    Work,
    Rest,
    Answer,
    Heed,
    Tag,
}

impl Task for Tour {
    const KIND: &'static str = "tour";
    const ORCHESTRATION: bool = true;
    type Output = String;
}

/// Runs the orchestration. This code must never change, because old histories are replayed with it.
async fn tour(tour: Tour, context: OrchestrationContext) -> Result<String, Failure> {
    match tour {
        Tour::Work => work(&context).await,
        Tour::Rest => {
            let carried = context.event::<u32>("carried")?.await?;
            context.cancelled().await;
            Ok(carried.to_string())
        }
        Tour::Answer => answer(&context).await,
        Tour::Heed => {
            context.cancelled().await;
            Ok(String::new())
        }
        Tour::Tag => {
            context.set_tag("stage", "picking")?;
            context.event::<()>("picked")?.await?;
            context.set_tag("stage", "packing")?;
            context.remove_tag("customer")?;
            Ok(context.tags().len().to_string())
        }
    }
}

async fn answer(context: &OrchestrationContext) -> Result<String, Failure> {
    let _listening = context.cancelled();
    context.updates::<u32>("ask")?.next().await.accept(&1)?;
    context.event::<u32>("again")?.await?;
    Err(context.continue_as_new(&Tour::Heed))
}

async fn work(context: &OrchestrationContext) -> Result<String, Failure> {
    context.activity(Double(2)).await?;
    context.activity_task::<()>(NewTask::new("fails")?).await.unwrap_err();
    context.orchestration(Part("taken".into())).await.unwrap_err();
    context.timer(SECOND).await;
    context.step("fine", || async { Ok(7_u32) }).await?;
    context.step("broken", || async { Err::<u32, _>(Failure::permanent("no")) }).await.unwrap_err();
    let Either::First(_) = select(context.event::<u32>("go")?, context.timer(HOUR)).await else {
        return Err(Failure::permanent("nobody said go"));
    };
    context.detach(Double(9))?;
    if context.patched("greeting") {
        context.event::<u32>("on")?.await?;
    }
    Err(context.continue_as_new(&Tour::Rest))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/histories")
}

/// Returns all kept histories, with their paths.
fn kept() -> Vec<(PathBuf, RecordedHistory)> {
    let read = |path: &Path| -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let files = read(&directory()).into_iter().flat_map(|version| read(&version));
    files.map(|path| (path.clone(), RecordedHistory::from_bytes(&std::fs::read(&path).unwrap()).unwrap())).collect()
}

async fn engine() -> Engine {
    let engine = Engine::builder().memory().open().await.unwrap();
    engine.orchestrate(tour);
    engine
}

/// Shows: D5
#[tokio::test]
async fn histories_of_every_version_are_replayed() {
    let engine = engine().await;
    let histories = kept();
    assert!(histories.len() >= 3, "there are only {}", histories.len());
    for (path, history) in histories {
        engine.check_history(&history).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
    }
}

/// Shows: D5
#[test]
fn every_sort_of_event_is_among_the_histories_that_are_kept() {
    let name = |event: &HistoryEvent| format!("{event:?}").split_whitespace().next().unwrap_or_default().to_owned();
    let found: BTreeSet<String> = kept().iter().flat_map(|(_, history)| history.events.iter().map(name)).collect();
    let all = [
        "Started",
        "TurnBegan",
        "TaskSubmitted",
        "TaskEnded",
        "TimerStarted",
        "TimerFired",
        "SignalReceived",
        "StepEnded",
        "OperationCancelled",
        "TaskDetached",
        "CancelRequested",
        "Patched",
        "SignalCarried",
        "CancelCarried",
        "RepliesCarried",
        "Forked",
        "TagSet",
        "TagRemoved",
    ];
    assert_eq!(found, all.map(str::to_owned).into());
}

/// Not a test: writes the histories of this version.
#[tokio::test]
#[ignore = "it writes the files that other tests read"]
async fn write_histories() {
    let store = TestStore::open(StoreKind::Memory).await.unwrap();
    let engine = store.engine().await;
    engine.orchestrate(tour);
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move { context.event::<String>("never")?.await });
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.handle("fails", |_| async { Err::<(), _>(Failure::permanent("no")) });
    engine.submit(Part("taken".into())).await.unwrap();
    let task = engine.submit(Tour::Work).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "carried", &3).await.unwrap();
    engine.signal(task, "go", &4).await.unwrap();
    store.clock.advance(SECOND);
    engine.run_until_idle().await.unwrap();
    keep("work", &engine.record_history(task).await.unwrap());
    engine.signal(task, "on", &5).await.unwrap();
    engine.run_until_idle().await.unwrap();
    let fork = engine.fork(task, engine.orchestration_history(task).await.unwrap().len() as u64).await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    keep("rest", &engine.record_history(task).await.unwrap());
    keep("fork", &engine.record_history(fork).await.unwrap());
    let task = engine.submit(Tour::Answer).await.unwrap().id();
    let asking = engine.clone();
    let asked = tokio::spawn(async move { asking.update::<_, u32>(task, "ask", &7).await });
    while store.instance(task).await.unwrap().is_none_or(|it| it.waiting == 0) {
        tokio::task::yield_now().await;
    }
    engine.run_until_idle().await.unwrap();
    asked.await.unwrap().unwrap();
    engine.cancel(task).await.unwrap();
    engine.signal(task, "again", &8).await.unwrap();
    engine.run_until_idle().await.unwrap();
    keep("carried", &engine.record_history(task).await.unwrap());
    let task = engine.submit_with(Tour::Tag).tag("customer", "42").tag("region", "eu").await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "picked", &()).await.unwrap();
    engine.run_until_idle().await.unwrap();
    keep("tags", &engine.record_history(task).await.unwrap());
}

fn keep(name: &str, history: &RecordedHistory) {
    let directory = directory().join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name).with_extension("history"), history.to_bytes().unwrap()).unwrap();
}
