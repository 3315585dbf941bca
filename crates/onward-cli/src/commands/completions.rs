//! `onward completions`

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit_code::ExitCode;
use crate::output::print_raw;

/// Arguments of `onward completions`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    print_raw(&script(arguments.shell))?;
    Ok(ExitCode::Done)
}

/// Returns the completion script for one shell.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut script = io::Cursor::new(Vec::new());
    clap_complete::generate(shell, &mut crate::arguments::Arguments::command(), "onward", &mut script);
    script.into_inner()
}
