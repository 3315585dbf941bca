//! The rows of the table, by the place where they may stand.

use super::super::bounds::PARALLEL;
use super::field::{Field, FieldCondition, FieldType, Place};

/// The fields of which a step has exactly one.
pub(crate) const STEP_KINDS: &[&str] = &["task", "run", "workflow", "orchestration", "wait", "signal", "value", "fail"];

/// The kinds whose steps have a task.
pub(crate) const WORK_KINDS: &[&str] = &["task", "run", "workflow", "orchestration"];

/// The kinds whose steps have no task.
const NO_TASK: &[FieldCondition] = &[
    FieldCondition::field("wait"),
    FieldCondition::field("signal"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
];

/// The kinds that take no payload.
const NO_PAYLOAD: &[FieldCondition] = &[
    FieldCondition::field("run"),
    FieldCondition::field("wait"),
    FieldCondition::field("signal"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
];

/// The kinds that cannot have items, and the fields that need a single result.
const NO_ITEMS: &[FieldCondition] = &[
    FieldCondition::field("wait"),
    FieldCondition::field("signal"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
    FieldCondition::field("chooses"),
];

/// The kinds that have no deadline. The code of an orchestration waits for timers of its own.
const NO_DEADLINE: &[FieldCondition] = &[
    FieldCondition::field("wait"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
    FieldCondition::field("orchestration"),
];

/// The kinds whose attempts have no limit of time.
const NO_TIMEOUT: &[FieldCondition] = &[
    FieldCondition::field("wait"),
    FieldCondition::field("signal"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
    FieldCondition::field("orchestration"),
];

/// The kinds whose attempts give no sign of life.
const NO_HEARTBEAT: &[FieldCondition] = &[
    FieldCondition::field("wait"),
    FieldCondition::field("signal"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
    FieldCondition::field("workflow"),
    FieldCondition::field("orchestration"),
];

/// The kinds of an undo that is tried once. Their own steps are retried, and the run is held after
/// a failure.
const ONE_ATTEMPT: &[FieldCondition] = &[FieldCondition::field("workflow"), FieldCondition::field("orchestration")];

const KEY_OR_STRICT: &[FieldCondition] =
    &[FieldCondition::field("key"), FieldCondition::value("identity", &["strict"])];
const CONSTANT: &[FieldCondition] = &[FieldCondition::value("backoff", &["constant"])];
const NOT_EXPONENTIAL: &[FieldCondition] = &[FieldCondition::value("backoff", &["constant", "linear"])];

/// The fields of the template.
pub(super) const RUN: &[Field] = &[
    Field::new("name", FieldType::TemplateName, "Selects the template. The kind of its runs is `run:NAME`.")
        .default("the file's name")
        .fixed(),
    Field::new("version", FieldType::Text, "The label of this content. One label stands for one content.")
        .default("12 digits of the hash")
        .fixed(),
    Field::new("description", FieldType::Text, "A text for readers.").fixed(),
    Field::new("input_schema", FieldType::Schema, "The input is checked, and defaults filled in, before a run exists.")
        .default("any input"),
    Field::new("result_schema", FieldType::Schema, "The run fails if its result does not fit.").default("any result"),
    Field::new("result", FieldType::ValueTemplate, "The result of a completed run.")
        .default("the result of the one last step, else a map of the last steps'"),
    Field::new("key", FieldType::TextTemplate, "One run per key is live. Another start returns the one that exists.")
        .not_beside(&[FieldCondition::value("identity", &["strict"])]),
    Field::new(
        "identity",
        FieldType::Choice(&["none", "strict"]),
        "With `strict` the key is a digest of name, environment and input.",
    )
    .default("none"),
    Field::new("keep_for", FieldType::KeepFor, "The time that the key stays taken after the run's end.")
        .default("0s; `forever` if the identity is strict")
        .needs(KEY_OR_STRICT),
    Field::new("timeout", FieldType::Duration { zero: false }, "The time until the run stops and fails."),
    Field::new("on_failure", FieldType::Choice(&["stop", "finish", "undo", "hold"]), "The reaction to a bad step.")
        .default("stop"),
    Field::new("queue", FieldType::Name, "The queue of the run and its steps.").default("default"),
    Field::new("priority", PRIORITY, "The priority of the run and its steps; 0 is the most urgent.").default("128"),
    Field::new("tags", FieldType::Tags, "The tags of the run and its steps."),
    Field::new("group", FieldType::TextTemplate, "The group of the steps."),
    Field::new("defaults", FieldType::Map(Place::Defaults), "Values for all `task` and `run` steps."),
    Field::new("vars", FieldType::Constants, "Constants, read as `vars.NAME`."),
    Field::new("environments", FieldType::Environments, "Changes to the template, by environment.").fixed(),
    Field::new("steps", FieldType::Steps, "The steps: a map by name, or a list.").required(),
];

/// The fields of a step.
pub(super) const STEP: &[Field] = &[
    Field::new("name", FieldType::StepName, "The name of a step in a list.").default("`step_1`, `step_2`, …").listed(),
    Field::new("task", FieldType::Name, "A task of this kind."),
    Field::new("run", FieldType::Script, "A script for `sh -eu -c`. Its result is its output."),
    Field::new("workflow", FieldType::WorkflowReference, "A run of another template, as a child."),
    Field::new("orchestration", FieldType::Name, "An orchestration of this kind, as a child."),
    Field::new("wait", FieldType::Wait, "A timer of the run."),
    Field::new("signal", FieldType::Name, "A wait for a signal to the run. One that came earlier is kept."),
    Field::new("value", FieldType::ValueTemplate, "A value that is its own result."),
    Field::new("fail", FieldType::TextTemplate, "A failure with this message."),
    Field::new("depends_on", FieldType::Dependencies, "The steps that come before, each perhaps with a condition."),
    Field::new("if", FieldType::Expression, "The step is skipped where it is false.").default("true"),
    Field::new("chooses", FieldType::StepNames, "The steps among which the result selects.")
        .not_beside(&[FieldCondition::field("wait"), FieldCondition::field("fail")]),
    Field::new("with", FieldType::ValueTemplate, "The payload.")
        .default("`{input, results}` with the results of all ancestors")
        .not_beside(NO_PAYLOAD),
    Field::new("env", FieldType::Variables, "The environment variables of the script.")
        .needs(&[FieldCondition::field("run")]),
    Field::new("stdin", FieldType::TextTemplate, "The standard input of the script.")
        .needs(&[FieldCondition::field("run")]),
    Field::new("each", FieldType::Each, "Repeats the step for each item of a list, or each part of a range.")
        .not_beside(NO_ITEMS),
    Field::new("parallel", FieldType::Integer { least: 1, most: PARALLEL }, "The most items that are open at once.")
        .default("100")
        .needs(&[FieldCondition::field("each")]),
    Field::new("tolerate", FieldType::Tolerate, "The number of items that may end badly.")
        .default("0")
        .needs(&[FieldCondition::field("each")]),
    Field::new("after", FieldType::Duration { zero: false }, "The time between being ready and the start.")
        .not_beside(&[FieldCondition::field("wait")]),
    Field::new(
        "deadline",
        FieldType::Duration { zero: false },
        "The time that a signal is waited for; of other steps, the time for all attempts.",
    )
    .not_beside(NO_DEADLINE),
    Field::new("otherwise", FieldType::ValueTemplate, "The result of a signal that did not come by its deadline.")
        .needs(&[FieldCondition::field("deadline")])
        .not_beside(NOT_SIGNAL),
    Field::new("ask", FieldType::Map(Place::Ask), "A question for people, whose answer is the signal.")
        .needs(&[FieldCondition::field("signal")]),
    Field::new("queue", FieldType::Name, "The queue of the task.").default("the run's").not_beside(NO_TASK),
    Field::new("priority", PRIORITY, "The priority of the task.").default("the run's").not_beside(NO_TASK),
    Field::new("group", FieldType::TextTemplate, "The group of the task.").default("the run's").not_beside(NO_TASK),
    Field::new("tags", FieldType::Tags, "Further tags of the task.").not_beside(NO_TASK),
    Field::new("affinity", FieldType::TextTemplate, "The affinity key of the task.")
        .default("the run's")
        .not_beside(NO_TASK),
    Field::new("key", FieldType::TextTemplate, "The unique key of the task.").not_beside(NO_TASK),
    Field::new("ttl", FieldType::Duration { zero: false }, "The time in which the task must start.")
        .not_beside(NO_TASK),
    Field::new("retry", FieldType::Retry, "The attempts and the delays between them.")
        .default("`defaults.retry`; one attempt for a workflow or an orchestration")
        .not_beside(NO_TASK),
    Field::new("timeout", FieldType::Duration { zero: false }, "The time of one attempt.")
        .default("`defaults.timeout`; none for a workflow")
        .not_beside(NO_TIMEOUT),
    Field::new("heartbeat", FieldType::Duration { zero: false }, "The longest time between two signs of life.")
        .default("`defaults.heartbeat`")
        .not_beside(NO_HEARTBEAT),
    Field::new(
        "on_failure",
        FieldType::Choice(&["continue"]),
        "With `continue` a bad end counts as completed, with the result null.",
    ),
    Field::new("undo", FieldType::Map(Place::Undo), "The step that takes back what this one did.").not_beside(NO_TASK),
    Field::new("publishes", FieldType::Maps(Place::Publish), "Events for others."),
    Field::new("result_schema", FieldType::Schema, "A result that does not fit makes the step dead.")
        .default("any result")
        .not_beside(&[FieldCondition::field("fail")]),
];

/// The fields of `undo`.
pub(super) const UNDO: &[Field] = &[
    Field::new("task", FieldType::Name, "A task of this kind."),
    Field::new("run", FieldType::Script, "A script for `sh -eu -c`."),
    Field::new("workflow", FieldType::WorkflowReference, "A run of another template, as a child."),
    Field::new("orchestration", FieldType::Name, "An orchestration of this kind, as a child."),
    Field::new("with", FieldType::ValueTemplate, "The payload.")
        .default("`{input, results}`")
        .not_beside(&[FieldCondition::field("run")]),
    Field::new("env", FieldType::Variables, "The environment variables of the script.")
        .needs(&[FieldCondition::field("run")]),
    Field::new("retry", FieldType::Retry, "The attempts and the delays between them.")
        .default("`defaults.retry`")
        .not_beside(ONE_ATTEMPT),
    Field::new("timeout", FieldType::Duration { zero: false }, "The time of one attempt.")
        .default("`defaults.timeout`")
        .not_beside(ONE_ATTEMPT),
    Field::new("queue", FieldType::Name, "The queue of the task.").default("the step's"),
];

/// The fields of `defaults`.
pub(super) const DEFAULTS: &[Field] = &[
    Field::new("retry", FieldType::Retry, "The attempts and the delays between them."),
    Field::new("timeout", FieldType::Duration { zero: false }, "The time of one attempt."),
    Field::new("heartbeat", FieldType::Duration { zero: false }, "The longest time between two signs of life."),
];

/// The fields of `retry`.
pub(super) const RETRY: &[Field] = &[
    Field::new("attempts", ATTEMPTS, "The attempts in all, the first included.").default("5"),
    Field::new("backoff", FieldType::Choice(&["constant", "linear", "exponential"]), "The growth of the delay.")
        .default("exponential"),
    Field::new("first", FieldType::Duration { zero: true }, "The first delay.").default("1s"),
    Field::new("most", FieldType::Duration { zero: true }, "The longest delay.").default("10m").not_beside(CONSTANT),
    Field::new("factor", FieldType::Factor, "The factor of the delay after each attempt.")
        .default("2")
        .not_beside(NOT_EXPONENTIAL),
    Field::new("increment", FieldType::Duration { zero: true }, "The time added to the delay after each attempt.")
        .default("the first delay")
        .needs(&[FieldCondition::value("backoff", &["linear"])]),
    Field::new("jitter", FieldType::Boolean, "With `true` a delay is a random part of what it would be.")
        .default("true")
        .not_beside(NOT_EXPONENTIAL),
];

/// The fields of `each`.
pub(super) const EACH: &[Field] = &[
    Field::new("from", FieldType::Expression, "The start of the range.").required(),
    Field::new("to", FieldType::Expression, "The end of the range, which is not in it.").required(),
    Field::new("by", FieldType::Expression, "The width of a part.").required(),
];

/// The fields of `wait`.
pub(super) const WAIT: &[Field] =
    &[Field::new("until", FieldType::Expression, "The moment, as a timestamp.").required()];

/// The fields of `ask`.
pub(super) const ASK: &[Field] = &[
    Field::new("title", FieldType::TextTemplate, "The question.").required(),
    Field::new("schema", FieldType::Schema, "Answers that do not fit are refused to the sender.").default("any answer"),
    Field::new("who", FieldType::Texts, "The people and roles that may answer, such as `role:shipping`.")
        .default("everyone"),
];

/// The fields of an item of `publishes`.
pub(super) const PUBLISH: &[Field] = &[
    Field::new("name", FieldType::Name, "The name of the event.").required(),
    Field::new(
        "when",
        FieldType::Choice(&["completed", "failed", "dead", "expired", "skipped", "ended"]),
        "The end of the step that is published.",
    )
    .default("completed"),
    Field::new("if", FieldType::Expression, "Nothing is published where it is false.").default("true"),
    Field::new("with", FieldType::ValueTemplate, "The payload.").default("the step's result"),
    Field::new("schema", FieldType::Schema, "A payload that does not fit is published as `NAME.invalid`.")
        .default("any payload"),
    Field::new("delivery", FieldType::Choice(&["log", "task", "live"]), "The way to the readers.").default("log"),
    Field::new("queue", FieldType::Name, "The queue of the event's task.")
        .default("default")
        .needs(&[FieldCondition::value("delivery", &["task"])]),
];

const PRIORITY: FieldType = FieldType::Integer { least: 0, most: 255 };
const ATTEMPTS: FieldType = FieldType::Integer { least: 1, most: u32::MAX as u64 };

/// The kinds that wait for no signal.
const NOT_SIGNAL: &[FieldCondition] = &[
    FieldCondition::field("task"),
    FieldCondition::field("run"),
    FieldCondition::field("workflow"),
    FieldCondition::field("orchestration"),
    FieldCondition::field("wait"),
    FieldCondition::field("value"),
    FieldCondition::field("fail"),
];

/// Returns true if a field of this name takes one expression somewhere.
pub(crate) fn takes_expression(name: &str) -> bool {
    Place::ALL.iter().filter_map(|place| place.field(name)).any(|field| field.kind.is_expression())
}
