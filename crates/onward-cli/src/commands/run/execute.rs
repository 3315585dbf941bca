//! The whole of `onward run`: the run is found or started, an engine works on it, and its result is
//! printed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use onward::workflow::template::TemplateFile;
use onward::workflow::{RunAction, RunFollower, SCRIPT_KIND, StartedRun};
use onward::{Engine, RetryPolicy};
use onward_store::rules::retry::Backoff;
use onward_store::{Store, StoreReads, TaskId, TaskRecord, TaskState};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use super::input::read_input;
use super::script::ScriptWork;
use super::view::View;
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

/// Runs the workflow of a file.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = read_template(&arguments.file)?;
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
        return check(options, &file);
    }
    let store = store_file::open_or_create_to_stay(options).await?;
    let interrupts = Interrupts::listen()?;
    let view = Arc::new(View::new(options));
    let room = job_limit(arguments.jobs.count(), FILES_EACH)?;
    room.notice(arguments.jobs.count()).iter().for_each(|notice| view.remark(notice));
    let notices = Arc::clone(&view);
    let work = Arc::new(ScriptWork {
        limits: Limits { capture: store.info().payload_limit, timeout: None, grace: arguments.grace },
        runner: Runner::start(move |line| notices.remark(line))?,
        view: Arc::clone(&view),
    });
    let engine = engine(&store, &work, room.jobs, arguments.grace).await?;
    let started = start(&engine, file, &arguments, &input).await?;
    if started.has_other_input {
        return Err(wrong_usage(format!(
            "run {} has the same key and another input; change the input, or start another run with --again",
            started.id
        )));
    }
    if arguments.retry && store.task(started.id).await?.is_some_and(|run| is_retried(run.state)) {
        engine.act_on_run(started.id, RunAction::Retry { steps: Vec::new() }, None, None).await?;
    }
    let follower = engine.follow_run(started.id).await?;
    view.started(started.id, follower.workflow(), started.is_new)?;
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

/// Returns true if `--retry` has an effect on a run in a state.
fn is_retried(state: TaskState) -> bool {
    state.is_ended() && state != TaskState::Completed
}

/// Reads a template. Its errors are wrong usage.
pub(crate) fn read_template(path: &Path) -> anyhow::Result<TemplateFile> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong_usage(format!("{name}: {error}; name a file with a workflow that can be read")))?;
    TemplateFile::read(&name, &text).map_err(|errors| wrong_usage(errors.to_string()))
}

fn unknown_environment(file: &TemplateFile, name: &str) -> anyhow::Error {
    let known: Vec<&str> = file.environments().collect();
    wrong_usage(format!("--env {name}: the template has no such environment; it has {}", known.join(", ")))
}

fn check(options: &GlobalOptions, file: &TemplateFile) -> anyhow::Result<ExitCode> {
    let template = file.template();
    let order = template.graph.order().iter().filter_map(|step| template.steps.get(*step));
    let plan: Vec<&str> = order.map(|step| step.name.as_str()).collect();
    if options.json {
        print_json(&json!({
            "workflow": template.name, "version": file.label(), "hash": file.hash().to_string(), "steps": plan
        }))?;
    } else {
        print_line(format_args!("{} {}: {}", template.name, file.label(), plan.join(" → ")))?;
    }
    Ok(ExitCode::Done)
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

/// Starts the run, or finds the one that the same command started.
async fn start(
    engine: &Engine,
    file: TemplateFile,
    arguments: &Arguments,
    input: &Value,
) -> anyhow::Result<StartedRun> {
    let name = file.template().name.clone();
    let key = identity(&file, arguments, input);
    engine.add_workflow(file);
    let start = engine.start_run(name).input(input);
    let start = match &arguments.env {
        Some(environment) => start.environment(environment),
        None => start,
    };
    let start = if arguments.again { start.without_key() } else { start.key_if_none(key) };
    Ok(start.await?)
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
