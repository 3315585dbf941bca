//! Making the template of a file without errors.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};

use super::duration;
use super::expressions::{Expression, TextTemplate, ValueTemplate};
use super::graph::Graph;
use super::model::{
    Ask, Delivery, Each, Identity, Items, KeepFor, OnFailure, Publication, PublishedEnd, Signal, Step, StepAction,
    Template, Tolerate, Undo, Wait, Work, WorkKind,
};
use super::names;
use super::outline::Outline;
use super::shape::{expression_text, whole_number};
use super::yaml::Node;

/// The items of a step that are open at once, unless it has `parallel`.
const PARALLEL: u32 = 100;

/// Builds the template of a file whose checks found no error. Returns `None` if a value is invalid
/// anyway.
pub(super) fn template(root: &Node, outline: &Outline<'_>, graph: Graph) -> Option<Template> {
    let run = Fields(root);
    let shared = Shared::read(run);
    let steps: Option<Vec<Step>> = (0..outline.steps.len()).map(|step| self::step(step, outline, &shared)).collect();
    Some(Template {
        name: run.text("name")?,
        version: run.text("version"),
        description: run.text("description"),
        input_schema: run.json("input_schema"),
        result_schema: run.json("result_schema"),
        result: run.value("result"),
        identity: identity(run),
        timeout: run.duration("timeout"),
        on_failure: on_failure(run),
        queue: shared.queue.clone(),
        priority: shared.priority,
        tags: shared.tags.clone(),
        vars: run.json("vars").and_then(|vars| vars.as_object().cloned()).unwrap_or_default(),
        steps: steps?,
        graph,
    })
}

fn identity(run: Fields<'_>) -> Identity {
    let keep_for = |default| match run.text("keep_for").as_deref() {
        None => default,
        Some("forever") => KeepFor::Forever,
        Some(_) => run.duration("keep_for").map_or(default, KeepFor::Time),
    };
    match (run.text("identity").as_deref(), run.template("key")) {
        (Some("strict"), _) => Identity::Strict { keep_for: keep_for(KeepFor::Forever) },
        (_, Some(key)) => Identity::Key { key, keep_for: keep_for(KeepFor::Time(Duration::ZERO)) },
        (_, None) => Identity::None,
    }
}

fn on_failure(run: Fields<'_>) -> OnFailure {
    match run.text("on_failure").as_deref() {
        Some("finish") => OnFailure::Finish,
        Some("undo") => OnFailure::Undo,
        Some("hold") => OnFailure::Hold,
        _ => OnFailure::Stop,
    }
}

/// Values of the template for steps that have none of their own.
struct Shared {
    queue: Option<String>,
    priority: Option<u8>,
    group: Option<TextTemplate>,
    tags: BTreeMap<String, TextTemplate>,
    retry: Option<RetryPolicy>,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
}

impl Shared {
    fn read(run: Fields<'_>) -> Self {
        let defaults = run.map("defaults");
        Self {
            queue: run.text("queue"),
            priority: run.priority(),
            group: run.template("group"),
            tags: run.templates("tags"),
            retry: defaults.and_then(Fields::retry),
            timeout: defaults.and_then(|defaults| defaults.duration("timeout")),
            heartbeat: defaults.and_then(|defaults| defaults.duration("heartbeat")),
        }
    }
}

fn step(number: usize, outline: &Outline<'_>, shared: &Shared) -> Option<Step> {
    let entry = outline.steps.get(number)?;
    let fields = Fields(&entry.value);
    Some(Step {
        name: entry.key.to_string(),
        action: action(fields, shared)?,
        depends_on: outline.dependencies.get(number)?.clone(),
        condition: fields.expression("if"),
        chooses: outline.chooses.get(number)?.clone(),
        after: fields.duration("after"),
        deadline: fields.duration("deadline"),
        is_forgiven: fields.text("on_failure").is_some(),
        publishes: fields.maps("publishes").filter_map(publication).collect(),
        result_schema: fields.json("result_schema"),
    })
}

fn action(step: Fields<'_>, shared: &Shared) -> Option<StepAction> {
    if let Some(kind) = work_kind(step) {
        return Some(StepAction::Work(work(kind, step, shared)));
    }
    if let Some(wait) = step.0.get("wait") {
        return self::wait(step, wait).map(StepAction::Wait);
    }
    if let Some(name) = step.text("signal") {
        let (ask, otherwise) = (step.map("ask").and_then(ask), step.value("otherwise"));
        return Some(StepAction::Signal(Signal { name, ask, otherwise }));
    }
    let value = step.value("value").map(StepAction::Value);
    value.or_else(|| step.template("fail").map(StepAction::Fail))
}

fn work_kind(fields: Fields<'_>) -> Option<WorkKind> {
    if let Some(kind) = fields.text("task") {
        return Some(WorkKind::Task { kind });
    }
    if let Some(script) = fields.text("run") {
        return Some(WorkKind::Run { script, env: fields.templates("env"), stdin: fields.template("stdin") });
    }
    if let Some(reference) = fields.text("workflow") {
        let (name, version) = names::reference(&reference).ok()?;
        return Some(WorkKind::Workflow { name: name.to_owned(), version: version.map(str::to_owned) });
    }
    fields.text("orchestration").map(|kind| WorkKind::Orchestration { kind })
}

/// Returns true if `defaults` hold for a kind: its attempts run in a handler.
fn has_defaults(kind: &WorkKind) -> bool {
    matches!(kind, WorkKind::Task { .. } | WorkKind::Run { .. })
}

fn work(kind: WorkKind, step: Fields<'_>, shared: &Shared) -> Work {
    let defaults = Some(shared).filter(|_| has_defaults(&kind));
    let mut tags = shared.tags.clone();
    tags.extend(step.templates("tags"));
    let queue = step.text("queue").or_else(|| shared.queue.clone());
    Work {
        kind,
        with: step.value("with"),
        each: each(step),
        priority: step.priority().or(shared.priority),
        group: step.template("group").or_else(|| shared.group.clone()),
        tags,
        affinity: step.template("affinity"),
        key: step.template("key"),
        ttl: step.duration("ttl"),
        retry: step.retry().or(defaults.and_then(|defaults| defaults.retry)),
        timeout: step.duration("timeout").or(defaults.and_then(|defaults| defaults.timeout)),
        heartbeat: step.duration("heartbeat").or(defaults.and_then(|defaults| defaults.heartbeat)),
        undo: step.map("undo").and_then(|undo| self::undo(undo, queue.as_ref(), shared)),
        queue,
    }
}

fn undo(fields: Fields<'_>, queue: Option<&String>, shared: &Shared) -> Option<Undo> {
    let kind = work_kind(fields)?;
    let defaults = Some(shared).filter(|_| has_defaults(&kind));
    Some(Undo {
        kind,
        with: fields.value("with"),
        retry: fields.retry().or(defaults.and_then(|defaults| defaults.retry)),
        timeout: fields.duration("timeout").or(defaults.and_then(|defaults| defaults.timeout)),
        queue: fields.text("queue").or_else(|| queue.cloned()),
    })
}

fn each(step: Fields<'_>) -> Option<Each> {
    let items = match step.map("each") {
        None => Items::List(step.expression("each")?),
        Some(range) => {
            Items::Range { from: range.expression("from")?, to: range.expression("to")?, by: range.expression("by")? }
        }
    };
    let parallel = step.number("parallel").map_or(PARALLEL, saturated);
    Some(Each { items, parallel, tolerate: tolerate(step) })
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn tolerate(step: Fields<'_>) -> Tolerate {
    match step.text("tolerate").as_deref() {
        Some("all") => Tolerate::All,
        Some(text) => Tolerate::Percent(text.trim_end_matches('%').parse().unwrap_or_default()),
        None => Tolerate::Items(step.number("tolerate").map_or(0, saturated)),
    }
}

fn wait(step: Fields<'_>, wait: &Node) -> Option<Wait> {
    if let Some(until) = step.map("wait") {
        return until.expression("until").map(Wait::Until);
    }
    match wait.as_text()? {
        text if text.contains("${{") => step.template("wait").map(Wait::Text),
        text => duration::read(text).ok().map(Wait::Time),
    }
}

fn ask(fields: Fields<'_>) -> Option<Ask> {
    let who = fields.0.get("who").map(Node::items).unwrap_or_default();
    let who = who.iter().filter_map(Node::as_text).map(str::to_owned).collect();
    Some(Ask { title: fields.template("title")?, schema: fields.json("schema"), who })
}

fn publication(fields: Fields<'_>) -> Option<Publication> {
    let when = match fields.text("when").as_deref() {
        Some("failed") => PublishedEnd::Failed,
        Some("dead") => PublishedEnd::Dead,
        Some("expired") => PublishedEnd::Expired,
        Some("skipped") => PublishedEnd::Skipped,
        Some("ended") => PublishedEnd::Ended,
        _ => PublishedEnd::Completed,
    };
    let delivery = match fields.text("delivery").as_deref() {
        Some("task") => Delivery::Task { queue: fields.text("queue") },
        Some("live") => Delivery::Live,
        _ => Delivery::Log,
    };
    Some(Publication {
        name: fields.text("name")?,
        when,
        condition: fields.expression("if"),
        with: fields.value("with"),
        schema: fields.json("schema"),
        delivery,
    })
}

/// A map of fields that was checked, so a field without a value of its type is not there.
#[derive(Clone, Copy)]
struct Fields<'n>(&'n Node);

impl<'n> Fields<'n> {
    fn text(self, name: &str) -> Option<String> {
        self.0.get(name)?.as_text().map(str::to_owned)
    }

    fn number(self, name: &str) -> Option<u64> {
        whole_number(self.0.get(name)?)
    }

    fn priority(self) -> Option<u8> {
        self.number("priority").and_then(|number| u8::try_from(number).ok())
    }

    fn duration(self, name: &str) -> Option<Duration> {
        duration::read(self.0.get(name)?.as_text()?).ok()
    }

    fn json(self, name: &str) -> Option<serde_json::Value> {
        self.0.get(name).map(Node::to_json)
    }

    fn value(self, name: &str) -> Option<ValueTemplate> {
        ValueTemplate::parse(&self.json(name)?).ok()
    }

    fn template(self, name: &str) -> Option<TextTemplate> {
        TextTemplate::parse(self.0.get(name)?.as_text()?).ok()
    }

    fn templates(self, name: &str) -> BTreeMap<String, TextTemplate> {
        let entries = self.0.get(name).map(Node::entries).unwrap_or_default().iter();
        entries
            .filter_map(|entry| Some((entry.key.to_string(), TextTemplate::parse(entry.value.as_text()?).ok()?)))
            .collect()
    }

    fn expression(self, name: &str) -> Option<Expression> {
        Expression::parse(&expression_text(self.0.get(name)?)?).ok()
    }

    fn map(self, name: &str) -> Option<Fields<'n>> {
        self.0.get(name).filter(|node| !node.entries().is_empty()).map(Fields)
    }

    fn maps(self, name: &str) -> impl Iterator<Item = Fields<'n>> {
        self.0.get(name).map(Node::items).unwrap_or_default().iter().map(Fields)
    }

    fn retry(self) -> Option<RetryPolicy> {
        let default = RetryPolicy::default();
        match self.number("retry") {
            Some(attempts) => Some(RetryPolicy { attempts: saturated(attempts), ..default }),
            None => self.map("retry").map(|retry| RetryPolicy {
                attempts: retry.number("attempts").map_or(default.attempts, saturated),
                backoff: retry.backoff(),
            }),
        }
    }

    fn backoff(self) -> Backoff {
        let initial = self.duration("first").unwrap_or(FIRST_DELAY);
        let maximum = self.duration("most").unwrap_or(LONGEST_DELAY);
        let factor = self.json("factor").and_then(|factor| factor.as_f64()).unwrap_or(FACTOR);
        let is_exact = self.json("jitter").is_some_and(|jitter| jitter == false);
        match self.text("backoff").as_deref() {
            Some("constant") => Backoff::Constant { delay: initial },
            Some("linear") => {
                Backoff::Linear { initial, increment: self.duration("increment").unwrap_or(initial), maximum }
            }
            _ if is_exact => Backoff::Exponential { initial, factor, maximum },
            _ => Backoff::ExponentialJitter { initial, factor, maximum },
        }
    }
}

/// The first delay of a `retry` without `first`, as of any task.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay of a `retry` without `most`, as of any task.
const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// The factor of a `retry` without `factor`, as of any task.
const FACTOR: f64 = 2.0;
