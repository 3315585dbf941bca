//! The worker: an engine whose handlers run commands.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use onward::Engine;
use onward::observe::DrainSummary;
use onward::workflow::SCRIPT_KIND;
use onward_store::Store;
use serde_json::json;

use super::app;
use super::arguments::Arguments;
use super::console::Console;
use super::handler::TaskWork;
use super::output_directory::OutputDirectory;
use crate::commands::run::ScriptWork;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::process::{Interrupts, Limits, Runner, find_program, job_limit};
use crate::store_file;

/// Open files of this process for each command: both ends of the pipes for its three streams, until
/// the command has started, and both ends of the pipe for reports.
const FILES_EACH: u64 = 8;

/// The grace of the engine for a handler, beyond the grace of the handler for its command.
const GRACE_MARGIN: Duration = Duration::from_secs(5);

/// Works until it is interrupted or, with `--until-idle`, until nothing is due and nothing runs.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if !(arguments.apps.is_empty() && arguments.listen.is_empty()) {
        return app::run(options, &arguments).await;
    }
    // Without a command there are no kinds, and no task calls the program.
    let (program, rest) = match arguments.command.split_first() {
        Some((program, rest)) => (find_program(program).map(|()| program.clone())?, rest),
        None => (OsString::new(), &[][..]),
    };
    #[cfg(feature = "metrics")]
    if let Some(address) = arguments.metrics {
        super::metrics::serve(address).await?;
    }
    let store = store_file::open_or_create_to_stay(options).await?;
    let interrupts = Interrupts::listen()?;
    let report_pipes = tempfile::tempdir().context("cannot make a directory for the commands' reports; set TMPDIR")?;
    let capture = store.info().payload_limit;
    let console = Arc::new(Console::new(options, &arguments, &store));
    let faults = Arc::clone(&console);
    let work = Arc::new(TaskWork {
        program,
        arguments: rest.to_vec(),
        limits: Limits { capture, timeout: None, grace: arguments.grace },
        runner: Arc::new(Runner::start(move |message| faults.fault(message))?),
        report_pipes: report_pipes.path().to_owned(),
        console,
        output_directory: arguments.output_dir.as_deref().map(OutputDirectory::open).transpose()?,
    });
    let jobs = jobs(&arguments, &work.console)?;
    let engine = engine(&arguments, &store, &work, jobs).await?;
    work.console.started(options, &arguments, jobs);
    let before = store.clock().steady();
    let (ended, summary) = serve(&engine, arguments.until_idle, interrupts, &work.runner).await?;
    conclude(options, &arguments, &work.console, summary, store.clock().steady().saturating_sub(before))?;
    match ended {
        EndReason::Idle | EndReason::Terminated => Ok(ExitCode::Done),
        EndReason::Interrupted => Ok(ExitCode::Interrupted),
        EndReason::Fault(why) => Err(anyhow::anyhow!("{why}; the worker stops, and its tasks wait for another worker")),
    }
}

/// Returns the number of commands that can run at once. Reports a bound below the requested number.
fn jobs(arguments: &Arguments, console: &Console) -> anyhow::Result<usize> {
    let room = job_limit(arguments.jobs(), FILES_EACH)?;
    room.notice(arguments.jobs()).iter().for_each(|notice| console.fault(notice));
    Ok(room.jobs)
}

async fn engine(
    arguments: &Arguments,
    store: &Arc<dyn Store>,
    work: &Arc<TaskWork>,
    jobs: usize,
) -> anyhow::Result<Engine> {
    let mut builder = Engine::builder()
        .store(Arc::clone(store))
        .concurrency(jobs)
        // A task that waits in this process's buffer could run in another process.
        .prefetch(0)
        .lease(arguments.lease)
        .grace(arguments.grace + GRACE_MARGIN)
        // A stopped engine asks the running commands to stop at once.
        .shutdown_limit(Duration::ZERO)
        .name(format!("onward work {}", std::process::id()));
    if !arguments.queues.is_empty() {
        builder = builder.queues(arguments.queues.iter().map(ToString::to_string));
    }
    if arguments.workflows {
        builder = builder.runs_workflows();
    }
    if arguments.scripts {
        builder = builder.serves_reserved_kinds();
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
    if arguments.scripts {
        let scripts = Arc::new(ScriptWork { limits: work.limits, runner: Arc::clone(&work.runner), view: None });
        engine.handle(SCRIPT_KIND, move |context| Arc::clone(&scripts).attempt(context));
    }
    let console = Arc::clone(&work.console);
    engine.after_commit(move |transition| {
        let console = Arc::clone(&console);
        async move { console.transition(transition).await }
    });
    Ok(engine)
}

/// The reason why the work ended.
enum EndReason {
    Idle,
    Interrupted,
    /// A service manager stopped the worker.
    Terminated,
    /// No command could be started, for this reason.
    Fault(String),
}

/// Runs the engine. The first interrupt asks the commands to stop and returns their tasks to their
/// queues. The second kills the commands, and no summary is printed.
async fn serve(
    engine: &Engine,
    until_idle: bool,
    mut interrupts: Interrupts,
    runner: &Runner,
) -> anyhow::Result<(EndReason, Option<DrainSummary>)> {
    let running = async { if until_idle { engine.run_until_idle().await } else { engine.run_until_stopped().await } };
    tokio::pin!(running);
    let mut ended = EndReason::Idle;
    loop {
        tokio::select! {
            summary = &mut running => return Ok((ended, Some(summary?))),
            why = runner.given_up(), if matches!(ended, EndReason::Idle) => ended = EndReason::Fault(why),
            () = interrupts.next() => match ended {
                EndReason::Idle if interrupts.is_terminated() => ended = EndReason::Terminated,
                EndReason::Idle => ended = EndReason::Interrupted,
                reason => {
                    runner.kill_all();
                    // Killed commands are no graceful stop.
                    let is_fault = matches!(reason, EndReason::Fault(_));
                    return Ok((if is_fault { reason } else { EndReason::Interrupted }, None));
                }
            },
        }
        engine.stop();
    }
}

/// Reports the summary. With `--json` and `--until-idle`, also prints it to standard output.
fn conclude(
    options: &GlobalOptions,
    arguments: &Arguments,
    console: &Console,
    summary: Option<DrainSummary>,
    took: Duration,
) -> std::io::Result<()> {
    let Some(summary) = summary else { return Ok(()) };
    if options.json && arguments.until_idle {
        print_json(&json!(summary))?;
    }
    console.ended(summary, took);
    Ok(())
}
