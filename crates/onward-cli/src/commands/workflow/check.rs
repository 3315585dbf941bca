//! `onward workflow check`

use std::path::{Path, PathBuf};

use clap::Args;
use onward::workflow::template::{TemplateErrors, TemplateFile};
use serde_json::json;

use super::files::read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Reports the errors of templates. Returns the code of wrong usage if there are any.
pub(crate) fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::Done;
    for path in &arguments.files {
        match read(path)? {
            (path, Ok(file)) => print_valid(options, &path, &file)?,
            (_, Err(errors)) => {
                code = ExitCode::Usage;
                print_errors(options, &errors)?;
            }
        }
    }
    Ok(code)
}

fn print_valid(options: &GlobalOptions, path: &Path, file: &TemplateFile) -> anyhow::Result<()> {
    let (name, label, hash) = (&file.template().name, file.label(), file.hash());
    if options.json {
        let path = path.display().to_string();
        print_json(&json!({ "file": path, "name": name, "label": label, "hash": hash }))?;
    } else {
        print_line(format_args!("{}: {name}@{label} has no errors", path.display()))?;
    }
    Ok(())
}

fn print_errors(options: &GlobalOptions, errors: &TemplateErrors) -> anyhow::Result<()> {
    if !options.json {
        return Ok(print_line(errors)?);
    }
    for error in errors.as_slice() {
        print_json(&json!({
            "file": &*error.file,
            "line": error.position.line,
            "column": error.position.column,
            "message": error.message,
            "correction": error.correction,
        }))?;
    }
    Ok(())
}
