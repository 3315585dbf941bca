//! `onward workflow diff`

use clap::Args;
use serde_json::json;

use super::command::open_to_read;
use super::reference::Reference;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The name, and a label unless the newest template is meant
    #[arg(value_name = "NAME[@LABEL]")]
    one: Reference,
    /// The template to compare it with
    #[arg(value_name = "NAME[@LABEL]")]
    other: Reference,
}

/// Shows the lines in which two stored templates differ.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open_to_read(options).await?;
    let (one, other) = (arguments.one.find(&engine).await?, arguments.other.find(&engine).await?);
    let diff = one.diff(&other);
    if options.json {
        print_json(&json!({ "one": one.reference(), "other": other.reference(), "diff": diff }))?;
    } else if diff.is_empty() {
        remark(format_args!("{} and {} have the same content", one.reference(), other.reference()));
    } else {
        print_line(diff.trim_end())?;
    }
    Ok(ExitCode::Done)
}
