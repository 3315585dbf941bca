//! Confirmation before a command changes many tasks at once.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit_code::wrong_usage;
use crate::output::remark;

/// The largest number of tasks that a filter changes without `--yes`. A filter that selects more is
/// often mistyped.
pub(super) const MAX_UNCONFIRMED: u64 = 100;

/// The decision of the user at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmation {
    Given,
    Refused,
}

/// Asks the user to confirm a change of `tasks` tasks, which `change` names. Does not ask if
/// `is_given` is true or the tasks are at most [`MAX_UNCONFIRMED`].
///
/// # Errors
/// Returns a usage error if it has to ask and there is no terminal.
pub(super) fn ask(change: &str, tasks: u64, is_given: bool) -> anyhow::Result<Confirmation> {
    if is_given || tasks <= MAX_UNCONFIRMED {
        return Ok(Confirmation::Given);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(wrong_usage(format!(
            "{change}; that is more than {MAX_UNCONFIRMED}: add --yes to do it, or narrow the filter"
        )));
    }
    write!(anstream::stderr().lock(), "{change}; continue? [y/N] ")?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    if matches!(typed.trim(), "y" | "Y" | "yes") {
        return Ok(Confirmation::Given);
    }
    remark("nothing was changed");
    Ok(Confirmation::Refused)
}
