//! The constants of a run.

use std::sync::Arc;

use onward_store::{Name, Timestamp};
use serde::{Deserialize, Serialize};

use super::schemas::Schemas;
use crate::workflow::expression::Value;
use crate::workflow::template::{Template, TemplateFile};

/// The facts about a run that expressions read as `run`.
#[derive(Debug, Clone)]
pub(crate) struct RunFacts {
    /// The number of the run's task.
    pub(crate) id: i64,
    /// The name of the template.
    pub(crate) name: String,
    /// The key of the run.
    pub(crate) key: Option<String>,
    /// The time at which the run was submitted.
    pub(crate) started_at: Timestamp,
    /// The environment of the template.
    pub(crate) environment: Option<String>,
}

/// The limits that the step above a run sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLimits {
    /// The longest time of the run, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    /// The moment at which the run has ended, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<i64>,
}

/// The constants of a run: its template, its input and the facts about it.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    pub(crate) template: Arc<Template>,
    pub(crate) input: Value,
    pub(crate) facts: RunFacts,
    pub(in crate::workflow::run) limits: RunLimits,
    /// The steps that alone make the result; all if there are none.
    pub(in crate::workflow::run) only: Vec<usize>,
    /// The file of the template, for the places of errors, if it is known.
    pub(in crate::workflow::run) source: Option<Arc<TemplateFile>>,
    pub(in crate::workflow::run) schemas: Arc<Schemas>,
    /// The constants of the template as a value.
    pub(in crate::workflow::run) vars: Value,
    /// The facts as a value.
    pub(in crate::workflow::run) run: Value,
    /// The affinity key of the steps.
    pub(in crate::workflow::run) affinity: Option<Name>,
}

impl RunContext {
    /// Creates the constants of a run.
    pub(crate) fn new(template: Arc<Template>, schemas: Arc<Schemas>, input: Value, facts: RunFacts) -> Self {
        let vars = template.vars.iter().map(|(key, value)| (key.as_str().into(), value.into())).collect();
        let affinity = Name::new(format!("run-{}", facts.id)).ok();
        let limits = RunLimits::default();
        Self {
            template,
            input,
            limits,
            only: Vec::new(),
            source: None,
            schemas,
            vars,
            run: run_value(&facts),
            affinity,
            facts,
        }
    }

    /// Sets the limits that the step above the run sets, and the file of the template.
    pub(crate) fn with(self, limits: RunLimits, source: Option<Arc<TemplateFile>>) -> Self {
        Self { limits, source, ..self }
    }

    /// Sets the names of the steps that alone run.
    pub(crate) fn of_only(self, steps: &[String]) -> Self {
        Self { only: steps.iter().filter_map(|step| self.template.number(step)).collect(), ..self }
    }
}

fn run_value(facts: &RunFacts) -> Value {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
    let fields = [
        ("id", Value::Int(facts.id)),
        ("name", Value::from(facts.name.as_str())),
        ("key", text(&facts.key)),
        ("started_at", Value::from(facts.started_at)),
        ("environment", text(&facts.environment)),
    ];
    fields.into_iter().map(|(name, value)| (Arc::from(name), value)).collect()
}
