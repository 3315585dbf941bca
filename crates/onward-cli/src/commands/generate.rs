//! `onward generate`: documentation generated from the definitions of the command line, so that the
//! two cannot disagree.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;
use onward::workflow::template::template_schema;

use super::{completions, man};
use crate::arguments::{Arguments, program};
use crate::exit_code::ExitCode;
use crate::output::reference;

/// The kind of documentation, and its target directory.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The command reference as Markdown, cli.md, the JSON Schema of workflow templates, and the
    /// OpenAPI document of the HTTP API
    Reference {
        /// The directory
        directory: PathBuf,
    },
    /// The manual pages, one per command
    Man {
        /// The directory
        directory: PathBuf,
    },
    /// The completion scripts, one per shell
    Completions {
        /// The directory
        directory: PathBuf,
    },
}

/// Writes the files.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Reference { directory } => {
            write(&directory, "cli.md", reference(Arguments::command()).as_bytes())?;
            #[cfg(feature = "serve")]
            write(&directory, "openapi.json", onward_server::http::openapi_json().as_bytes())?;
            write(&directory, "workflow.schema.json", format!("{:#}\n", template_schema()).as_bytes())?;
        }
        Command::Man { directory } => write_pages(&directory, program(), "onward")?,
        Command::Completions { directory } => {
            for (shell, name) in [(Shell::Bash, "onward.bash"), (Shell::Zsh, "_onward"), (Shell::Fish, "onward.fish")] {
                write(&directory, name, &completions::script(shell))?;
            }
        }
    }
    Ok(ExitCode::Done)
}

fn write_pages(directory: &Path, command: clap::Command, name: &str) -> anyhow::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(directory, sub.clone(), &format!("{name}-{}", sub.get_name()))?;
    }
    let page = man::page(command.display_name(name.to_owned()).disable_help_subcommand(true))?;
    write(directory, &format!("{name}.1"), &page)
}

fn write(directory: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    Ok(fs::write(directory.join(name), content)?)
}
