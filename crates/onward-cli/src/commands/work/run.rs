//! The worker: an engine whose handlers run commands.

#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
#[cfg(feature = "metrics")]
use metrics_exporter_prometheus::PrometheusBuilder;
use onward::{DrainSummary, Engine};
use onward_store::Store;
use serde_json::json;

use super::arguments::Arguments;
use super::handler::TaskWork;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, remark};
use crate::process::{Interrupts, Limits, Runner, find_program};
use crate::store_file;

/// What the engine gives a handler beyond the grace that the handler gives its command.
const GRACE_MARGIN: Duration = Duration::from_secs(5);

/// Works until it is interrupted, or until nothing is left with `--until-idle`.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Some((program, rest)) = arguments.command.split_first() else { return Err(wrong_usage("there is no command")) };
    find_program(program)?;
    #[cfg(feature = "metrics")]
    if let Some(address) = arguments.metrics {
        serve_metrics(address)?;
    }
    let store = store_file::open_or_create(options).await?;
    let interrupts = Interrupts::listen()?;
    let mailboxes = tempfile::tempdir().context("cannot make a directory for the commands' reports; set TMPDIR")?;
    let capture = store.info().payload_limit;
    let work = Arc::new(TaskWork {
        program: program.clone(),
        arguments: rest.to_vec(),
        limits: Limits { capture, timeout: None, grace: arguments.grace },
        runner: Runner::start()?,
        mailboxes: mailboxes.path().to_owned(),
    });
    let engine = engine(&arguments, &store, &work).await?;
    serve(options, &engine, arguments.until_idle, interrupts, &work.runner).await
}

#[cfg(feature = "metrics")]
fn serve_metrics(address: SocketAddr) -> anyhow::Result<()> {
    let exporter = PrometheusBuilder::new().with_http_listener(address);
    exporter
        .install()
        .map_err(|error| wrong_usage(format!("--metrics {address}: {error}; give an address that is free")))
}

async fn engine(arguments: &Arguments, store: &Arc<dyn Store>, work: &Arc<TaskWork>) -> anyhow::Result<Engine> {
    let mut builder = Engine::builder()
        .store(Arc::clone(store))
        .concurrency(arguments.jobs())
        // A task that waits in this process's buffer could run in another process.
        .prefetch(0)
        .lease(arguments.lease)
        .grace(arguments.grace + GRACE_MARGIN)
        .shutdown_limit(Duration::ZERO)
        .name(format!("onward work {}", std::process::id()));
    if !arguments.queues.is_empty() {
        builder = builder.queues(arguments.queues.iter().map(ToString::to_string));
    }
    if let Some(preemption) = arguments.preemption() {
        builder = builder.preemption(preemption);
    }
    if let Some(time) = arguments.keep_ended_for {
        builder = builder.keep_ended_for(time);
    }
    if let Some(tasks) = arguments.keep_ended {
        builder = builder.keep_ended(tasks);
    }
    let engine = arguments.pressure.add_to(builder)?.open().await?;
    for kind in &arguments.kinds {
        let work = Arc::clone(work);
        engine.handle(kind.as_str(), move |context| Arc::clone(&work).attempt(context));
    }
    Ok(engine)
}

/// Runs the engine. The first interrupt asks the commands to stop and gives their tasks back; the second kills them.
async fn serve(
    options: &GlobalOptions,
    engine: &Engine,
    until_idle: bool,
    mut interrupts: Interrupts,
    runner: &Runner,
) -> anyhow::Result<ExitCode> {
    let running =
        async { if until_idle { engine.run_until_idle().await.map(Some) } else { engine.run().await.map(|()| None) } };
    tokio::pin!(running);
    let (mut code, mut requests) = (ExitCode::Done, 0);
    let summary = loop {
        tokio::select! {
            summary = &mut running => break summary?,
            () = interrupts.next() => {
                code = ExitCode::Interrupted;
                requests += 1;
                if requests > 1 {
                    runner.kill_all();
                    return Ok(code);
                }
                engine.stop();
            }
        }
    };
    summary.map_or(Ok(()), |summary| conclude(options, summary))?;
    Ok(code)
}

fn conclude(options: &GlobalOptions, summary: DrainSummary) -> std::io::Result<()> {
    let DrainSummary { completed, failed, dead, cancelled, retried, lost, .. } = summary;
    if options.json {
        return print_json(&json!(summary));
    }
    remark(format_args!(
        "{completed} completed, {failed} failed, {dead} dead, {cancelled} cancelled; {} to be tried again, {lost} lost",
        counted(retried, "attempt")
    ));
    Ok(())
}
