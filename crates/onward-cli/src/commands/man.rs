//! `onward man`

use crate::exit_code::ExitCode;
use crate::output::print_raw;

/// Prints the manual page of the program.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    print_raw(&page(crate::arguments::program())?)?;
    Ok(ExitCode::Done)
}

/// Returns the manual page of one command.
pub(super) fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}
