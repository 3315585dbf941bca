//! Texts that may hold expressions.

use std::ops::Range;
use std::sync::Arc;

use super::bounds::EXPRESSION_RESULT;
use super::budget::Budget;
use super::code::{Code, check_result};
use super::compiled::Expression;
use super::conversions::text;
use super::error::{ExpressionError, FailureCause, Parsed, Unfinished};
use super::names::Reference;
use super::parser::Parser;
use super::pending::Pending;
use super::scope::Scope;
use super::span::Span;
use super::tokens::OPEN;
use super::value::Value;

/// The escape before [`OPEN`]: `$${{` is the text `${{`.
const ESCAPE: char = '$';

/// A text in which each `${{ e }}` stands for the value of `e`, and `$${{` for `${{`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    source: Arc<str>,
    parts: Arc<[Part]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Expression(Expression),
}

impl TextTemplate {
    /// Parses a text.
    ///
    /// # Errors
    /// If an expression in it is none, or has no end.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let shared: Arc<str> = source.into();
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        while let Some(found) = source[at..].find(OPEN) {
            let open = at + found;
            if let Some(before) = source[at..open].strip_suffix(ESCAPE) {
                text.extend([before, OPEN]);
                at = open + OPEN.len();
                continue;
            }
            text.push_str(&source[at..open]);
            push_text(&mut parts, &mut text);
            let (expression, end) = parse_expression(&shared, open).map_err(|error| *error)?;
            parts.push(Part::Expression(expression));
            at = end;
        }
        text.push_str(&source[at..]);
        push_text(&mut parts, &mut text);
        Ok(Self { source: shared, parts: parts.into() })
    }

    /// Returns the source as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns each use of a root, in the order of the source.
    #[must_use]
    pub fn names(&self) -> Vec<Reference> {
        self.expressions().flat_map(|expression| expression.names().iter().cloned()).collect()
    }

    /// Returns the text, if there is no expression in it.
    #[must_use]
    pub fn constant(&self) -> Option<&str> {
        match &*self.parts {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Evaluates the text. One that is exactly one `${{ e }}` has the value of `e`, with its type.
    ///
    /// # Errors
    /// If an expression has no value, or one that is not put into a text, or some values have to be
    /// read first.
    pub fn evaluate(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Unfinished> {
        let value = self.evaluate_unchecked(scope, budget)?;
        check_result(&value, self.span())?;
        Ok(value)
    }

    /// Evaluates the text for a field that must be a text: `${{ e }}` alone gives a text, too.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate), and if a single value is null, a list or a map.
    pub fn evaluate_text(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Arc<str>, Unfinished> {
        let made = self.join(scope, budget)?;
        check_result(&Value::Text(made.clone()), self.span())?;
        Ok(made)
    }

    /// Evaluates without checking the size of the result.
    pub(super) fn evaluate_unchecked(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Unfinished> {
        match &*self.parts {
            [Part::Expression(expression)] => expression.0.evaluate(scope, budget),
            _ => self.join(scope, budget).map(Value::Text),
        }
    }

    fn join(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Arc<str>, Unfinished> {
        let mut made = String::new();
        let mut pending = Pending::default();
        for part in &*self.parts {
            match part {
                Part::Text(text) => made.push_str(text),
                Part::Expression(expression) => {
                    let value = expression.0.evaluate(scope, budget).and_then(|value| put_in(&value, expression));
                    made.push_str(&pending.take(value)?.unwrap_or_default());
                }
            }
            if made.len() > EXPRESSION_RESULT {
                let message = format!("the text is longer than {EXPRESSION_RESULT} bytes");
                let span = Span::new(0, self.source.len());
                return Err(Unfinished::failed(span, FailureCause::Result, message));
            }
        }
        pending.end()?;
        Ok(made.into())
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Text(_) => None,
        })
    }

    fn span(&self) -> Range<usize> {
        0..self.source.len()
    }
}

fn push_text(parts: &mut Vec<Part>, text: &mut String) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text)));
    }
}

/// Parses the expression whose `${{` is at a byte of a source, and returns the byte behind its end.
fn parse_expression(source: &Arc<str>, open: usize) -> Parsed<(Expression, usize)> {
    let inside = open + OPEN.len();
    let mut parser = Parser::new(source, inside)?;
    let tree = parser.expression()?;
    let end = parser.close(Span::new(open, inside))?;
    Ok((Expression(Arc::new(Code::new(source.clone(), tree, parser))), end))
}

fn put_in(value: &Value, expression: &Expression) -> Result<Arc<str>, Unfinished> {
    text(value).map_err(|message| Unfinished::failed(expression.0.span(), FailureCause::Value, message))
}
