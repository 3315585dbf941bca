//! Queues that users define.

use onward_store::Name;

use crate::exit_code::wrong_usage;

/// Reads the name of a queue to create, change or serve. Rejects queues reserved for Onward.
pub(crate) fn parse_queue(text: &str) -> Result<Name, String> {
    let queue = Name::new(text).map_err(|error| error.to_string())?;
    queue.check_own("queue").map_err(|error| error.to_string())?;
    Ok(queue)
}

/// Checks that a queue to change is not reserved for Onward.
///
/// # Errors
/// Returns a usage error that names the queue.
pub(crate) fn check_queue(queue: &Name) -> anyhow::Result<()> {
    queue.check_own("queue").map_err(|error| wrong_usage(error.to_string()))
}
