//! Fields that are one expression.

use std::sync::Arc;

use super::budget::Budget;
use super::code::{Code, check_result};
use super::error::{ExpressionError, FailureCause, Parsed, Unfinished};
use super::names::Reference;
use super::parser::Parser;
use super::scope::Scope;
use super::shown::Described;
use super::span::Span;
use super::tokens::{CLOSE, OPEN};
use super::value::Value;

/// An expression, parsed once. A clone shares it.
#[derive(Debug, Clone)]
pub struct Expression(pub(super) Arc<Code>);

impl Expression {
    /// Parses a field that is one expression. `${{ … }}` around all of it is taken off.
    ///
    /// ```
    /// use onward::workflow::expression::Expression;
    ///
    /// let condition = Expression::parse("input.amount > 500").unwrap();
    /// assert_eq!(condition.names()[0].to_string(), "input.amount");
    /// assert_eq!(Expression::parse("input.amount >").unwrap_err().span, 14..14);
    /// ```
    ///
    /// # Errors
    /// If it is no expression, or goes beyond a bound.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        parse(source).map_err(|error| corrected(*error, source))
    }

    /// Returns the source as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        self.0.source()
    }

    /// Returns each use of a root.
    #[must_use]
    pub fn names(&self) -> &[Reference] {
        &self.0.references
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// If it has no value, or some values have to be read first.
    pub fn evaluate(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Unfinished> {
        let value = self.0.evaluate(scope, budget)?;
        check_result(&value, self.0.span().into())?;
        Ok(value)
    }

    /// Evaluates the expression as a condition.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate), and if the value is not a bool: no other value is true.
    pub fn evaluate_condition(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<bool, Unfinished> {
        match self.0.evaluate(scope, budget)? {
            Value::Bool(value) => Ok(value),
            other => {
                let message = format!("a condition has to be a bool, and this is {}", Described(&other));
                Err(Unfinished::failed(self.0.span(), FailureCause::Value, message))
            }
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source() && self.0.span() == other.0.span()
    }
}

impl Eq for Expression {}

fn parse(source: &str) -> Parsed<Expression> {
    let blanks = source.len() - source.trim_start().len();
    let (tree, parser) = if source[blanks..].starts_with(OPEN) {
        parse_wrapped(source, blanks)?
    } else {
        let mut parser = Parser::new(source, blanks)?;
        let tree = parser.expression()?;
        parser.end()?;
        (tree, parser)
    };
    Ok(Expression(Arc::new(Code::new(source.into(), tree, parser))))
}

fn parse_wrapped(source: &str, open: usize) -> Parsed<(super::syntax::Node, Parser<'_>)> {
    let inside = open + OPEN.len();
    let mut parser = Parser::new(source, inside)?;
    let tree = parser.expression()?;
    let end = parser.close(Span::new(open, inside))?;
    let rest = source[end..].trim();
    if rest.is_empty() {
        return Ok((tree, parser));
    }
    let start = end + (source[end..].len() - source[end..].trim_start().len());
    let wrapped = super::shown::Excerpt(&source[open..end]);
    let message = format!("expected an end after `{wrapped}`; write the whole condition without `{OPEN} {CLOSE}`");
    Err(ExpressionError::new(start..start + rest.len(), message))
}

/// Adds the source without `${{ }}`, if that is an expression.
fn corrected(mut error: ExpressionError, source: &str) -> ExpressionError {
    if !source.contains(OPEN) {
        return error;
    }
    let words = source.replace(OPEN, " ").replace(CLOSE, " ");
    let plain = words.split_whitespace().collect::<Vec<_>>().join(" ");
    error.correction = parse(&plain).ok().map(|_| plain);
    error
}
