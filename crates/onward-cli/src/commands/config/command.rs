//! The verbs of `onward config`.

use clap::Subcommand;

use super::explain;
use crate::exit_code::ExitCode;
use crate::settings::Parsed;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show each setting with its value, source, unit and range; takes the flags of onward serve
    Explain(Box<explain::Arguments>),
}

/// Runs a verb.
pub(crate) fn run(parsed: &Parsed) -> anyhow::Result<ExitCode> {
    explain::run(parsed)
}
