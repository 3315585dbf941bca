//! The door to expressions: all that templates have of them.

pub use crate::workflow::expression::{Expression, ExpressionError, Reference, Root, TextTemplate, ValueTemplate};
