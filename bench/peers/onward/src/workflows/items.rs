//! Measures one step with very many items, and as many plain tasks.

use anyhow::{Result, ensure};
use bench_protocol::{Measurement, Request, now};
use onward::{Engine, NewTask, StoreReads, TaskFilter, TaskState};

use super::graphs::read;
use crate::open::open_store;
use crate::orchestrations::engine;
use crate::running;

/// The items that are open at once.
const PARALLEL: usize = 1000;

/// Measures the items of a run, or plain tasks, as the settings say.
pub(crate) async fn items(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    engine.handle("item", |context: onward::Context| {
        std::future::ready(Ok(String::from_utf8_lossy(context.payload()).into_owned()))
    });
    let count = row.count;
    let template = format!(
        "steps: {{items: {{each: {{from: 0, to: {count}, by: 1}}, parallel: {PARALLEL}, task: item, with: '${{{{ item.from }}}}'}}}}"
    );
    engine.add_workflow(read("items.yaml", &template)?);
    let running = running::start(&engine);

    let before = opened.commits();
    let started = now();
    match request.settings.as_str() {
        "plain tasks" => plain_tasks(&engine, count).await?,
        _ => run_of_items(&engine).await?,
    }
    let per_second = count as f64 / started.elapsed().as_secs_f64();
    let commits = opened.commit_sizes(&before, count);
    running::finish(&engine, running).await?;
    Ok(Measurement { commits, ..Measurement::of(per_second).observed("ended", count as u64) })
}

async fn run_of_items(engine: &Engine) -> Result<()> {
    let run = engine.start_run("items").await?;
    let record = engine.wait(run.id).await?;
    ensure!(record.state == TaskState::Completed, "the run did not complete: {:?}", record.errors);
    Ok(())
}

/// Submits the tasks at once, and waits until none is left.
async fn plain_tasks(engine: &Engine, count: usize) -> Result<()> {
    let task = |number: usize| -> onward::Result<NewTask> {
        let mut task = NewTask::new("item")?;
        task.payload = number.to_string().into();
        Ok(task)
    };
    let tasks = (0..count).map(task).collect::<onward::Result<Vec<_>>>()?;
    engine.submit_all(tasks).await?;
    running::drained(engine).await?;
    let completed =
        engine.store().count(TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() }).await?;
    ensure!(completed == count as u64, "{completed} of {count} tasks completed");
    Ok(())
}
