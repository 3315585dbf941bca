//! YAML with the place of each key and value, under stricter rules than YAML's own.

mod loader;
mod merge;
mod node;
mod scalar;
mod syntax;

pub(super) use loader::load;
pub(super) use node::{Entry, Node, Value};
pub(super) use syntax::{quoted, written};
