//! The interface to expressions: everything that templates use of them.

pub use crate::workflow::expression::{Expression, ExpressionError, Reference, Root, TextTemplate, ValueTemplate};
