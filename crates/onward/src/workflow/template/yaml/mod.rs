//! YAML with the place of each key and value, under stricter rules than YAML's own.

mod json;
mod loader;
mod merge;
mod node;
mod scalar;
mod syntax;

pub(crate) use json::read_yaml;
pub(super) use loader::load;
pub(super) use node::{Entry, Node, Value};
pub(super) use syntax::{quoted, written};
