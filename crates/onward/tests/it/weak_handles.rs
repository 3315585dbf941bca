//! Handles of an engine that handlers keep.

use std::time::Duration;

use onward::{Engine, Failure, WeakEngine};
use tempfile::TempDir;

use crate::fixture::{submit, task};
use crate::orchestration_clients::Lines;
use crate::seen::listen;

/// The longest time that a store may take to close. It is real time, because its threads end within
/// it.
const CLOSES_WITHIN: Duration = Duration::from_secs(30);

/// Opens an engine on a file of its own.
async fn engine(directory: &TempDir) -> Engine {
    Engine::builder().sqlite(directory.path().join("onward.db")).open().await.unwrap()
}

/// Returns how many descriptors of this process are files in a directory.
#[cfg(target_os = "linux")]
fn descriptors(directory: &TempDir) -> usize {
    let open =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    open.filter(|file| file.starts_with(directory.path())).count()
}

/// Waits until the store in a directory is closed.
#[cfg(target_os = "linux")]
async fn closed(directory: &TempDir) {
    let closed = async {
        while descriptors(directory) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(CLOSES_WITHIN, closed).await.expect("the store was not closed");
}

fn warnings(lines: &Lines) -> usize {
    lines.text().lines().filter(|line| line.contains("keep it and its store open")).count()
}

/// Runs a task whose handler submits through a weak handle and through its context.
async fn run_with_weak_handles(engine: &Engine) {
    let weak: WeakEngine = engine.downgrade();
    engine.handle("weak", move |context| {
        let upgraded = weak.upgrade();
        async move {
            upgraded.expect("the engine runs").submit_task(task("plain")).await?;
            context.engine().clone().submit_task(task("plain")).await?;
            Ok::<(), Failure>(())
        }
    });
    engine.handle("plain", |_| async { Ok::<(), Failure>(()) });
    submit(engine, "weak").await;
    assert_eq!(engine.drain().await.unwrap().completed, 3);
}

/// Shows: T20
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_store_closes_whose_handlers_have_weak_handles() {
    let (lines, _guard) = listen();
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    run_with_weak_handles(&engine).await;
    assert!(descriptors(&directory) > 0);
    let weak = engine.downgrade();
    drop(engine);
    assert!(weak.upgrade().is_none());
    closed(&directory).await;
    assert_eq!(warnings(&lines), 0, "{}", lines.text());
}

/// Registers a handler that keeps the engine, and runs a task with it.
async fn run_with_kept_handle(engine: &Engine) {
    let kept = engine.clone();
    engine.handle("keeps", move |_| {
        let engine = kept.clone();
        async move {
            engine.submit_task(task("plain")).await?;
            Ok::<(), Failure>(())
        }
    });
    engine.handle("plain", |_| async { Ok::<(), Failure>(()) });
    submit(engine, "keeps").await;
    submit(engine, "keeps").await;
    assert_eq!(engine.drain().await.unwrap().completed, 4);
}

/// Shows: T20
#[tokio::test]
async fn the_last_handle_outside_of_handlers_that_keep_one_leaves_a_warning() {
    let (lines, _guard) = listen();
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory).await;
    let weak = engine.downgrade();
    run_with_kept_handle(&engine).await;
    let other = engine.clone();
    drop(engine);
    assert_eq!(warnings(&lines), 0, "{}", lines.text());
    drop(other);
    assert_eq!(warnings(&lines), 1, "{}", lines.text());
    assert!(lines.text().contains("handles=1"), "{}", lines.text());
    // The warning is true: the handler keeps the engine.
    assert!(weak.upgrade().is_some());
}

/// Shows: T20
#[tokio::test]
async fn a_state_and_a_hook_that_keep_the_engine_leave_a_warning() {
    for is_hook in [false, true] {
        let (lines, _guard) = listen();
        let engine = Engine::builder().memory().open().await.unwrap();
        let kept = engine.clone();
        if is_hook {
            engine.after_commit(move |_| {
                let _engine = kept.clone();
                async {}
            });
            engine.handle("uses", |_| async { Ok::<(), Failure>(()) });
        } else {
            engine.state(kept);
            engine.handle("uses", |context| async move {
                context.state::<Engine>()?.submit_task(task("uses-not")).await?;
                Ok::<(), Failure>(())
            });
        }
        submit(&engine, "uses").await;
        engine.run_until_idle().await.unwrap();
        drop(engine);
        assert_eq!(warnings(&lines), 1, "is_hook: {is_hook}\n{}", lines.text());
    }
}
