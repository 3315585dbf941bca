//! `onward workflow generate`: typed code from the JSON Schemas of a template.

mod command;
mod contents;
mod kinds;
mod names;
mod payload;
mod python;
mod rust_file;
mod rust_types;
mod types;
mod typescript;

pub(super) use command::{Arguments, run};
