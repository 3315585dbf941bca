//! The values that an expression can name.

use super::names::{Root, StepField};
use super::value::Value;

/// The source of the values that an expression names. A value is requested when the evaluation
/// reaches it.
pub trait Scope {
    /// Returns the value of a root, or nothing if it has none here. [`Root::Steps`] is never asked
    /// for.
    fn root(&self, root: Root) -> Option<Value>;

    /// Returns the value of a step's field.
    fn step(&self, step: &str, field: StepField) -> Lookup;
}

/// The value of a step's field, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// The value.
    Found(Value),
    /// The value exists and is not in memory. The evaluation ends with
    /// [`Unfinished::Needs`](super::Unfinished::Needs). The caller reads the value and evaluates
    /// again.
    NotRead,
    /// The step is unknown, or a step of its type has no such field.
    Absent,
}
