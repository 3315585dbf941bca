//! The handler of `run` steps: scripts for `sh`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use onward::task::OutputStream;
use onward::{Context, Failure};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::output_lines::OutputLines;
use super::view::View;
use crate::commands::work::{Reported, outcome, stopped};
use crate::process::{Finished, Invocation, Limits, NotRun, Runner};

/// The shell of scripts. It stops at the first command that fails and at unset variables.
const SHELL: &str = "sh";
const SHELL_OPTIONS: [&str; 2] = ["-eu", "-c"];

/// The delay after which a step is due again if the outcome of its script is unknown.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// The payload of a `run` step.
#[derive(Debug, Deserialize)]
struct Script {
    step: String,
    script: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    stdin: Option<String>,
}

/// The shared state of all scripts of a process.
#[derive(Debug)]
pub(crate) struct ScriptWork {
    pub(crate) limits: Limits,
    pub(crate) runner: Arc<Runner>,
    /// The view that shows the output; `None` if the output is only kept.
    pub(crate) view: Option<Arc<View>>,
}

impl ScriptWork {
    /// Runs one attempt.
    pub(crate) async fn attempt(self: Arc<Self>, context: Context) -> Result<Bytes, Failure> {
        let script: Script = serde_json::from_slice(context.payload())
            .map_err(|error| Failure::permanent(format!("the payload is not one of a script: {error}")))?;
        let step = script.step.clone();
        let stop = context.cancelled();
        match self.run(&context, &step, invocation(script, &context), &stop).await {
            Ok(finished) => {
                let stdout = outcome(finished, Reported::default(), self.limits.capture)?;
                let result = result(&stdout);
                if result == stdout {
                    context.result_is_output();
                }
                Ok(result)
            }
            Err(NotRun::Stopped) => Err(stopped()),
            Err(NotRun::Refused(error)) => Err(Failure::permanent(format!("the script cannot be started: {error}"))),
            Err(NotRun::Lost(error)) => {
                Err(Failure::not_counted(format!("the end of the script is unknown: {error}"), AFTER_LOSS))
            }
        }
    }
}

impl ScriptWork {
    /// Runs a script, and keeps its output as it comes. Shows it in the view, if there is one.
    async fn run(
        &self,
        context: &Context,
        step: &str,
        invocation: Invocation,
        stop: &CancellationToken,
    ) -> Result<Finished, NotRun> {
        let program = self.runner.begin(invocation, stop).await?;
        let Some(view) = &self.view else {
            let keep = |stream: OutputStream, bytes: &[u8]| context.output(stream, bytes);
            return program.finish(self.limits, stop, keep).await;
        };
        // Both streams add to it.
        let lines = Mutex::new(OutputLines::default());
        let shown = |stream: OutputStream, bytes: &[u8]| {
            context.output(stream, bytes);
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.add(stream, bytes, |line| view.output(step, stream, line));
        };
        let finished = program.finish(self.limits, stop, shown).await;
        let mut lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        lines.rest(|stream, line| view.output(step, stream, line));
        finished
    }
}

fn invocation(script: Script, context: &Context) -> Invocation {
    let Script { step, script, env, stdin } = script;
    let mut environment: Vec<(Cow<'static, str>, OsString)> = vec![
        ("ONWARD_STEP".into(), step.into()),
        ("ONWARD_TASK_ID".into(), context.id().to_string().into()),
        ("ONWARD_ATTEMPT".into(), context.attempt().to_string().into()),
    ];
    if let Some(run) = context.parent() {
        environment.push(("ONWARD_RUN_ID".into(), run.to_string().into()));
    }
    environment.extend(env.into_iter().map(|(name, value)| (name.into(), value.into())));
    let arguments = SHELL_OPTIONS.iter().map(OsString::from).chain([script.into()]).collect();
    Invocation { program: SHELL.into(), arguments, environment, stdin: stdin.map(Bytes::from) }
}

/// Returns stdout as JSON: as it is if it is JSON, else as a text without its last newline. Bytes
/// that are not UTF-8 are replaced.
fn result(stdout: &[u8]) -> Bytes {
    if serde_json::from_slice::<Value>(stdout).is_ok() {
        return Bytes::copy_from_slice(stdout);
    }
    let text = String::from_utf8_lossy(stdout);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Value::String(text.to_owned()).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_json_is_the_result() {
        assert_eq!(result(b"{\"rows\": 3}\n"), "{\"rows\": 3}\n");
    }

    #[test]
    fn other_output_is_a_text_without_its_last_newline() {
        assert_eq!(result(b"one\ntwo\n"), "\"one\\ntwo\"");
    }

    #[test]
    fn no_output_is_an_empty_text() {
        assert_eq!(result(b""), "\"\"");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        assert_eq!(result(b"a\xffb"), "\"a\u{fffd}b\"");
    }
}
