//! Reading a test file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::play::play;
use super::report::WorkflowTestReport;
use crate::error::{Error, Result};
use crate::workflow::expression::parse_duration;
use crate::workflow::nearest::did_you_mean;
use crate::workflow::run::{Phase, StepState};
use crate::workflow::template::{StepAction, Template, TemplateFile, WorkKind, read_yaml};

/// The state that a case expects of a step whose undo completed.
pub(super) const UNDONE: &str = "undone";

/// The prefix of the names of undos.
pub(super) const UNDO: &str = "undo.";

/// A file that tests a template: it states the results of steps, and the expected end of each run.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use onward::testing::WorkflowTest;
///
/// let template = "steps: {pay: {task: pay}, thank: {wait: 3d, depends_on: [pay]}}";
/// let test = "
/// workflow: order.yaml
/// cases:
///   a paid order: {steps: {pay: {result: 7}}, expect: {state: completed, took: 3d}}";
/// let report = WorkflowTest::of("order.test.yaml", test, "order.yaml", template)?.run().await?;
/// assert!(report.is_ok(), "{report}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct WorkflowTest {
    file: String,
    template: TemplateFile,
    cases: BTreeMap<String, Case>,
}

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    workflow: PathBuf,
    cases: BTreeMap<String, Case>,
}

/// A run that the test simulates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(default)]
    pub(super) input: Value,
    #[serde(default)]
    pub(super) env: Option<String>,
    #[serde(default)]
    pub(super) steps: BTreeMap<String, Outcome>,
    pub(super) expect: Expectation,
}

/// The result that a step has in a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcome {
    #[serde(default, deserialize_with = "given")]
    pub(super) result: Option<Value>,
    /// A failure without an effect; with `times`, it is retried.
    #[serde(default)]
    pub(super) fail: Option<String>,
    /// A failure that is retried until the attempts are used up.
    #[serde(default)]
    pub(super) dead: Option<String>,
    /// The number of attempts after which `then` counts.
    #[serde(default)]
    pub(super) times: Option<u32>,
    #[serde(default)]
    pub(super) then: Option<Box<Outcome>>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) takes: Option<Duration>,
}

/// The end that a case expects.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Expectation {
    pub(super) state: Option<String>,
    #[serde(deserialize_with = "given")]
    pub(super) result: Option<Value>,
    /// The names of the events, in the order in which they are published.
    pub(super) events: Option<Vec<String>>,
    #[serde(deserialize_with = "times")]
    pub(super) took: Option<(Duration, Duration)>,
    pub(super) steps: BTreeMap<String, String>,
}

/// Reads a value that is present, even if it is null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    read_time(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Reads a time, or the least and the most as `3d..3d1m`.
fn times<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<(Duration, Duration)>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let (least, most) = text.split_once("..").unwrap_or((&text, &text));
    let both = read_time(least).and_then(|least| Ok((least, read_time(most)?)));
    both.map(Some).map_err(serde::de::Error::custom)
}

fn read_time(text: &str) -> std::result::Result<Duration, String> {
    Duration::try_from(parse_duration(text)?).map_err(|_| format!("`{text}` is negative; a time is at least 0s"))
}

impl WorkflowTest {
    /// Reads a test file and the template beside it.
    ///
    /// # Errors
    /// `is_invalid` if a file cannot be read, or has an error: all of those of the template.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, text) = (path.display().to_string(), read_file(path)?);
        let content = content(&file, &text)?;
        let template = path.parent().unwrap_or(Path::new("")).join(&content.workflow);
        let template_text = read_file(&template)?;
        Self::of(&file, &text, &template.display().to_string(), &template_text)
    }

    /// Reads the text of a test, and that of a template. The file names are for errors.
    ///
    /// # Errors
    /// `is_invalid` if one of them has an error.
    pub fn of(file: &str, text: &str, template: &str, template_text: &str) -> Result<Self> {
        let cases = content(file, text)?.cases;
        let template = TemplateFile::read(template, template_text)
            .map_err(|errors| Error::invalid(format!("the workflow cannot be used:\n{errors}")))?;
        if cases.is_empty() {
            return Err(Error::invalid(format!("{file}: there are no `cases`; add one")));
        }
        for (name, case) in &cases {
            check(&template, case).map_err(|fault| Error::invalid(format!("{file}: case `{name}`: {fault}")))?;
        }
        Ok(Self { file: file.to_owned(), template, cases })
    }

    /// Plays each case on a memory store, with a clock that jumps from one due moment to the next.
    ///
    /// # Errors
    /// If a case cannot be played, as with an input that does not fit. What a run comes to is part
    /// of the report.
    pub async fn run(&self) -> Result<WorkflowTestReport> {
        let mut cases = Vec::with_capacity(self.cases.len());
        for (name, case) in &self.cases {
            let played = play(&self.template, name, case).await;
            cases.push(played.map_err(|error| Error::invalid(format!("{}: case `{name}`: {error}", self.file)))?);
        }
        Ok(WorkflowTestReport { file: self.file.clone(), cases })
    }
}

fn read_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Error::invalid(format!("cannot read {}: {error}; name a file, relative to the test file", path.display()))
    })
}

fn content(file: &str, text: &str) -> Result<Content> {
    let value = read_yaml(file, text).map_err(|errors| Error::invalid(errors.to_string()))?;
    serde_json::from_value(value).map_err(|error| {
        Error::invalid(format!(
            "{file}: {error}; a test has `workflow` and `cases` with `input`, `env`, `steps` and `expect`"
        ))
    })
}

/// Checks the names and the outcomes of a case.
fn check(file: &TemplateFile, case: &Case) -> std::result::Result<(), String> {
    let template = match &case.env {
        None => file.template(),
        Some(name) => file.in_environment(name).ok_or_else(|| format!("the workflow has no environment `{name}`"))?,
    };
    for (name, outcome) in &case.steps {
        check_name(template, name)?;
        check_outcome(outcome).map_err(|fault| format!("step `{name}`: {fault}"))?;
    }
    check_expectation(template, &case.expect)
}

/// Checks the names of the steps and the states that a case expects.
fn check_expectation(template: &Template, expect: &Expectation) -> std::result::Result<(), String> {
    if let Some(state) = &expect.state {
        check_state("a run", state, &Phase::ALL.map(Phase::as_str))?;
    }
    let states: Vec<&str> = StepState::ALL.map(StepState::as_str).into_iter().chain([UNDONE]).collect();
    for (name, state) in &expect.steps {
        known(template, name)?;
        check_state(&format!("step `{name}`"), state, &states)?;
    }
    Ok(())
}

fn check_state(of: &str, state: &str, known: &[&str]) -> std::result::Result<(), String> {
    if known.contains(&state) {
        return Ok(());
    }
    let meant = did_you_mean(state, known.iter().copied());
    Err(format!("`{state}` is no state of {of}{meant}; there are {}", known.join(", ")))
}

fn check_name(template: &Template, name: &str) -> std::result::Result<(), String> {
    let action = known(template, name.strip_prefix(UNDO).unwrap_or(name))?;
    let fits = match (action, name.starts_with(UNDO)) {
        // A workflow may have an undo in its own template.
        (StepAction::Work(work), true) => work.undo.is_some() || matches!(work.kind, WorkKind::Workflow { .. }),
        (StepAction::Work(_) | StepAction::Signal(_), false) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("`{name}` has no task and waits for no signal, so it takes no result")) }
}

fn known<'t>(template: &'t Template, name: &str) -> std::result::Result<&'t StepAction, String> {
    template.step(name).map(|step| &step.action).ok_or_else(|| {
        let meant = did_you_mean(name, template.steps.iter().map(|step| step.name.as_str()));
        format!("the workflow has no step `{name}`{meant}")
    })
}

fn check_outcome(outcome: &Outcome) -> std::result::Result<(), String> {
    let ends = [outcome.result.is_some(), outcome.fail.is_some(), outcome.dead.is_some()];
    if ends.into_iter().filter(|is_given| *is_given).count() != 1 {
        return Err("it has exactly one of `result`, `fail` and `dead`".to_owned());
    }
    match (&outcome.times, &outcome.then) {
        (None, None) => Ok(()),
        (Some(_), Some(_)) if outcome.fail.is_none() => Err("`times` stands beside `fail` alone".to_owned()),
        (Some(_), Some(then)) => check_outcome(then),
        _ => Err("`times` and `then` stand together".to_owned()),
    }
}
