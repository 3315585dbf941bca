//! How many whole lives of tasks (submit, claim, run, complete) the engine leads per second on the memory store, with a handler
//! that does nothing. `cargo run --release --example lives [TASKS] [SLOTS]`

use std::time::{Duration, Instant};

use onward::prelude::*;

const BATCH: usize = 1000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let tasks = arguments.next().transpose()?.unwrap_or(200_000);
    let slots = arguments.next().transpose()?.unwrap_or(8);

    let engine = Engine::builder().memory().concurrency(slots).open().await?;
    engine.handle("nothing", |_| async { Ok::<(), Failure>(()) });

    let began = now();
    for _ in 0..tasks / BATCH {
        engine.submit_all(vec![NewTask::new("nothing")?; BATCH]).await?;
    }
    let submitted = began.elapsed();
    let began = now();
    let summary = engine.drain().await?;
    let ran = began.elapsed();

    show("submitted", tasks, submitted);
    show("ran", summary.ended() as usize, ran);
    show("whole lives", summary.ended() as usize, submitted + ran);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "measures")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "its output")]
fn show(what: &str, tasks: usize, time: Duration) {
    println!("{what}: {tasks} in {time:.3?}, {:.0}/s", tasks as f64 / time.as_secs_f64());
}
