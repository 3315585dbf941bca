//! A queue of mail to a server that is down at first: retries with back-off, dead letters, and
//! their redrive once the server is up again. The clock is moved by hand, so that hours pass at
//! once. `cargo run --example mail_queue`

use onward_store::StoreReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onward::prelude::*;
use onward::store::Page;
use onward::testing::ManualClock;
use onward::{Backoff, HandlerOptions, RetryPolicy, TaskFilter, TaskState};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
    text: String,
}

impl Task for Mail {
    const KIND: &'static str = "mail";
    type Output = ();

    fn queue(&self) -> &str {
        "mail"
    }
}

/// A stand-in for the mail server.
#[derive(Default)]
struct Server {
    is_up: AtomicBool,
}

impl Server {
    fn deliver(&self, mail: &Mail) -> Result<(), Failure> {
        if !mail.to.contains('@') {
            return Err(Failure::permanent(format!("`{}` is not an address", mail.to)));
        }
        if !self.is_up.load(Ordering::SeqCst) {
            return Err(Failure::retryable("the server does not answer"));
        }
        print_line(&format!("delivered to {}: {}", mail.to, mail.text));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::builder().memory().clock(clock.clone()).open().await?;
    let minute = Duration::from_secs(60);
    let backoff = Backoff::Exponential { initial: minute, factor: 4.0, maximum: minute * 60 };
    let patient = HandlerOptions::new().retry(RetryPolicy { attempts: 4, backoff }).timeout(minute);
    engine.state(Server::default());
    engine.register_with(
        patient,
        |mail: Mail, context: Context| async move { context.state::<Server>()?.deliver(&mail) },
    );

    for to in ["ada@example.org", "grace@example.org", "nobody"] {
        engine.submit(Mail { to: to.to_owned(), text: "see you at noon".to_owned() }).await?;
    }
    // The attempts at 0, 1, 5 and 21 minutes all fail.
    for _ in 0..30 {
        engine.run_until_idle().await?;
        clock.advance(minute);
    }
    let dead = list(&engine, TaskState::Dead).await?;
    let failed = list(&engine, TaskState::Failed).await?;
    assert_eq!((dead.len(), failed.len()), (2, 1));

    print_line("the server is up again; trying the dead letters once more");
    engine.state(Server { is_up: AtomicBool::new(true) });
    for task in dead {
        engine.retry(task).await?;
    }
    let summary = engine.drain().await?;
    assert_eq!(summary.completed, 2);
    print_line(&format!("{} delivered in the end", summary.completed));
    Ok(())
}

/// Prints the tasks in a state, with their last error.
async fn list(engine: &Engine, state: TaskState) -> Result<Vec<onward::TaskId>, onward::Error> {
    let filter = TaskFilter { states: vec![state], ..TaskFilter::default() };
    let page = engine.store().tasks(filter, Page::default()).await?;
    for task in &page.tasks {
        let error = task.errors.last().map_or("", |error| &error.message);
        print_line(&format!("task {} is {state} after {} attempts: {error}", task.id, task.attempts));
    }
    Ok(page.tasks.iter().map(|task| task.id).collect())
}

#[expect(clippy::print_stdout, reason = "its output")]
fn print_line(line: &str) {
    println!("{line}");
}
