//! The start of the run, or the run that the command continues.

use onward::Engine;
use onward::workflow::template::TemplateFile;
use onward::workflow::{LastRun, RunAction, RunPhase, RunStart};
use onward_store::TaskId;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use super::view::View;
use crate::exit_code::wrong_usage;

/// The run on which the command works.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartedRun {
    pub(super) id: TaskId,
    /// False if the command continues or retries a run.
    pub(super) is_new: bool,
}

/// Starts a run, or finds the one that the command continues or retries.
pub(super) async fn begin(
    engine: &Engine,
    file: TemplateFile,
    arguments: &Arguments,
    input: Option<Value>,
    view: &View,
) -> anyhow::Result<StartedRun> {
    if !arguments.from.is_empty() || !arguments.only.is_empty() {
        return fork(engine, file, arguments, input).await;
    }
    let name = file.template().name.clone();
    let start = start_of(engine, file, arguments, input);
    let started = if arguments.retry {
        let existing = start.existing().await?;
        let Some(existing) = existing else { return Err(nothing_to_retry(engine, &name, arguments).await?) };
        existing
    } else {
        start.await?
    };
    if started.has_other_input {
        return Err(wrong_usage(format!(
            "run {} has the same key and another input; change the input, or start another run with --again",
            started.id
        )));
    }
    if started.has_other_template {
        let id = started.id;
        view.remark(&format!(
            "run {id} keeps the content of the file with which it started; --again starts another run with the present one"
        ));
    }
    if arguments.retry && is_retried(engine.run_view(started.id).await?.phase) {
        engine.act_on_run(started.id, RunAction::Retry { steps: Vec::new() }, None, None).await?;
    }
    Ok(StartedRun { id: started.id, is_new: started.is_new })
}

/// Returns true if `--retry` has an effect on a run in a phase.
fn is_retried(phase: RunPhase) -> bool {
    phase == RunPhase::Held || phase.is_ended() && phase != RunPhase::Completed
}

/// Returns the error of `--retry` without a run of this content and this input.
async fn nothing_to_retry(engine: &Engine, name: &str, arguments: &Arguments) -> anyhow::Result<anyhow::Error> {
    let last = engine.last_run(name, arguments.env.as_deref()).await?;
    Ok(wrong_usage(match last {
        Some(LastRun { id, .. }) => format!(
            "--retry: run {id} of {name}, the last one, has another input or another content of the file; --from STEP takes its results \
             over, --again starts another run, and `onward workflow retry {id}` retries it as it was started"
        ),
        None => format!("--retry: there is no run of {name}; leave the option out to start one"),
    }))
}

/// Starts a run on the results of the last one, or continues such a run.
async fn fork(
    engine: &Engine,
    file: TemplateFile,
    arguments: &Arguments,
    input: Option<Value>,
) -> anyhow::Result<StartedRun> {
    let (name, hash) = (file.template().name.clone(), file.hash());
    let last = engine.last_run(&name, arguments.env.as_deref()).await?;
    let (steps, only) = if arguments.only.is_empty() { (&arguments.from, false) } else { (&arguments.only, true) };
    let is_same = |last: &&LastRun| {
        let is_live = !last.phase.is_ended() && last.phase != RunPhase::Held;
        is_live && last.template == hash && last.fork.as_ref().is_some_and(|fork| fork.0 == *steps && fork.1 == only)
    };
    if let Some(last) = last.as_ref().filter(is_same) {
        // The command was interrupted, and its run continues.
        return Ok(StartedRun { id: last.id, is_new: false });
    }
    let last = last.map(|last| last.id);
    let start = described(engine, file, arguments, input);
    let start = if only { start.only(last, steps) } else { start.from_run(needed(last, &name)?, steps) };
    Ok(StartedRun { id: start.await?.id, is_new: true })
}

fn needed(last: Option<TaskId>, name: &str) -> anyhow::Result<TaskId> {
    last.ok_or_else(|| {
        wrong_usage(format!(
            "--from: there is no run of {name} whose results could be taken over; leave the option out"
        ))
    })
}

/// Describes the start of the run. The same command describes the same run, unless `--again`.
pub(super) fn start_of(engine: &Engine, file: TemplateFile, arguments: &Arguments, input: Option<Value>) -> RunStart {
    let key = identity(&file, arguments, input.as_ref());
    let start = described(engine, file, arguments, input);
    if arguments.again { start.without_key() } else { start.key_if_none(key) }
}

fn described(engine: &Engine, file: TemplateFile, arguments: &Arguments, input: Option<Value>) -> RunStart {
    let name = file.template().name.clone();
    engine.add_workflow(file);
    let start = engine.start_run(name);
    let start = input.iter().fold(start, RunStart::input);
    arguments.env.iter().fold(start, RunStart::environment)
}
/// Returns the digest of template, environment and input.
fn identity(file: &TemplateFile, arguments: &Arguments, input: Option<&Value>) -> String {
    let mut digest = Sha256::new_with_prefix(file.hash().as_bytes());
    let environment = arguments.env.as_deref().unwrap_or_default();
    digest.update(environment.len().to_le_bytes());
    digest.update(environment);
    digest.update(input.unwrap_or(&Value::Null).to_string());
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
