//! `onward workflow generate`: typed code from the JSON Schemas of a template.

mod command;
mod names;
mod payload;
mod rust_file;
mod rust_types;

pub(super) use command::{Arguments, run};
