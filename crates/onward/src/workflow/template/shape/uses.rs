//! The names that expressions use, and where they may use them.

use std::sync::Arc;

use super::super::expressions::Reference;
use super::super::fields::Place;
use super::super::source::Span;

/// The names that a text of the file uses in its expressions.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub(crate) scope: Scope,
    /// The field that has the text.
    pub(crate) field: &'static str,
    /// The place of the text, and the text itself.
    pub(crate) span: Span,
    pub(crate) text: Arc<str>,
    pub(crate) names: Vec<Reference>,
}

/// The moment at which an expression is evaluated, which decides which names it can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Before the run: the input alone.
    Key,
    /// At the start of the run: no steps.
    Start,
    /// At the end of the run: all steps.
    Result,
    /// At the start of a step: its ancestors.
    Step { step: Arc<str>, has_items: bool },
    /// After the end of a step: its ancestors and itself.
    Published { step: Arc<str> },
    /// In an undo: all steps.
    Undo { has_items: bool },
}

/// The map that is being read.
#[derive(Debug, Clone)]
pub(super) struct MapContext {
    pub(super) place: Place,
    pub(super) step: Option<Arc<str>>,
    pub(super) has_each: bool,
}

impl MapContext {
    /// The template itself.
    pub(super) const RUN: Self = Self { place: Place::Run, step: None, has_each: false };

    /// Returns a map within this one.
    pub(super) fn within(&self, place: Place) -> Self {
        Self { place, step: self.step.clone(), has_each: self.has_each }
    }

    /// Returns the scope of a field's expressions.
    pub(super) fn scope(&self, field: &str) -> Scope {
        let has_items = self.has_each && matches!(field, "with" | "env" | "key");
        match (self.place, &self.step) {
            (Place::Undo, _) => Scope::Undo { has_items },
            (Place::Publish, Some(step)) => Scope::Published { step: step.clone() },
            (_, Some(step)) => Scope::Step { step: step.clone(), has_items },
            (_, None) if field == "key" => Scope::Key,
            (_, None) if field == "result" => Scope::Result,
            (_, None) => Scope::Start,
        }
    }
}

impl std::fmt::Display for MapContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.place, &self.step) {
            (Place::Run, _) => f.write_str("the template"),
            (Place::Step, Some(step)) => write!(f, "step `{}`", super::super::errors::shown(step)),
            (place, Some(step)) => write!(f, "`{}` of step `{}`", place.name(), super::super::errors::shown(step)),
            (place, None) => write!(f, "`{}`", place.name()),
        }
    }
}
