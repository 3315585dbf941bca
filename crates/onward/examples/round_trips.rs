//! Measures tasks per second (submit, claim, run, complete) with a handler that does nothing, in
//! memory or on a file that survives a killed process. `cargo run --release --example round_trips
//! [TASKS [SLOTS [FILE]]]`

use std::time::{Duration, Instant};

use onward::prelude::*;
use onward::store::Durability;

const BATCH: usize = 1000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let tasks = arguments.next().map_or(Ok(50_000), |tasks| tasks.parse::<usize>())?;
    let slots = arguments.next().map_or(Ok(8), |slots| slots.parse())?;
    let builder = Engine::builder().concurrency(slots);
    let builder = match arguments.next() {
        Some(file) => builder.sqlite(file).durability(Durability::Normal),
        None => builder.memory(),
    };
    let engine = builder.open().await?;
    engine.handle("nothing", |_| async { Ok::<(), Failure>(()) });

    let began = now();
    for _ in 0..tasks / BATCH {
        engine.submit_all(vec![NewTask::new("nothing")?; BATCH]).await?;
    }
    let submitted = began.elapsed();
    let began = now();
    let summary = engine.drain().await?;
    let ran = began.elapsed();

    assert!(summary.completed >= (tasks / BATCH * BATCH) as u64, "a task was lost");
    show("submitted", tasks, submitted);
    show("ran", summary.ended() as usize, ran);
    show("round trips", summary.ended() as usize, submitted + ran);
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
