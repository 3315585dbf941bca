//! The check of a file against the table of fields.

mod fields;
mod rules;
mod schema;
mod uses;
mod values;

pub(super) use fields::Shape;
pub(super) use uses::{Scope, Use};
pub(super) use values::{expression_text, whole_number};
