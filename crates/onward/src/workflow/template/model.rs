//! Templates as values, complete and checked.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_store::rules::retry::RetryPolicy;
use serde_json::Value;

use super::expressions::{Expression, TextTemplate, ValueTemplate};
use super::graph::Graph;

/// A template in one environment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Template {
    /// The name, which selects the template.
    pub name: String,
    /// The label of this content.
    pub version: Option<String>,
    /// A text for readers.
    pub description: Option<String>,
    /// The JSON Schema of the input.
    pub input_schema: Option<Value>,
    /// The JSON Schema of the result.
    pub result_schema: Option<Value>,
    /// The result of a completed run. Without it, the result of the one last step, or a map of the
    /// last steps'.
    pub result: Option<ValueTemplate>,
    /// The source of the key that one live run has.
    pub identity: Identity,
    /// The time until the run stops and fails.
    pub timeout: Option<Duration>,
    /// The reaction to a bad step.
    pub on_failure: OnFailure,
    /// The queue of the run.
    pub queue: Option<String>,
    /// The priority of the run.
    pub priority: Option<u8>,
    /// The tags of the run, which its steps have too.
    pub tags: BTreeMap<String, TextTemplate>,
    /// The constants, read as `vars.NAME`.
    pub vars: serde_json::Map<String, Value>,
    /// The steps, sorted by name.
    pub steps: Vec<Step>,
    /// The order of the steps. Its numbers are places in `steps`.
    pub graph: Graph,
}

impl Template {
    /// Returns the number of a step in [`steps`](Self::steps).
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.steps.binary_search_by(|step| step.name.as_str().cmp(name)).ok()
    }

    /// Returns the name and the version of each template that a step or an undo runs.
    pub fn workflows(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let kinds = self.steps.iter().filter_map(|step| match &step.action {
            StepAction::Work(work) => Some(std::iter::once(&work.kind).chain(work.undo.iter().map(|undo| &undo.kind))),
            _ => None,
        });
        kinds.flatten().filter_map(|kind| match kind {
            WorkKind::Workflow { name, version } => Some((name.as_str(), version.as_deref())),
            _ => None,
        })
    }

    /// Returns a step.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.number(name).and_then(|number| self.steps.get(number))
    }
}

/// The source of a run's key.
#[derive(Debug, Clone, PartialEq)]
pub enum Identity {
    /// Runs have no key.
    None,
    /// The key is a text.
    Key {
        /// The text, which depends on the input alone.
        key: TextTemplate,
        /// The time that the key stays taken after the run's end.
        keep_for: KeepFor,
    },
    /// The key is a digest of name, environment and input.
    Strict {
        /// The time that the key stays taken after the run's end.
        keep_for: KeepFor,
    },
}

/// The time that a key stays taken after the run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepFor {
    /// A time.
    Time(Duration),
    /// Without end.
    Forever,
}

/// The reaction of a run to a bad step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// No further step starts but those on a failure path.
    #[default]
    Stop,
    /// All goes on that does not need the step.
    Finish,
    /// As `Stop`, then what was done is undone.
    Undo,
    /// As `Stop`, then the run is held for a person.
    Hold,
}

/// A step of a template.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Step {
    /// The name.
    pub name: String,
    /// The work or the wait that the step consists of.
    pub action: StepAction,
    /// The steps that come before, sorted by number.
    pub depends_on: Vec<Dependency>,
    /// The condition under which the step is not skipped.
    pub condition: Option<Expression>,
    /// The numbers of the steps among which the result selects, sorted.
    pub chooses: Vec<usize>,
    /// The time between being ready and the start.
    pub after: Option<Duration>,
    /// The time from the start of the wait for a signal, or for all attempts of a task.
    pub deadline: Option<Duration>,
    /// True if a bad end counts as completed, with the result null.
    pub is_forgiven: bool,
    /// The events that the step's end publishes.
    pub publishes: Vec<Publication>,
    /// The JSON Schema of the result.
    pub result_schema: Option<Value>,
}

/// The work or the wait that a step consists of.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most steps have the large variant")]
pub enum StepAction {
    /// A task, a script, a run or an orchestration.
    Work(Work),
    /// A timer of the run.
    Wait(Wait),
    /// A wait for a signal.
    Signal(Signal),
    /// A value that is its own result.
    Value(ValueTemplate),
    /// A failure with this message.
    Fail(TextTemplate),
}

/// A step that has a task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Work {
    /// The kind of work.
    pub kind: WorkKind,
    /// The payload. Without it, the input and the results of all ancestors.
    pub with: Option<ValueTemplate>,
    /// The items for which the work is done.
    pub each: Option<Each>,
    /// The queue, of the step or of the run.
    pub queue: Option<String>,
    /// The priority, of the step or of the run.
    pub priority: Option<u8>,
    /// The group, of the step or of the run.
    pub group: Option<TextTemplate>,
    /// The tags, of the step and of the run.
    pub tags: BTreeMap<String, TextTemplate>,
    /// The affinity key. Without it, the run's.
    pub affinity: Option<TextTemplate>,
    /// The unique key.
    pub key: Option<TextTemplate>,
    /// The time in which the task must start.
    pub ttl: Option<Duration>,
    /// The attempts and their delays, of the step or of `defaults`.
    pub retry: Option<RetryPolicy>,
    /// The time of one attempt, of the step or of `defaults`.
    pub timeout: Option<Duration>,
    /// The longest time between two signs of life, of the step or of `defaults`.
    pub heartbeat: Option<Duration>,
    /// The step that takes back what this one did.
    pub undo: Option<Undo>,
}

/// The kind of work of a step or an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkKind {
    /// A task for a handler.
    Task {
        /// The kind.
        kind: String,
    },
    /// A script for `sh -eu -c`.
    Run {
        /// The script.
        script: String,
        /// Environment variables.
        env: BTreeMap<String, TextTemplate>,
        /// The standard input.
        stdin: Option<TextTemplate>,
    },
    /// A run of another template.
    Workflow {
        /// The name of the template.
        name: String,
        /// The label of its content; without it, the newest.
        version: Option<String>,
    },
    /// An orchestration.
    Orchestration {
        /// The kind.
        kind: String,
    },
}

/// The items for which a step is done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Each {
    /// The source of the items.
    pub items: Items,
    /// The most items that are open at once.
    pub parallel: u32,
    /// The items that may end badly.
    pub tolerate: Tolerate,
}

/// The source of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Items {
    /// An expression for a list.
    List(Expression),
    /// Parts of a range, as `{from, to}` each.
    Range {
        /// The start of the first part.
        from: Expression,
        /// The end, which is in no part.
        to: Expression,
        /// The width of a part.
        by: Expression,
    },
}

/// The number of items that may end badly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerate {
    /// A number.
    Items(u32),
    /// A part of all items, in percent.
    Percent(f64),
    /// All.
    All,
}

/// A timer of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// A time.
    Time(Duration),
    /// A text that makes a duration.
    Text(TextTemplate),
    /// A moment.
    Until(Expression),
}

/// A wait for a signal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Signal {
    /// The name of the signal.
    pub name: String,
    /// The question that it answers.
    pub ask: Option<Ask>,
    /// The result at the deadline. Without it, the step failed then.
    pub otherwise: Option<ValueTemplate>,
}

/// A question for people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ask {
    /// The question.
    pub title: TextTemplate,
    /// The JSON Schema of the reply.
    pub schema: Option<Value>,
    /// The people and roles that may reply; none for everyone.
    pub who: Vec<String>,
}

/// A step before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The number of the step.
    pub step: usize,
    /// The end of it that is needed.
    pub condition: Condition,
}

/// The end of a step that another one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// It completed.
    Completed,
    /// It ended badly.
    Failed,
    /// It ended.
    Ended,
    /// It completed and chose the step that depends on it.
    Chosen,
}

/// A step that takes back what another one did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Undo {
    /// The kind of work.
    pub kind: WorkKind,
    /// The payload. Without it, the input and the results of all steps that ended.
    pub with: Option<ValueTemplate>,
    /// The attempts and their delays, of the undo or of `defaults`.
    pub retry: Option<RetryPolicy>,
    /// The time of one attempt, of the undo or of `defaults`.
    pub timeout: Option<Duration>,
    /// The queue, of the undo, of the step or of the run.
    pub queue: Option<String>,
}

/// An event that a step's end publishes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Publication {
    /// The name of the event.
    pub name: String,
    /// The end that is published.
    pub when: PublishedEnd,
    /// The condition under which it is published.
    pub condition: Option<Expression>,
    /// The payload. Without it, the step's result.
    pub with: Option<ValueTemplate>,
    /// The JSON Schema of the payload.
    pub schema: Option<Value>,
    /// The way to the readers.
    pub delivery: Delivery,
}

/// The end of a step that is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PublishedEnd {
    /// It completed.
    #[default]
    Completed,
    /// It failed.
    Failed,
    /// Its attempts were used up, or it was lost.
    Dead,
    /// It did not start in time.
    Expired,
    /// It was skipped.
    Skipped,
    /// It ended in any way.
    Ended,
}

/// The way of an event to its readers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Kept with its payload, for any number of readers.
    #[default]
    Log,
    /// A task of kind `event:NAME`.
    Task {
        /// The queue; without it, the default one.
        queue: Option<String>,
    },
    /// To listeners of the moment.
    Live,
}
