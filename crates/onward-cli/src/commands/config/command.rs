//! The verbs of `onward config`.

use clap::Subcommand;

use super::explain;
use crate::exit_code::ExitCode;
use crate::settings::Parsed;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show each setting with its value, its source, its unit and its range. Takes the flags of
    /// onward serve, to show what they change
    Explain(Box<explain::Arguments>),
}

/// Runs a verb.
pub(crate) fn run(parsed: &Parsed) -> anyhow::Result<ExitCode> {
    explain::run(parsed)
}
