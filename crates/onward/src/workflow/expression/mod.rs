//! Expressions of workflows: a subset of CEL.
//!
//! A field that is one expression is an [`Expression`]; a text that may hold some is a
//! [`TextTemplate`]; a value of any shape whose texts may hold some is a [`ValueTemplate`]. Each is
//! parsed once, tells which [names](Reference) it uses, and is evaluated in a [`Scope`] within a
//! [`Budget`]. Nothing here reads a clock, a file or a random number.
//!
//! ```
//! use onward::workflow::expression::{Budget, Lookup, Root, Scope, StepField, TextTemplate, Value};
//!
//! struct Order;
//!
//! impl Scope for Order {
//!     fn root(&self, root: Root) -> Option<Value> {
//!         let input = serde_json::json!({"id": "A-17", "amount": 900});
//!         (root == Root::Input).then(|| input.into())
//!     }
//!
//!     fn step(&self, _: &str, _: StepField) -> Lookup {
//!         Lookup::Absent
//!     }
//! }
//!
//! let title = TextTemplate::parse("Ship ${{ input.id }} for ${{ input.amount / 100 }}?").unwrap();
//! let value = title.evaluate(&Order, &mut Budget::default()).unwrap();
//! assert_eq!(value, Value::from("Ship A-17 for 9?"));
//! ```

pub mod bounds;
mod budget;
mod calls;
mod chain;
mod classes;
mod code;
mod compare;
mod compiled;
mod conversions;
mod duration;
mod each;
mod error;
mod evaluate;
mod exercise;
mod functions;
mod json;
mod literal;
mod methods;
mod names;
mod number;
mod operators;
mod parser;
mod path;
mod pattern;
mod pending;
mod primary;
mod scope;
mod shown;
mod span;
mod syntax;
#[cfg(test)]
mod tests;
mod text_template;
mod timestamp;
mod tokens;
mod value;
mod value_template;

pub use budget::Budget;
pub use compiled::Expression;
pub use duration::{duration_text, parse_duration};
pub use error::{EvaluationError, ExpressionError, FailureCause, Needed, Unfinished};
#[doc(hidden)]
pub use exercise::exercise;
pub use names::{RUN_FIELDS, Reference, Root, StepField};
pub use path::{Path, PathPart};
pub use scope::{Lookup, Scope};
pub use text_template::TextTemplate;
pub use value::{List, Map, Value};
pub use value_template::{ValueError, ValueTemplate};
