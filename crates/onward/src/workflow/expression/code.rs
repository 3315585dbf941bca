//! A parsed expression with what its evaluation needs.

use std::ops::Range;
use std::sync::Arc;

use super::bounds::EXPRESSION_RESULT;
use super::budget::{Budget, Meter};
use super::error::{FailureCause, Unfinished};
use super::evaluate::{Evaluated, Evaluator, too_deep};
use super::json::length_within;
use super::names::Reference;
use super::parser::Parser;
use super::pattern::Pattern;
use super::scope::Scope;
use super::shown::Excerpt;
use super::span::Span;
use super::syntax::Node;
use super::value::Value;

/// The parsed form. It is made once and shared.
#[derive(Debug)]
pub(super) struct Code {
    source: Arc<str>,
    tree: Node,
    pub(super) references: Vec<Reference>,
    pub(super) patterns: Vec<Pattern>,
}

impl Code {
    /// Returns the code of a tree that a parser has made of a source.
    pub(super) fn new(source: Arc<str>, tree: Node, parser: Parser<'_>) -> Self {
        Self { source, tree, references: parser.references, patterns: parser.patterns }
    }

    /// Returns the whole source, of which the expression may be a part.
    pub(super) fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// Returns the bytes of the source that the expression takes.
    pub(super) fn span(&self) -> Span {
        self.tree.span
    }

    /// Returns a part of the source, as it stands in an error.
    pub(super) fn text_of(&self, span: Span) -> String {
        Excerpt(span.of(&self.source)).to_string()
    }

    /// Evaluates the expression. The size of the result is left to [`check_result`].
    pub(super) fn evaluate(&self, scope: &dyn Scope, budget: &mut Budget) -> Evaluated {
        let mut value = Evaluator::new(self, scope, Meter::new(budget)).value(&self.tree);
        if let Err(Unfinished::Failed(error)) = &mut value {
            error.suggest();
        }
        value
    }
}

/// Checks that a result is not too large and does not nest too deep.
pub(super) fn check_result(value: &Value, span: Range<usize>) -> Result<(), Unfinished> {
    let message = if value.depth() > super::bounds::VALUE_DEPTH {
        too_deep()
    } else if is_small(value) || length_within(value, EXPRESSION_RESULT).is_some() {
        return Ok(());
    } else {
        format!(
            "the result is longer than {EXPRESSION_RESULT} bytes of JSON; leave it with its step, and read parts of it"
        )
    };
    Err(Unfinished::failed(Span::new(span.start, span.end), FailureCause::Result, message))
}

/// Returns true if a value is small regardless of its content.
fn is_small(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Map(_) => false,
        // A byte of a text takes at most six as JSON.
        Value::Text(text) => text.len() < EXPRESSION_RESULT / 8,
        _ => true,
    }
}
