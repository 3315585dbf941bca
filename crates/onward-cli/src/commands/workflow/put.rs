//! `onward workflow put`

use std::path::PathBuf;

use clap::Args;
use onward::workflow::template::TemplateFile;
use serde_json::json;

use super::command::open_or_create;
use super::files::read_valid;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The files; if one has errors, none is stored
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Stores templates. All of them are read before the first is stored.
pub(crate) async fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files: Vec<TemplateFile> =
        arguments.files.iter().map(|path| read_valid(path)).collect::<anyhow::Result<_>>()?;
    let engine = open_or_create(options).await?;
    for file in &files {
        let (name, label) = (&file.template().name, file.label());
        let hash = engine.put_template(file).await?;
        if options.json {
            print_json(&json!({ "name": name, "label": label, "hash": hash }))?;
        } else {
            print_line(format_args!("{name}@{label} {hash}"))?;
        }
    }
    Ok(ExitCode::Done)
}
