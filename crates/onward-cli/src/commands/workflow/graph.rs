//! `onward workflow graph`

use std::path::Path;

use clap::Args;
use onward::workflow::template::TemplateFile;
use serde_json::json;

use super::command::open_to_read;
use super::files::read_valid;
use super::reference::Reference;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file, or the name of a stored template, with a label unless the newest is meant
    #[arg(value_name = "FILE|NAME[@LABEL]")]
    template: String,
}

/// Prints the graph of a template. A file of that name goes before a stored template.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = Path::new(&arguments.template);
    let file = if path.is_file() { read_valid(path)? } else { stored(options, &arguments.template).await? };
    let graph = file.template().to_mermaid();
    if options.json {
        print_json(&json!({ "name": file.template().name, "mermaid": graph }))?;
    } else {
        print_line(graph.trim_end())?;
    }
    Ok(ExitCode::Done)
}

async fn stored(options: &GlobalOptions, text: &str) -> anyhow::Result<TemplateFile> {
    let reference: Reference = text.parse().map_err(|error: String| wrong_usage(error))?;
    let stored = reference.find(&open_to_read(options).await?).await?;
    Ok(stored.read()?)
}
