//! Confirmation before a command changes many tasks at once.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit_code::wrong_usage;
use crate::output::remark;

/// The largest number of tasks that a filter changes without `--yes`. A filter that selects more is
/// often mistyped.
pub(super) const MOST_UNASKED: u64 = 100;

/// The decision of the user at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    Refused,
}

/// Asks the user to confirm a change of `tasks` tasks, which `change` names. Does not ask if
/// `is_given` is true or the tasks are at most [`MOST_UNASKED`].
///
/// # Errors
/// Wrong usage, if it has to ask and there is no terminal.
pub(super) fn to(change: &str, tasks: u64, is_given: bool) -> anyhow::Result<Consent> {
    if is_given || tasks <= MOST_UNASKED {
        return Ok(Consent::Given);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(wrong_usage(format!(
            "{change}; that is more than {MOST_UNASKED}: add --yes to do it, or narrow the filter"
        )));
    }
    write!(anstream::stderr().lock(), "{change}; go on? [y/N] ")?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    if matches!(typed.trim(), "y" | "Y" | "yes") {
        return Ok(Consent::Given);
    }
    remark("nothing was changed");
    Ok(Consent::Refused)
}
