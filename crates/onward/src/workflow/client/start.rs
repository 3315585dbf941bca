//! Starting runs.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    NewTask, OnDuplicate, Page, Priority, StoreReads, Submitted, TaskFilter, TaskId, TaskRecord, UniqueKey,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::fork::Forked;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::expression::{self, Budget, Lookup, Root, Scope, StepField, TextTemplate};
use crate::workflow::run::{Fork, RunLimits, plan_fork};
use crate::workflow::template::{Identity, KeepFor, Template, TemplateFile, TemplateHash};
use crate::workflow::turn::{RunPayload, in_environment, reference, run_kind};

/// The time for which a permanent key is kept: some 290 000 years.
const FOREVER: Duration = Duration::from_secs(i64::MAX.unsigned_abs() / 1_000_000);

/// Workflows: graphs of steps that a template describes ([`workflow`](crate::workflow)).
impl Engine {
    /// Adds a template, so that this engine starts and runs its workflow. It replaces the template
    /// of the same name for new runs; a run keeps the template with which it started. It takes
    /// effect from the next run of the engine.
    pub fn add_workflow(&self, file: TemplateFile) -> &Self {
        self.inner.templates.register(Arc::new(file));
        self
    }

    /// Starts a run of the template with a name, which was added to this engine or is stored:
    /// `engine.start_run("shop/order").input(&order).await?`.
    pub fn start_run(&self, workflow: impl Into<String>) -> RunStart {
        RunStart {
            engine: self.clone(),
            workflow: workflow.into(),
            template: Selected::Newest,
            environment: None,
            input: None,
            key: KeySource::Template,
            fork: None,
        }
    }
}

impl Engine {
    /// Puts a registered template into the store before the first run of it, so that any engine on
    /// the store can continue the run.
    async fn store_template(&self, hash: TemplateHash) -> Result<()> {
        if let Some(file) = self.inner.templates.unstored(hash) {
            self.put_template(&file).await?;
            self.inner.templates.set_stored(hash);
        }
        Ok(())
    }

    /// Returns the template of a name: the registered one, else the stored one.
    async fn workflow_file(&self, name: &str, version: Option<&str>) -> Result<Option<Arc<TemplateFile>>> {
        let (store, templates) = (&*self.inner.store, &self.inner.templates);
        if let Some(file) = templates.named(name, version) {
            return Ok(Some(file));
        }
        match self.named_hash(&reference(name, version)).await? {
            Some(hash) => templates.file(store, hash).await,
            None => Ok(None),
        }
    }

    /// Returns the templates that a run pins: those of its `workflow` steps, and of the runs below.
    /// Every run below has the environment of the first one, so each template must have it.
    async fn pins(
        &self,
        file: &Arc<TemplateFile>,
        environment: Option<&str>,
    ) -> Result<BTreeMap<String, TemplateHash>> {
        let mut pins = BTreeMap::new();
        let mut unread = vec![Arc::clone(file)];
        while let Some(file) = unread.pop() {
            for (name, version) in in_environment(&file, environment)?.workflows() {
                let reference = reference(name, version);
                if pins.contains_key(&reference) {
                    continue;
                }
                let found = self.workflow_file(name, version).await?.ok_or_else(|| unknown(&reference))?;
                pins.insert(reference, found.hash());
                unread.push(found);
            }
        }
        Ok(pins)
    }
}

/// A start of a run; `.await` starts it. Errors in the settings are reported then, before anything
/// is written.
#[derive(Debug)]
#[must_use = "nothing is started until it is awaited"]
pub struct RunStart {
    pub(super) engine: Engine,
    workflow: String,
    pub(super) template: Selected,
    environment: Option<String>,
    /// `None` for the input of the run that is forked, or null.
    input: Option<Result<Value>>,
    key: KeySource,
    fork: Option<Fork>,
}

/// The template of a run.
#[derive(Debug)]
pub(super) enum Selected {
    /// The newest of the name.
    Newest,
    /// The one with this label.
    Labelled(String),
    /// That of the run that is forked.
    OfFork,
}

/// The source of a run's unique key.
#[derive(Debug)]
enum KeySource {
    /// The template.
    Template,
    /// The template, else this key, kept for ever.
    TemplateOr(String),
    /// This key, for a template that has none.
    Given(String),
    /// None, whatever the template says.
    None,
}

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedRun {
    /// The task of the run.
    pub id: TaskId,
    /// False if a run with the same key exists: `id` is that run.
    pub is_new: bool,
    /// True if the existing run has another input.
    pub has_other_input: bool,
    /// True if the existing run has another content of the template.
    pub has_other_template: bool,
}

impl RunStart {
    /// Sets the input: whatever serializes to JSON. Default: null. The input schema of the template
    /// checks it and fills in its defaults.
    pub fn input<T: Serialize + ?Sized>(mut self, input: &T) -> Self {
        let input = serde_json::to_value(input)
            .map_err(|error| Error::invalid(format!("the input of the run cannot be written as JSON: {error}")));
        self.input = Some(input);
        self
    }

    /// Starts with the results of another run, which has ended or is held: the named steps run, all
    /// behind them, and what did not complete. The others are taken over by their names, also if
    /// the template has changed since. The run has no key and, unless another is set, the input of
    /// the other run.
    pub fn from_run(mut self, run: TaskId, steps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        self.fork = Some(Fork { run: Some(run), steps, only: false });
        self.without_key()
    }

    /// Runs the named steps alone, on the results that the others have in another run. Without
    /// one, the named steps may not depend on others. The result of the run is that of these steps.
    /// It has no key.
    pub fn only(mut self, run: Option<TaskId>, steps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        self.fork = Some(Fork { run, steps, only: true });
        self.without_key()
    }

    /// Selects the version of the template by its label. Default: the newest.
    pub fn version(mut self, label: impl Into<String>) -> Self {
        self.template = Selected::Labelled(label.into());
        self
    }

    /// Selects an environment of the template. Default: none.
    pub fn environment(mut self, name: impl Into<String>) -> Self {
        self.environment = Some(name.into());
        self
    }

    /// Sets the key of a run whose template has none: one run with the key is live, and a start
    /// with the same key finds it. A start of a template that makes keys itself is refused.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = KeySource::Given(key.into());
        self
    }

    /// Sets the key of a run whose template has none, and keeps it for ever: a start with the same
    /// key finds this run, also after its end.
    pub fn key_if_none(mut self, key: impl Into<String>) -> Self {
        self.key = KeySource::TemplateOr(key.into());
        self
    }

    /// Starts a run without a key, although another one with the key of the template may exist.
    pub fn without_key(mut self) -> Self {
        self.key = KeySource::None;
        self
    }

    /// Checks everything that a start checks, and starts nothing: the template, those of its
    /// `workflow` steps, the environment, the input, and the key and tags that they make.
    ///
    /// # Errors
    /// As the start: [`is_invalid`](Error::is_invalid) with the fault and the remedy.
    pub async fn check(self) -> Result<()> {
        self.new_task().await.map(drop)
    }

    /// Returns the newest run with the key that a start would use, also after the end of that run.
    /// Returns `None` if there is none, or the start uses no key. Starts nothing.
    ///
    /// # Errors
    /// As the start.
    pub async fn existing(self) -> Result<Option<StartedRun>> {
        let engine = self.engine.clone();
        let (new, payload) = self.new_task().await?;
        let Some(key) = new.unique.map(|unique| unique.key) else { return Ok(None) };
        let filter = TaskFilter { kind: Some(new.kind), key: Some(key), ..TaskFilter::default() };
        let found = engine.store().tasks(filter, Page { before: None, limit: 1 }).await?.tasks;
        match found.first() {
            // A list has no payloads.
            Some(task) => Ok(Some(existing(&engine.record(task.id).await?, &payload))),
            None => Ok(None),
        }
    }

    async fn start(self) -> Result<StartedRun> {
        let engine = self.engine.clone();
        let (new, payload) = self.new_task().await?;
        for hash in std::iter::once(payload.template).chain(payload.workflows.values().copied()) {
            engine.store_template(hash).await?;
        }
        let submitted = engine.submit_task(new).await?;
        match submitted {
            Submitted::Inserted { id } => {
                Ok(StartedRun { id, is_new: true, has_other_input: false, has_other_template: false })
            }
            other => Ok(existing(&engine.record(other.id()).await?, &payload)),
        }
    }

    /// Checks everything, and returns the task of the run.
    async fn new_task(self) -> Result<(NewTask, RunPayload)> {
        let engine = &self.engine;
        let forked = match self.fork.as_ref().and_then(|fork| fork.run) {
            Some(run) => Some(engine.forked(run).await?),
            None => None,
        };
        let (file, environment) = self.file(forked.as_ref()).await?;
        let (store, templates) = (&*engine.inner.store, &engine.inner.templates);
        let program = templates.program(store, file.hash(), environment.as_deref()).await?;
        let program = program.ok_or_else(|| unknown(&self.workflow))?;
        let input = match (self.input, &forked) {
            (Some(input), _) => input?,
            (None, Some(forked)) => forked.payload.input.clone(),
            (None, None) => Value::Null,
        };
        let input = program.check_input(input)?;
        if let Some(fork) = &self.fork {
            let origin = forked.as_ref().map(|forked| (&*forked.context, &forked.state));
            plan_fork(origin, &program.template, fork, 0).map_err(Error::invalid)?;
        }
        let template = &*program.template;
        let scope = StartScope::new(template, &input);
        let (key, keep_for) = self.key.key(template, environment.as_deref(), &input, &scope)?;
        let mut new = NewTask::of(run_kind(&template.name)?);
        new.orchestration = true;
        if let Some(queue) = &template.queue {
            new.queue = onward_store::Name::new(queue)?;
        }
        new.priority = template.priority.map_or(new.priority, Priority);
        for (tag, value) in &template.tags {
            new.tags.set(tag.as_str(), text("tags", value, &scope)?);
        }
        new.unique = key.clone().map(|key| UniqueKey { key, on_duplicate: OnDuplicate::Skip, keep_for });
        let workflows = match (self.template, forked) {
            (Selected::OfFork, Some(forked)) => forked.payload.workflows,
            _ => engine.pins(&file, environment.as_deref()).await?,
        };
        let payload = RunPayload {
            template: file.hash(),
            workflows,
            environment,
            key,
            fork: self.fork,
            depth: 0,
            limits: RunLimits::default(),
            input,
        };
        new.payload = payload.write()?.into();
        Ok((new, payload))
    }
}

impl RunStart {
    /// Returns the template and the environment.
    async fn file(&self, forked: Option<&Forked>) -> Result<(Arc<TemplateFile>, Option<String>)> {
        let version = match (&self.template, forked) {
            (Selected::OfFork, Some(Forked { payload, .. })) => {
                let (store, hash) = (&*self.engine.inner.store, payload.template);
                let file = self.engine.inner.templates.file(store, hash).await?;
                let file = file.ok_or_else(|| unknown(&hash.to_string()))?;
                return Ok((file, payload.environment.clone()));
            }
            (Selected::Labelled(label), _) => Some(label.as_str()),
            _ => None,
        };
        let file = self.engine.workflow_file(&self.workflow, version).await?;
        let file = file.ok_or_else(|| unknown(&reference(&self.workflow, version)))?;
        Ok((file, self.environment.clone()))
    }
}

impl KeySource {
    /// Returns the key of a run, and the time for which it is kept.
    fn key(
        self,
        template: &Template,
        environment: Option<&str>,
        input: &Value,
        scope: &StartScope<'_>,
    ) -> Result<(Option<String>, Duration)> {
        match self {
            Self::None => Ok((None, Duration::ZERO)),
            Self::Template => key(template, environment, input, scope),
            Self::Given(key) if template.identity == Identity::None => Ok((Some(key), Duration::ZERO)),
            Self::Given(_) => Err(Error::invalid(format!(
                "the template `{}` makes the keys of its runs itself, with `key` or `identity`; start the run without a key",
                template.name
            ))),
            Self::TemplateOr(otherwise) => match key(template, environment, input, scope)? {
                (None, _) => Ok((Some(otherwise), FOREVER)),
                known => Ok(known),
            },
        }
    }
}

impl IntoFuture for RunStart {
    type Output = Result<StartedRun>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

fn unknown(reference: &str) -> Error {
    Error::invalid(format!(
        "neither this engine nor its store has the workflow `{reference}`; add its template with `add_workflow`, or store it with \
         `onward workflow put`"
    ))
}

/// Compares an existing run with one that would be started.
fn existing(record: &TaskRecord, payload: &RunPayload) -> StartedRun {
    let existing = record.payload.as_ref().and_then(|bytes| RunPayload::read(bytes).ok());
    StartedRun {
        id: record.id,
        is_new: false,
        has_other_input: existing.as_ref().is_some_and(|existing| existing.input != payload.input),
        has_other_template: existing.is_some_and(|existing| existing.template != payload.template),
    }
}

/// Returns the key that a template gives a run, and the time for which it is kept.
fn key(
    template: &Template,
    environment: Option<&str>,
    input: &Value,
    scope: &StartScope<'_>,
) -> Result<(Option<String>, Duration)> {
    let time = |keep_for: &KeepFor| match keep_for {
        KeepFor::Time(time) => *time,
        KeepFor::Forever => FOREVER,
    };
    match &template.identity {
        Identity::None => Ok((None, Duration::ZERO)),
        Identity::Key { key, keep_for } => {
            let key = text("key", key, scope)?;
            if key.is_empty() {
                let name = &template.name;
                return Err(Error::invalid(format!(
                    "the key of a run of `{name}` is empty for this input; have the template's `key` make a text"
                )));
            }
            Ok((Some(key), time(keep_for)))
        }
        Identity::Strict { keep_for } => Ok((Some(strict_key(&template.name, environment, input)), time(keep_for))),
    }
}

/// Returns the SHA-256 of name, environment and canonical input. The lengths in front keep apart
/// what together has the same bytes. The keys of JSON objects are sorted, so the text is canonical.
fn strict_key(name: &str, environment: Option<&str>, input: &Value) -> String {
    let mut digest = Sha256::new();
    for part in [name, environment.unwrap_or_default(), &input.to_string()] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(field: &str, template: &TextTemplate, scope: &StartScope<'_>) -> Result<String> {
    template
        .evaluate_text(scope, &mut Budget::default())
        .map(|text| text.to_string())
        .map_err(|error| Error::invalid(format!("`{field}` of the template has no value for this input: {error}")))
}

/// The names that exist before a run: its input and the constants.
struct StartScope<'a> {
    vars: &'a serde_json::Map<String, Value>,
    input: &'a Value,
}

impl<'a> StartScope<'a> {
    fn new(template: &'a Template, input: &'a Value) -> Self {
        Self { vars: &template.vars, input }
    }
}

impl Scope for StartScope<'_> {
    fn root(&self, root: Root) -> Option<expression::Value> {
        match root {
            Root::Input => Some(self.input.into()),
            Root::Vars => {
                let constant = |(name, value): (&String, &Value)| (Arc::from(name.as_str()), value.into());
                Some(self.vars.iter().map(constant).collect())
            }
            Root::Run | Root::Steps | Root::Item | Root::Index => None,
        }
    }

    fn step(&self, _step: &str, _field: StepField) -> Lookup {
        Lookup::Absent
    }
}
