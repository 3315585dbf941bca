//! Templates of workflows: from the text of a file to a template, or to its errors.
//!
//! Everything here is computed from the text alone. [`TemplateFile::read`] does, in this order:
//!
//! 1. `yaml` reads values with their places,
//! 2. `steps` brings lists and maps of steps into one form,
//! 3. `shape` compares the values with the table in `fields`,
//! 4. `outline` and `checks` judge what steps say about each other, in the order that `graph` has,
//! 5. `build` makes the [`Template`], again for each environment as `overlay` merges it,
//! 6. `canonical` writes the form that the hash is made of.

mod bits;
pub mod bounds;
mod build;
mod builder;
mod canonical;
mod checks;
mod duration;
mod errors;
mod exercise;
mod expressions;
mod fields;
mod file;
mod graph;
mod json_schema;
mod mermaid;
mod model;
mod names;
mod outline;
mod overlay;
mod shape;
mod source;
mod steps;
mod tasker;
mod yaml;

#[cfg(test)]
mod tests;

pub use builder::{StepBuilder, TemplateBuilder};
pub use canonical::TemplateHash;
pub use errors::{RunError, TemplateError, TemplateErrors};
#[doc(hidden)]
pub use exercise::exercise;
pub use expressions::{Expression, ExpressionError, Reference, Root, TextTemplate, ValueTemplate};
pub use file::TemplateFile;
pub use graph::Graph;
pub use json_schema::template_schema;
pub use model::{
    Ask, Condition, Delivery, Dependency, Each, Identity, Items, KeepFor, OnFailure, Publication, PublishedEnd, Signal,
    Step, StepAction, Template, Tolerate, Undo, Wait, Work, WorkKind,
};
pub use source::Position;
pub use tasker::{TaskerImport, TaskerLeftOut};
pub(crate) use yaml::read_yaml;
