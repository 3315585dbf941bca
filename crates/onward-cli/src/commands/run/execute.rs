//! The whole of `onward run`: the run is found or started, an engine works on it, and its result is
//! printed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use onward::workflow::template::{StepAction, Template, TemplateFile, WorkKind};
use onward::workflow::{RunFollower, SCRIPT_KIND};
use onward::{Engine, RetryPolicy};
use onward_store::rules::retry::Backoff;
use onward_store::{Store, StoreReads, TaskId, TaskRecord, TaskState};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::check::check;
use super::input::read_input;
use super::script::ScriptWork;
use super::start::begin;
use super::view::View;
use crate::apply::StuckReport;
use crate::commands::workflow::read_valid;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::process::{Interrupts, Limits, Runner, job_limit};
use crate::store_file;

/// Open files of this process for each script: both ends of the pipes for its three streams, until
/// the script has started.
const FILES_EACH: u64 = 6;

/// The grace of the engine for a handler, beyond the grace of the handler for its script.
const GRACE_MARGIN: Duration = Duration::from_secs(5);

/// The remedy when the run has not ended.
const RESUME_REMEDY: &str = "finished steps are kept, and the same command resumes where it stopped";

/// The remedy when another run of the same command would be another run.
const CARRY_ON_REMEDY: &str =
    "finished steps are kept, and `onward work --workflows --scripts` resumes where it stopped";

/// Runs the workflow of a file.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = read_valid(&arguments.file)?;
    let template = match &arguments.env {
        None => file.template(),
        Some(name) => file.in_environment(name).ok_or_else(|| unknown_environment(&file, name))?,
    };
    // A run that takes over another one has the input of that one, unless another is given.
    let forks = !arguments.from.is_empty() || !arguments.only.is_empty();
    let is_given = !arguments.input.is_empty() || !forks;
    let input = is_given.then(|| read_input(&arguments.input, template)).transpose()?;
    if arguments.graph {
        print_line(template.to_mermaid().trim_end())?;
        return Ok(ExitCode::Done);
    }
    if arguments.check {
        return check(options, file, &arguments, input).await;
    }
    let store = store_file::open_or_create_to_stay(options).await?;
    let interrupts = Interrupts::listen()?;
    let view = Arc::new(View::new(options));
    let room = job_limit(arguments.jobs.count(), FILES_EACH)?;
    room.notice(arguments.jobs.count()).iter().for_each(|notice| view.remark(notice));
    let notices = Arc::clone(&view);
    let work = Arc::new(ScriptWork {
        limits: Limits { capture: store.info().payload_limit, timeout: None, grace: arguments.grace },
        runner: Arc::new(Runner::start(move |line| notices.remark(line))?),
        view: Some(Arc::clone(&view)),
    });
    let engine = engine(&store, &work, room.jobs, arguments.grace).await?;
    let elsewhere = kinds_elsewhere(template);
    let started = begin(&engine, file, &arguments, input, &view).await?;
    let follower = engine.follow_run(started.id).await?;
    view.started(started.id, follower.workflow(), started.is_new)?;
    if !elsewhere.is_empty() {
        view.remark(&format!(
            "its steps of the kinds {} run in other processes on this store; start a worker for each, as with `onward work --kind`",
            elsewhere.join(", ")
        ));
    }
    let execution = Execution { engine, store: Arc::clone(&store), work, view: Arc::clone(&view), follower };
    let ended = execution.run(interrupts, started.id).await;
    view.close();
    match ended? {
        Some(ended) => conclude(options, &ended),
        None => {
            let remedy = if arguments.again { CARRY_ON_REMEDY } else { RESUME_REMEDY };
            view.remark(&format!("run {} is interrupted; {remedy}", started.id));
            Ok(ExitCode::Interrupted)
        }
    }
}

/// Returns the kinds of the tasks and orchestrations that this process leaves to other processes.
fn kinds_elsewhere(template: &Template) -> Vec<String> {
    let kinds = template.steps.iter().filter_map(|step| match &step.action {
        StepAction::Work(work) => match &work.kind {
            WorkKind::Task { kind } | WorkKind::Orchestration { kind } => Some(kind.clone()),
            WorkKind::Run { .. } | WorkKind::Workflow { .. } => None,
        },
        _ => None,
    });
    kinds.collect::<BTreeSet<_>>().into_iter().collect()
}

async fn engine(
    store: &Arc<dyn Store>,
    work: &Arc<ScriptWork>,
    jobs: usize,
    grace: Duration,
) -> anyhow::Result<Engine> {
    let engine = Engine::builder()
        .store(Arc::clone(store))
        .concurrency(jobs)
        // A step that waits in this process's buffer could run in another process.
        .prefetch(0)
        .grace(grace + GRACE_MARGIN)
        // A stopped engine asks the running scripts to stop at once.
        .shutdown_limit(Duration::ZERO)
        // A person waits for the run, so a step without `retry` is tried once.
        .retry(RetryPolicy { attempts: 1, backoff: Backoff::Constant { delay: Duration::ZERO } })
        .serves_reserved_kinds()
        .name(format!("onward run {}", std::process::id()))
        .open()
        .await?;
    let work = Arc::clone(work);
    engine.handle(SCRIPT_KIND, move |context| Arc::clone(&work).attempt(context));
    Ok(engine)
}

/// A run that an engine of this process works on.
struct Execution {
    engine: Engine,
    store: Arc<dyn Store>,
    work: Arc<ScriptWork>,
    view: Arc<View>,
    follower: RunFollower,
}

impl Execution {
    /// Works until the run has ended, and returns its end; `None` if the user interrupted.
    async fn run(mut self, mut interrupts: Interrupts, id: TaskId) -> anyhow::Result<Option<Ended>> {
        let engine = self.engine.clone();
        let mut running = tokio::spawn(async move { engine.run().await });
        let (store, view) = (Arc::clone(&self.store), Arc::clone(&self.view));
        let ended = tokio::select! {
            ended = self.show() => ended.map(Some),
            failed = report_stuck(&*store, &view, id) => failed.map(|()| None),
            () = interrupts.next() => Ok(None),
            ended = &mut running => {
                ended?.context(RESUME_REMEDY)?;
                anyhow::bail!("the engine stopped; {RESUME_REMEDY}");
            }
        };
        // The engine claims nothing from here on. After an interrupt its scripts are asked to stop
        // and have `--grace` for that; a second interrupt kills them.
        self.engine.stop();
        tokio::select! {
            ended = running => ended?.context(RESUME_REMEDY)?,
            () = interrupts.next() => self.work.runner.kill_all(),
        }
        let Some(has_undone) = ended? else { return Ok(None) };
        Ok(self.store.task(id).await?.map(|record| Ended { record, has_undone }))
    }

    /// Shows the run until it has ended. Returns true if its undo has begun.
    async fn show(&mut self) -> anyhow::Result<bool> {
        let mut has_undone = false;
        while let Some(view) = self.follower.next().await? {
            self.view.update(&view)?;
            has_undone = view.steps.iter().any(|step| step.undo.is_some());
        }
        Ok(has_undone)
    }
}

/// Reports once why a run waits, if it waits for an action of the user. Then never completes.
async fn report_stuck(store: &dyn Store, view: &View, run: TaskId) -> anyhow::Result<()> {
    let mut stuck = StuckReport::new();
    loop {
        stuck.due().await;
        for reason in stuck.look(store, Some(run)).await? {
            view.remark(&format!("run {run} waits: {reason}"));
        }
    }
}

/// A run that has ended.
struct Ended {
    record: TaskRecord,
    /// True if its undo has begun, so that no retry is possible.
    has_undone: bool,
}

/// Prints the result, or why there is none.
fn conclude(options: &GlobalOptions, ended: &Ended) -> anyhow::Result<ExitCode> {
    let Ended { record, has_undone } = ended;
    let result = record.result.bytes().map(|bytes| serde_json::from_slice::<Value>(bytes)).transpose()?;
    // A run that completed after a retry keeps the error of before.
    let failed = record.state != TaskState::Completed;
    let error = record.errors.last().filter(|_| failed).map(|error| error.message.clone());
    if options.json {
        print_json(&json!({
            "event": "ended", "run": record.id, "state": record.state, "result": result, "error": error
        }))?;
    } else if let Some(result) = &result {
        print_result(result)?;
    }
    if record.state == TaskState::Completed {
        return Ok(ExitCode::Done);
    }
    let error = error.unwrap_or_else(|| "no error was kept".to_owned());
    let remedy = if *has_undone {
        "what it did is undone, so fix the cause and start another run with --again"
    } else {
        "fix the cause and add --retry to run what is not done"
    };
    Err(anyhow::anyhow!("run {} is {}: {error}; {remedy}", record.id, record.state))
}

/// Prints a text as it is, and everything else as JSON. A step that printed nothing has an empty
/// text, which is no line.
fn print_result(result: &Value) -> anyhow::Result<()> {
    match result {
        Value::Null => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        Value::String(text) => Ok(print_line(text)?),
        result => Ok(print_line(format_args!("{result:#}"))?),
    }
}

fn unknown_environment(file: &TemplateFile, name: &str) -> anyhow::Error {
    let known: Vec<&str> = file.environments().collect();
    wrong_usage(match &known[..] {
        [] => format!("--env {name}: the workflow has no environments; leave the option out"),
        known => format!("--env {name}: the workflow has no such environment; it has {}", known.join(", ")),
    })
}
