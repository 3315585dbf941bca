//! The whole of `onward run`: the run is found or started, an engine works on it, and its result is
//! printed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use onward::workflow::template::{StepAction, Template, TemplateFile, WorkKind};
use onward::workflow::{RunAction, RunFollower, RunPhase, RunStart, SCRIPT_KIND};
use onward::{Engine, MemoryStore, RetryPolicy};
use onward_store::rules::retry::Backoff;
use onward_store::{Store, StoreReads, TaskId, TaskRecord, TaskState};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use super::input::read_input;
use super::script::ScriptWork;
use super::view::View;
use crate::commands::workflow::read_valid;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::location::Location;
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

/// Runs the workflow of a file.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = read_valid(&arguments.file)?;
    let template = match &arguments.env {
        None => file.template(),
        Some(name) => file.in_environment(name).ok_or_else(|| unknown_environment(&file, name))?,
    };
    let input = read_input(&arguments.input, template)?;
    if arguments.graph {
        print_line(template.to_mermaid().trim_end())?;
        return Ok(ExitCode::Done);
    }
    if arguments.check {
        return check(options, file, &arguments, &input).await;
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
    let started = start_of(&engine, file, &arguments, &input).await?;
    if started.has_other_input {
        return Err(wrong_usage(format!(
            "run {} has the same key and another input; change the input, or start another run with --again",
            started.id
        )));
    }
    if arguments.retry && is_retried(engine.run_view(started.id).await?.phase) {
        engine.act_on_run(started.id, RunAction::Retry { steps: Vec::new() }, None, None).await?;
    }
    let follower = engine.follow_run(started.id).await?;
    view.started(started.id, follower.workflow(), started.is_new)?;
    if !elsewhere.is_empty() {
        view.remark(&format!(
            "its steps of the kinds {} run in other processes on this store; start a worker for each, as with `onward work --kind`",
            elsewhere.join(", ")
        ));
    }
    let ended = Execution { engine, store: Arc::clone(&store), work, view: Arc::clone(&view), follower };
    let record = ended.run(interrupts, started.id).await;
    view.close();
    match record? {
        Some(record) => conclude(options, &record),
        None => {
            view.remark(&format!("run {} is interrupted; {RESUME_REMEDY}", started.id));
            Ok(ExitCode::Interrupted)
        }
    }
}

/// Returns the kinds of the tasks and orchestrations that this process leaves to others.
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

/// Returns true if `--retry` has an effect on a run in a phase.
fn is_retried(phase: RunPhase) -> bool {
    phase == RunPhase::Held || phase.is_ended() && phase != RunPhase::Completed
}

fn unknown_environment(file: &TemplateFile, name: &str) -> anyhow::Error {
    let known: Vec<&str> = file.environments().collect();
    wrong_usage(match &known[..] {
        [] => format!("--env {name}: the workflow has no environments; leave the option out"),
        known => format!("--env {name}: the workflow has no such environment; it has {}", known.join(", ")),
    })
}

/// Checks everything that a start checks, and prints the plan. Templates of `workflow` steps come
/// from the store, if there is one.
async fn check(
    options: &GlobalOptions,
    file: TemplateFile,
    arguments: &Arguments,
    input: &Value,
) -> anyhow::Result<ExitCode> {
    let store: Arc<dyn Store> = match &options.store {
        Location::File(path) if !path.exists() => Arc::new(MemoryStore::new()),
        _ => match store_file::open_to_read(options).await {
            Err(error) if is_missing(&error) => Arc::new(MemoryStore::new()),
            opened => opened?,
        },
    };
    let engine = Engine::builder().store(store).open().await?;
    let template = file.template();
    let order = template.graph.order().iter().filter_map(|step| template.steps.get(*step));
    let plan: Vec<String> = order.map(|step| step.name.clone()).collect();
    let (name, label, hash) = (template.name.clone(), file.label(), file.hash());
    start_of(&engine, file, arguments, input).check().await?;
    if options.json {
        print_json(&json!({ "workflow": name, "version": label, "hash": hash, "steps": plan }))?;
    } else {
        print_line(format_args!("{name} {label}: {}", plan.join(" → ")))?;
    }
    Ok(ExitCode::Done)
}

/// Returns true if there is no store.
fn is_missing(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<onward_store::Error>().is_some_and(onward_store::Error::is_not_found))
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

/// Describes the start of the run. The same command describes the same run, unless `--again`.
fn start_of(engine: &Engine, file: TemplateFile, arguments: &Arguments, input: &Value) -> RunStart {
    let name = file.template().name.clone();
    let key = identity(&file, arguments, input);
    engine.add_workflow(file);
    let start = engine.start_run(name).input(input);
    let start = match &arguments.env {
        Some(environment) => start.environment(environment),
        None => start,
    };
    if arguments.again { start.without_key() } else { start.key_if_none(key) }
}

/// Returns the digest of template, environment and input.
fn identity(file: &TemplateFile, arguments: &Arguments, input: &Value) -> String {
    let mut digest = Sha256::new_with_prefix(file.hash().as_bytes());
    let environment = arguments.env.as_deref().unwrap_or_default();
    digest.update(environment.len().to_le_bytes());
    digest.update(environment);
    digest.update(input.to_string());
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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
    /// Works until the run has ended, and returns its task; `None` if the user interrupted.
    async fn run(mut self, mut interrupts: Interrupts, id: TaskId) -> anyhow::Result<Option<TaskRecord>> {
        let engine = self.engine.clone();
        let mut running = tokio::spawn(async move { engine.run().await });
        let ended = tokio::select! {
            ended = self.show() => ended.map(|()| true),
            () = interrupts.next() => Ok(false),
            ended = &mut running => {
                ended?.context(RESUME_REMEDY)?;
                anyhow::bail!("the engine stopped; {RESUME_REMEDY}");
            }
        };
        self.engine.stop();
        tokio::select! {
            ended = running => ended?.context(RESUME_REMEDY)?,
            () = interrupts.next() => self.work.runner.kill_all(),
        }
        if !ended? {
            return Ok(None);
        }
        Ok(self.store.task(id).await?)
    }

    /// Shows the run until it has ended, or waits for a person.
    async fn show(&mut self) -> anyhow::Result<()> {
        while let Some(view) = self.follower.next().await? {
            self.view.update(&view)?;
        }
        Ok(())
    }
}

/// Prints the result, or why there is none.
fn conclude(options: &GlobalOptions, record: &TaskRecord) -> anyhow::Result<ExitCode> {
    let result = record.result.bytes().map(|bytes| serde_json::from_slice::<Value>(bytes)).transpose()?;
    let error = record.errors.last().map(|error| error.message.clone());
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
    let remedy = "fix the cause and add --retry to run what is not done";
    Err(anyhow::anyhow!("run {} is {}: {error}; {remedy}", record.id, record.state))
}

/// Prints a text as it is, and everything else as JSON.
fn print_result(result: &Value) -> anyhow::Result<()> {
    match result {
        Value::Null => Ok(()),
        Value::String(text) => Ok(print_line(text)?),
        result => Ok(print_line(format_args!("{result:#}"))?),
    }
}
