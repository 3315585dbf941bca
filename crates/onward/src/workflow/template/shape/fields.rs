//! Maps of fields: unknown ones, steps and environments.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::bounds::{ENVIRONMENTS, STEPS};
use super::super::errors::{Errors, Fault, shown};
use super::super::fields::{Field, Place};
use super::super::names;
use super::super::yaml::{Entry, Node, Value};
use super::uses::{MapContext, Use};
use super::{rules, values};
use crate::workflow::nearest::nearest;

/// The most fields that an error lists.
const LISTED: usize = 10;

/// A check that is under way.
pub(crate) struct Shape<'s, 'e> {
    pub(super) errors: &'e mut Errors<'s>,
    found: Shaped,
}

/// The findings of the check that later ones need.
#[derive(Debug, Default)]
pub(crate) struct Shaped {
    pub(crate) uses: Vec<Use>,
    /// The steps whose dependencies could not be read, so that the names that they may use are
    /// unknown.
    pub(crate) unclear: HashSet<Arc<str>>,
}

impl<'s, 'e> Shape<'s, 'e> {
    /// Checks a template in its one form.
    pub(crate) fn check(root: &Node, errors: &'e mut Errors<'s>) -> Shaped {
        let mut shape = Self { errors, found: Shaped::default() };
        shape.fields(root, &MapContext::RUN);
        shape.found
    }

    /// Records the names that a text's expressions use.
    pub(super) fn uses(&mut self, used: Use) {
        if !used.names.is_empty() {
            self.found.uses.push(used);
        }
    }

    /// Checks a map of fields.
    pub(super) fn fields(&mut self, node: &Node, at: &MapContext) {
        let mut meant = Vec::new();
        for entry in node.entries() {
            match at.place.field(&entry.key) {
                Some(field) if !field.is_listed => self.field(field, entry, at),
                _ => meant.extend(self.unknown(entry, at)),
            }
        }
        if let (Some(step), true) = (&at.step, meant.contains(&"depends_on") || meant.contains(&"chooses")) {
            self.found.unclear.insert(step.clone());
        }
        rules::check(node, at, &meant, self.errors);
    }

    fn field(&mut self, field: &'static Field, entry: &Entry, at: &MapContext) {
        let before = self.errors.found();
        match field.name {
            "steps" => self.steps(&entry.value),
            "environments" => self.environments(&entry.value),
            _ => self.value(field, &entry.value, at),
        }
        let decides = matches!(field.name, "depends_on" | "chooses");
        if let (true, Some(step)) = (decides && self.errors.found() > before, &at.step) {
            self.found.unclear.insert(step.clone());
        }
    }

    /// Reports an unknown field, and returns the one that was probably meant.
    fn unknown(&mut self, entry: &Entry, at: &MapContext) -> Option<&'static str> {
        if self.errors.is_full() {
            self.errors.leave_out();
            return None;
        }
        let known = || at.place.fields().iter().filter(|field| !field.is_listed).map(|field| field.name);
        let meant = nearest(&entry.key, known());
        self.errors.add(entry.span, || {
            if at.place == Place::Step && &*entry.key == "name" {
                return Fault::new(format!(
                    "`name` stands only in a list of steps; in a map, {at} has its name as its key"
                ));
            }
            let fault = Fault::new(format!("unknown field `{}` in {at}", shown(&entry.key)));
            match meant {
                None if at.place.fields().len() <= LISTED => {
                    fault.and(&format!("; there are {}", rules::list(known(), "and")))
                }
                meant => fault.mean(meant),
            }
        });
        meant
    }

    fn steps(&mut self, node: &Node) {
        let steps = node.entries();
        match &node.value {
            Value::Map(_) if steps.is_empty() => self.errors.add_message(node.span, "a template has at least one step"),
            Value::Map(_) if steps.len() > STEPS => {
                let message = format!("a template has at most {STEPS} steps, and this one has {}", steps.len());
                self.errors.add_message(node.span, message);
            }
            Value::Map(_) => steps.iter().for_each(|step| self.step(step)),
            Value::Broken => {}
            other => self.errors.add_message(node.span, format!("`steps` is a map or a list, not {}", other.kind())),
        }
    }

    fn step(&mut self, step: &Entry) {
        if let Err(message) = names::step(&step.key) {
            let like = names::like_step(&step.key);
            self.errors.add(step.span, || Fault::new(message).offer(like, |like| format!("`{like}`, for example")));
        }
        match &step.value.value {
            Value::Map(_) => {
                let has_each = step.value.get("each").is_some();
                let at = MapContext { place: Place::Step, step: Some(step.key.clone()), has_each };
                rules::check_kind(step.span, &step.value, &at, self.errors);
                self.fields(&step.value, &at);
            }
            Value::Broken => {}
            other => {
                let message = format!("step `{}` is a map, not {}", shown(&step.key), other.kind());
                self.errors.add_message(step.span, message);
            }
        }
    }

    /// Checks the names of environments. Their changes are checked in the resulting template.
    fn environments(&mut self, node: &Node) {
        let environments = node.entries();
        match &node.value {
            Value::Map(_) if environments.len() > ENVIRONMENTS => {
                self.errors.add_message(node.span, format!("a template has at most {ENVIRONMENTS} environments"));
            }
            Value::Map(_) => {}
            Value::Broken => {}
            other => self.errors.add_message(node.span, format!("`environments` is a map, not {}", other.kind())),
        }
        for environment in environments {
            if let Err(message) = names::environment(&environment.key) {
                self.errors.add_message(environment.span, message);
            }
        }
    }

    pub(super) fn value(&mut self, field: &'static Field, node: &Node, at: &MapContext) {
        if matches!(node.value, Value::Broken) {
            return;
        }
        if let Err(fault) = values::check(self, field, node, at) {
            self.errors.add(node.span, || fault);
        }
    }
}
