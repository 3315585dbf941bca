//! `onward top` on a pseudo terminal, and without a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use onward::orchestration::{OrchestrationContext, join_all};
use onward::{Engine, Failure, NewTask, RetryPolicy, Task};
use onward_store::rusqlite::Connection;
use onward_store::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::harness::Sandbox;
use crate::stores::on_every_store;
use crate::terminal::{read_until, terminal};

on_every_store! {
    it_draws_what_another_process_does_and_ends_with_q,
    the_activities_of_an_orchestration_are_among_what_runs_and_the_dead_letters,
    in_an_empty_directory_it_waits_for_a_store not on postgres,
    all_pauses_end_with_one_key,
    without_a_terminal_it_names_what_programs_use,
    while_nothing_happens_it_writes_nothing_to_the_store not on postgres,
}

/// Starts `onward top` on the store of a sandbox.
fn top(sandbox: &Sandbox, terminal: &File) -> Child {
    sandbox
        .command(&["top"])
        .stdin(Stdio::from(terminal.try_clone().unwrap()))
        .stdout(Stdio::from(terminal.try_clone().unwrap()))
        .stderr(Stdio::from(terminal.try_clone().unwrap()))
        .spawn()
        .unwrap()
}

/// Returns the contents of a store's files, and SQLite's count of the changes by other connections.
fn contents(sandbox: &Sandbox, connection: &Connection) -> (Vec<u8>, Vec<u8>, i64) {
    let bytes = |name: &str| std::fs::read(sandbox.path(name)).unwrap_or_default();
    let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap();
    (bytes("onward.db"), bytes("onward.db-wal"), version)
}

/// A task waits, so its age changes and the picture is drawn each second. The test waits for that.
///
/// Shows: Q5, Q10
fn while_nothing_happens_it_writes_nothing_to_the_store(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "send", "--queue", "letters"]);
    let connection = Connection::open(sandbox.path("onward.db")).unwrap();
    let (mut outer, inner) = terminal();
    let mut child = top(&sandbox, &inner);
    read_until(&mut outer, "letters");
    let before = contents(&sandbox, &connection);
    let began = SystemClock.steady();
    while SystemClock.steady().saturating_sub(began) < Duration::from_secs(3) {
        assert!(outer.read(&mut [0; 4096]).unwrap() > 0, "the terminal was closed");
    }
    assert!(contents(&sandbox, &connection) == before, "something was written");
    sandbox.onward(&["submit", "--kind", "send", "--queue", "parcels"]);
    assert!(contents(&sandbox, &connection) != before, "what is written would not be noticed");
    outer.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Shows: Q10
fn it_draws_what_another_process_does_and_ends_with_q(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "send", "--queue", "letters"]);
    let (mut outer, inner) = terminal();
    let mut child = top(&sandbox, &inner);
    read_until(&mut outer, "letters");
    sandbox.onward(&["submit", "--kind", "send", "--queue", "parcels"]);
    read_until(&mut outer, "parcels");
    outer.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Shows: Q10, B2
fn in_an_empty_directory_it_waits_for_a_store(sandbox: Sandbox) {
    let (mut outer, inner) = terminal();
    let mut child = top(&sandbox, &inner);
    // Blanks between words are not drawn.
    read_until(&mut outer, "There");
    assert!(!sandbox.path("onward.db").exists(), "a view made a store");
    sandbox.onward(&["submit", "--kind", "send", "--queue", "letters"]);
    read_until(&mut outer, "letters");
    outer.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Shows: Q10, T14
fn all_pauses_end_with_one_key(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "send", "--queue", "letters"]);
    sandbox.onward(&["queue", "pause", "letters"]);
    sandbox.onward(&["queue", "pause", "--all"]);
    let (mut outer, inner) = terminal();
    let mut child = top(&sandbox, &inner);
    read_until(&mut outer, "paused");
    outer.write_all(b"R").unwrap();
    read_until(&mut outer, "pauses");
    outer.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(sandbox.json(&["queue", "show", "letters"])[0]["pauses"], serde_json::json!([]));
}

#[derive(Serialize, Deserialize)]
struct Order;

impl Task for Order {
    const KIND: &'static str = "order";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

/// Opens an engine whose orders call two activities: one that runs until it is released, and one
/// that is a dead letter at once.
async fn ordering(sandbox: &Sandbox, charged: &Arc<Semaphore>) -> Engine {
    let engine = Engine::open(sandbox.store()).await.unwrap();
    let charged = Arc::clone(charged);
    engine.handle("charge", move |_| {
        let charged = Arc::clone(&charged);
        async move { charged.acquire().await.map(|_| "null").map_err(|error| Failure::permanent(error.to_string())) }
    });
    engine.handle("print-invoice", |_| async { Err::<&str, _>(Failure::retryable("no printer")) });
    engine.orchestrate(|_: Order, context: OrchestrationContext| async move {
        context.set_tag("stage", "charging")?;
        let charge = context.activity_task::<()>(NewTask::new("charge")?).start();
        let invoice = context.activity_task::<()>(NewTask::new("print-invoice")?).retry(RetryPolicy::NEVER).start();
        join_all([charge, invoice]).await;
        Ok(())
    });
    engine
}

/// Shows: D10, Q10
fn the_activities_of_an_orchestration_are_among_what_runs_and_the_dead_letters(sandbox: Sandbox) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let charged = Arc::new(Semaphore::new(0));
    let engine = runtime.block_on(ordering(&sandbox, &charged));
    let order = runtime.block_on(async { engine.submit(Order).await.unwrap().id() });
    let running = engine.clone();
    let run = runtime.spawn(async move { running.run().await.unwrap() });
    let (mut outer, inner) = terminal();
    let mut child = top(&sandbox, &inner);
    read_until(&mut outer, "charge");
    outer.write_all(b"3").unwrap();
    let seen = read_until(&mut outer, "no printer");
    assert!(seen.contains("print-invoice"), "{seen}");
    charged.add_permits(1);
    runtime.block_on(async { engine.wait(order).await.unwrap() });
    outer.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    engine.stop();
    runtime.block_on(run).unwrap();
}

/// Shows: Q10
fn without_a_terminal_it_names_what_programs_use(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "send"]);
    let ran = sandbox.onward(&["top"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`onward stats --json`"), "{}", ran.stderr);
}
