//! A run whose values are in memory or not, as a test says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::{Budget, Expression, Lookup, Root, Scope, StepField, TextTemplate, Unfinished, Value};

/// The values that a test evaluates with.
pub(super) struct Run {
    roots: BTreeMap<Root, Value>,
    steps: BTreeMap<(String, StepField), Value>,
    unread: BTreeSet<(String, StepField)>,
}

impl Run {
    /// Makes a run with an input and no steps.
    pub(super) fn with_input(input: serde_json::Value) -> Self {
        let roots = [(Root::Input, input.into())].into();
        Self { roots, steps: BTreeMap::new(), unread: BTreeSet::new() }
    }

    pub(super) fn root(mut self, root: Root, value: serde_json::Value) -> Self {
        self.roots.insert(root, value.into());
        self
    }

    pub(super) fn step(mut self, name: &str, field: StepField, value: serde_json::Value) -> Self {
        self.steps.insert((name.to_owned(), field), value.into());
        self
    }

    pub(super) fn unread(mut self, name: &str, field: StepField) -> Self {
        self.unread.insert((name.to_owned(), field));
        self
    }

    pub(super) fn evaluate(&self, source: &str) -> Result<Value, Unfinished> {
        parsed(source).evaluate(self, &mut Budget::default())
    }

    /// Evaluates an expression that has a value.
    #[track_caller]
    pub(super) fn value(&self, source: &str) -> Value {
        self.evaluate(source).unwrap_or_else(|error| panic!("{source}: {error}"))
    }

    /// Returns the error of an expression that has no value.
    #[track_caller]
    pub(super) fn error(&self, source: &str) -> String {
        match self.evaluate(source) {
            Err(Unfinished::Failed(error)) => error.to_string(),
            other => panic!("{source}: {other:?}"),
        }
    }

    /// Evaluates a text that has a value.
    #[track_caller]
    pub(super) fn text(&self, source: &str) -> Value {
        let text = TextTemplate::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        text.evaluate(self, &mut Budget::default()).unwrap_or_else(|error| panic!("{source}: {error}"))
    }
}

impl Scope for Run {
    fn root(&self, root: Root) -> Option<Value> {
        self.roots.get(&root).cloned()
    }

    fn step(&self, step: &str, field: StepField) -> Lookup {
        let key = (step.to_owned(), field);
        if self.unread.contains(&key) {
            return Lookup::NotRead;
        }
        self.steps.get(&key).cloned().map_or(Lookup::Absent, Lookup::Found)
    }
}

/// Parses an expression that is one.
#[track_caller]
pub(super) fn parsed(source: &str) -> Expression {
    Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// Returns the error of a source that is no expression.
#[track_caller]
pub(super) fn refused(source: &str) -> String {
    match Expression::parse(source) {
        Err(error) => error.to_string(),
        Ok(expression) => panic!("{source}: {expression:?}"),
    }
}

/// Evaluates an expression that needs nothing of a run.
#[track_caller]
pub(super) fn value(source: &str) -> Value {
    Run::with_input(json!({})).value(source)
}

/// Returns the error of an expression that needs nothing of a run.
#[track_caller]
pub(super) fn error(source: &str) -> String {
    Run::with_input(json!({})).error(source)
}

/// Checks that each expression has the value of the JSON beside it, with its type.
#[track_caller]
pub(super) fn all_are(cases: &[(&str, serde_json::Value)]) {
    for (source, expected) in cases {
        assert_eq!(value(source), Value::from(expected), "{source}");
    }
}

/// Checks that each expression is true.
#[track_caller]
pub(super) fn all_true(sources: &[&str]) {
    for source in sources {
        assert_eq!(value(source), Value::Bool(true), "{source}");
    }
}

/// Checks that each expression is false.
#[track_caller]
pub(super) fn all_false(sources: &[&str]) {
    for source in sources {
        assert_eq!(value(source), Value::Bool(false), "{source}");
    }
}

/// Checks that the error of each expression has the text beside it.
#[track_caller]
pub(super) fn all_fail(cases: &[(&str, &str)]) {
    for (source, part) in cases {
        let error = error(source);
        assert!(error.contains(part), "{source}: {error}");
    }
}

/// Checks that each source is refused with the text beside it.
#[track_caller]
pub(super) fn all_refused(cases: &[(&str, &str)]) {
    for (source, part) in cases {
        let error = refused(source);
        assert!(error.contains(part), "{source}: {error}");
    }
}
