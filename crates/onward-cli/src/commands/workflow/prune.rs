//! `onward workflow prune`

use std::time::Duration;

use clap::Args;

use super::command::{open_or_create, open_to_read};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::values::parse_duration;

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only templates that were put longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "7d")]
    older_than: Duration,
    /// Only print them
    #[arg(long)]
    dry_run: bool,
}

/// Removes the stored templates that are not the newest of their name and that no run pins.
pub(crate) async fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { older_than, dry_run } = *arguments;
    let templates = if dry_run {
        open_to_read(options).await?.unused_templates(older_than).await?
    } else {
        open_or_create(options).await?.prune_templates(older_than).await?
    };
    for template in &templates {
        if options.json {
            print_json(template)?;
        } else {
            print_line(format_args!("{}@{} {}", template.name, template.label, template.hash))?;
        }
    }
    if templates.is_empty() && !options.json {
        remark("every stored template is the newest of its name, is pinned by a run, or is younger than --older-than");
    }
    Ok(ExitCode::Done)
}
