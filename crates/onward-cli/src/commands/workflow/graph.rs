//! `onward workflow graph`

use clap::Args;
use serde_json::json;

use super::files::read_file_or_stored;
use crate::exit_code::ExitCode;
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
    let file = read_file_or_stored(options, &arguments.template).await?;
    let graph = file.template().to_mermaid();
    if options.json {
        print_json(&json!({ "name": file.template().name, "mermaid": graph }))?;
    } else {
        print_line(graph.trim_end())?;
    }
    Ok(ExitCode::Done)
}
