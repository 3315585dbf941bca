//! Evaluation of a tree.
//!
//! The evaluator calls itself as deep as the tree is, which the parser bounds. A value that is not
//! in memory does not end it at once: what else the expression needs is found in the same pass, so
//! that the caller reads all of it together.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::budget::{Exhausted, Meter};
use super::code::Code;
use super::error::{EvaluationError, FailureCause, Misspelt, Needed, Unfinished};
use super::names::{Root, StepField};
use super::path::Path;
use super::pattern::Built;
use super::pending::Pending;
use super::scope::{Lookup, Scope};
use super::shown::Described;
use super::span::Span;
use super::syntax::{Kind, Node};
use super::value::{List, Map, Value};

pub(super) type Evaluated = Result<Value, Unfinished>;

/// The reason why an operation has no value, without its place.
pub(super) enum Fault {
    Exhausted,
    Message(String),
    /// A message, and the field that is not there.
    Missing(String, Arc<str>, Map),
}

impl From<Exhausted> for Fault {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

/// One evaluation of an expression.
pub(super) struct Evaluator<'a> {
    pub(super) code: &'a Code,
    scope: &'a dyn Scope,
    pub(super) meter: Meter<'a>,
    /// The values of variables, of the outermost macro first.
    pub(super) variables: Vec<Value>,
    /// The states that searches have built, for each pattern of the expression.
    pub(super) built: Vec<Option<Built>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(code: &'a Code, scope: &'a dyn Scope, meter: Meter<'a>) -> Self {
        let mut built = Vec::new();
        built.resize_with(code.patterns.len(), || None);
        Self { code, scope, meter, variables: Vec::new(), built }
    }

    /// Evaluates a part of the expression.
    pub(super) fn value(&mut self, node: &Node) -> Evaluated {
        let span = node.span;
        self.meter.charge(1).map_err(|exhausted| self.failed(exhausted, span))?;
        match &node.kind {
            Kind::Constant(value) => Ok(value.clone()),
            Kind::Variable(number) => Ok(self.variables.get(*number).cloned().unwrap_or_default()),
            Kind::Root(root) => self.root(*root, span),
            Kind::Step(step) => self.step(step, span),
            Kind::StepField(step, field) => self.step_field(step, *field, span),
            Kind::All(operands) => self.junction(operands, "a side of `&&`", false),
            Kind::Any(operands) => self.junction(operands, "a side of `||`", true),
            Kind::Not(operand) => self.not(operand),
            Kind::Negate(operand) => self.negate(operand, span),
            Kind::Compare(comparison, left, right) => self.compare(*comparison, left, right, span),
            Kind::Arithmetic(first, rest) => self.arithmetic(first, rest),
            Kind::Choice(cases, otherwise) => self.choice(cases, otherwise),
            Kind::List(items) => self.list(items, span),
            Kind::Map(entries) => self.map(entries, span),
            Kind::Call(function, arguments) => self.call(*function, arguments, span),
            Kind::Has(base, field) => self.has(base, field, span),
            Kind::HasStepField(step, field) => self.has_step_field(step, *field),
            Kind::Chain(base, links) => self.chain(base, links),
        }
    }

    /// Returns the failure of an operation at a place of the source.
    pub(super) fn failed(&self, fault: impl Into<Fault>, span: Span) -> Unfinished {
        match fault.into() {
            Fault::Message(message) => Unfinished::failed(span, FailureCause::Value, message),
            Fault::Missing(message, name, map) => Unfinished::missing(span, message, Misspelt(Some((name, map)))),
            Fault::Exhausted => {
                let bound = self.meter.bound();
                Unfinished::failed(span, bound, exhausted_message(bound))
            }
        }
    }

    fn root(&self, root: Root, span: Span) -> Evaluated {
        self.scope.root(root).ok_or_else(|| {
            let message = match root {
                Root::Item | Root::Index => format!("`{root}` has a value only in a step with `each`"),
                _ => format!("`{root}` has no value here"),
            };
            self.failed(message, span)
        })
    }

    fn step_field(&self, step: &Arc<str>, field: StepField, span: Span) -> Evaluated {
        match self.scope.step(step, field) {
            Lookup::Found(value) => Ok(value),
            Lookup::NotRead => Err(Unfinished::needs(Needed { step: step.clone(), field })),
            Lookup::Absent => {
                let remedy = match field {
                    StepField::Failed | StepField::Count => "; only a step with `each` has it",
                    _ => "; the step is unknown here",
                };
                Err(self.failed(format!("no field `{field}` in steps.{step}{remedy}"), span))
            }
        }
    }

    /// Returns a step as a map of the fields that it has.
    fn step(&mut self, step: &Arc<str>, span: Span) -> Evaluated {
        let mut pending = Pending::default();
        let mut fields = Vec::new();
        for field in StepField::ALL {
            match self.scope.step(step, field) {
                Lookup::Found(value) => fields.push((Arc::from(field.as_str()), value)),
                Lookup::NotRead => pending.need(Needed { step: step.clone(), field }),
                Lookup::Absent => {}
            }
        }
        pending.end()?;
        if fields.is_empty() {
            return Err(self.failed(format!("the step `{step}` is unknown here"), span));
        }
        self.made(fields.into_iter().collect(), span)
    }

    fn choice(&mut self, cases: &[(Node, Node)], otherwise: &Node) -> Evaluated {
        for (condition, value) in cases {
            let chosen = self.value(condition)?;
            if self.bool(&chosen, "a condition", condition.span)? {
                return self.value(value);
            }
        }
        self.value(otherwise)
    }

    /// Returns the bool of a value that has to be one.
    pub(super) fn bool(&self, value: &Value, what: &str, span: Span) -> Result<bool, Unfinished> {
        match value {
            Value::Bool(value) => Ok(*value),
            _ => Err(self.failed(format!("{what} has to be a bool, and this is {}", Described(value)), span)),
        }
    }

    fn list(&mut self, items: &[Node], span: Span) -> Evaluated {
        let items = self.values(items)?;
        self.made(items.into_iter().collect(), span)
    }

    fn map(&mut self, entries: &[(Node, Node)], span: Span) -> Evaluated {
        let mut made = std::collections::BTreeMap::new();
        let mut pending = Pending::default();
        for (key, value) in entries {
            let (Some(name), Some(value)) = (pending.take(self.value(key))?, pending.take(self.value(value))?) else {
                continue;
            };
            let Value::Text(name) = name else {
                return Err(self.failed(format!("a key has to be a text, and this is {}", Described(&name)), key.span));
            };
            if made.contains_key(&name) {
                return Err(self.failed(format!("the key {} is there twice", Described(&Value::Text(name))), key.span));
            }
            made.insert(name, value);
        }
        pending.end()?;
        self.made(Value::Map(made.into_iter().collect::<Map>()), span)
    }

    /// Evaluates parts that are all required.
    pub(super) fn values(&mut self, nodes: &[Node]) -> Result<Vec<Value>, Unfinished> {
        let mut values = Vec::with_capacity(nodes.len());
        let mut pending = Pending::default();
        for node in nodes {
            values.extend(pending.take(self.value(node))?);
        }
        pending.end()?;
        Ok(values)
    }

    /// Returns a new list or map, unless it nests too deep.
    pub(super) fn made(&self, value: Value, span: Span) -> Evaluated {
        if value.depth() <= super::bounds::VALUE_DEPTH {
            return Ok(value);
        }
        Err(Unfinished::failed(span, FailureCause::Result, too_deep()))
    }

    pub(super) fn made_list(&self, items: Vec<Value>, span: Span) -> Evaluated {
        self.made(Value::List(items.into_iter().collect::<List>()), span)
    }

    fn has(&mut self, base: &Node, field: &str, span: Span) -> Evaluated {
        match self.value(base)? {
            Value::Map(map) => Ok(Value::Bool(map.contains_key(field))),
            other => {
                let name = self.code.text_of(base.span);
                Err(self.failed(format!("{name} is {}, which has no fields", Described(&other)), span))
            }
        }
    }

    fn has_step_field(&self, step: &str, field: StepField) -> Evaluated {
        Ok(Value::Bool(!matches!(self.scope.step(step, field), Lookup::Absent)))
    }
}

/// Returns the message of a value that nests too deep.
pub(super) fn too_deep() -> String {
    format!("lists and maps nest more than {} levels", super::bounds::VALUE_DEPTH)
}

fn exhausted_message(bound: FailureCause) -> String {
    match bound {
        FailureCause::TurnOperations => "the expressions of this turn need too many operations".to_owned(),
        _ => format!(
            "the expression needs more than {} operations; compute it in a task",
            super::bounds::EXPRESSION_OPERATIONS
        ),
    }
}

impl Unfinished {
    pub(super) fn failed(span: Span, cause: FailureCause, message: String) -> Self {
        let (path, span, misspelt) = (Path::default(), span.into(), Misspelt::default());
        Self::Failed(Box::new(EvaluationError { path, span, cause, message, misspelt }))
    }

    fn missing(span: Span, message: String, misspelt: Misspelt) -> Self {
        let (path, span, cause) = (Path::default(), span.into(), FailureCause::Value);
        Self::Failed(Box::new(EvaluationError { path, span, cause, message, misspelt }))
    }

    fn needs(needed: Needed) -> Self {
        Self::Needs(Box::new(BTreeSet::from([needed])))
    }
}
