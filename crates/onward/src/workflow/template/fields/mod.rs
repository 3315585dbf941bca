//! The table of fields: everything that a template may say.
//!
//! The reader, the suggestions for unknown fields and the JSON Schema come from it.

mod field;
mod table;

pub(super) use field::{Field, FieldCondition, FieldType, Place};
pub(super) use table::takes_expression;
