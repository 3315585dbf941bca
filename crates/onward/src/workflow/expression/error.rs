//! Errors of reading and evaluating expressions.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::names::StepField;
use super::path::Path;
use super::value::Map;
use crate::workflow::nearest::did_you_mean;

/// An error in the source of an expression or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionError {
    /// The bytes of the source that are wrong.
    pub span: Range<usize>,
    /// The fault and its remedy.
    pub message: String,
    /// The source that the caller probably meant.
    pub correction: Option<String>,
}

impl ExpressionError {
    /// Makes an error. It is boxed: the parser returns it through many levels.
    pub(super) fn new(span: impl Into<Range<usize>>, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { span: span.into(), message: message.into(), correction: None })
    }
}

/// The result of parsing.
pub(super) type Parsed<T> = Result<T, Box<ExpressionError>>;

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.correction.iter().try_for_each(|correction| write!(f, ": {correction}"))
    }
}

impl std::error::Error for ExpressionError {}

/// The cause of an [`EvaluationError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureCause {
    /// A value that the expression cannot use.
    Value,
    /// More operations than one expression may have.
    ExpressionOperations,
    /// More operations than the budget had left.
    TurnOperations,
    /// A result that is too large, or nests too deep.
    Result,
}

/// An error of an evaluation: the expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvaluationError {
    /// The place of the expression in a [`ValueTemplate`](super::ValueTemplate); else empty.
    pub path: Path,
    /// The bytes of the source that failed.
    pub span: Range<usize>,
    /// The cause.
    pub cause: FailureCause,
    /// The fault and its remedy.
    pub message: String,
    pub(super) misspelt: Misspelt,
}

/// The field that was not found, until the evaluation has ended.
///
/// A comparison with all fields takes long, and most errors of a macro are not those that it ends
/// with. So it is made only for that one.
#[derive(Debug, Clone, Default)]
pub(super) struct Misspelt(pub(super) Option<(Arc<str>, Map)>);

impl PartialEq for Misspelt {
    /// Returns true: outside an evaluation there is none.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Misspelt {}

impl EvaluationError {
    /// Adds the field that was probably meant.
    pub(super) fn suggest(&mut self) {
        if let Some((name, map)) = self.misspelt.0.take() {
            self.message += &did_you_mean(&name, map.keys().map(|key| &**key));
        }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}

/// A value that an evaluation needs and that is not in memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Needed {
    /// The step.
    pub step: Arc<str>,
    /// The field of the step.
    pub field: StepField,
}

/// The reason why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfinished {
    /// The expression failed.
    Failed(Box<EvaluationError>),
    /// Some values have to be read first; then the same evaluation is repeated.
    Needs(Box<BTreeSet<Needed>>),
}

impl Unfinished {
    /// Returns the error unless values have to be read.
    #[must_use]
    pub fn error(&self) -> Option<&EvaluationError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Needs(_) => None,
        }
    }

    /// Returns the values that have to be read.
    pub fn needed(&self) -> impl Iterator<Item = &Needed> {
        match self {
            Self::Failed(_) => None,
            Self::Needs(needed) => Some(needed.iter()),
        }
        .into_iter()
        .flatten()
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Needs(needed) => {
                f.write_str("values have to be read first:")?;
                needed.iter().try_for_each(|needed| write!(f, " steps.{}.{}", needed.step, needed.field))
            }
        }
    }
}

impl std::error::Error for Unfinished {}
