//! The command.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::python::python_file;
use super::rust_file::rust_file;
use super::typescript::typescript_file;
use crate::commands::workflow::files::read_file_or_stored;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// Arguments of `onward workflow generate`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A file, or the name of a stored template, with a label unless the newest is meant
    #[arg(value_name = "FILE|NAME[@LABEL]")]
    template: String,
    /// The language of the code
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    language: Language,
}

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Rust: types, a trait with a function for each kind of task, and its registration
    Rust,
    /// Python: typed dictionaries, the handlers by kind, and their registration with a worker
    Python,
    /// TypeScript: interfaces, the handlers by kind, and their registration with a worker
    Typescript,
}

const AFTER_HELP: &str = "\
The types come from input_schema, result_schema and the schemas of questions; what no schema describes is a JSON value.
The payload of a task has a field for each key of its `with`, or `input` and `results`.
The code for Python and TypeScript needs the package `onward`, and a type checker finds a kind that has no handler.
Examples: onward workflow generate order.yaml > src/order.rs
          onward workflow generate order.yaml --language python > order_types.py";

/// Prints the code of a template. A file of that name goes before a stored template.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = read_file_or_stored(options, &arguments.template).await?;
    let (language, code) = match arguments.language {
        Language::Rust => ("rust", rust_file(&file)?),
        Language::Python => ("python", python_file(&file)?),
        Language::Typescript => ("typescript", typescript_file(&file)?),
    };
    if options.json {
        print_json(&json!({ "name": file.template().name, "language": language, "code": code }))?;
    } else {
        print_line(code.trim_end())?;
    }
    Ok(ExitCode::Done)
}
