//! The commands that work against a server.

use crate::arguments::Command;
use crate::exit_code::wrong_usage;
use crate::location::Location;
use crate::options::{DurabilityLevel, GlobalOptions};

/// A command that needs the store itself: its name, and the reason.
type NeedsStore = (&'static str, &'static str);

const RUNS_WORK: &str = "it runs work, which needs the store itself";

/// Returns the reason if a command needs the store itself. Each new command has to decide.
fn needs_store(command: &Command) -> Option<NeedsStore> {
    match command {
        Command::Run(_) => Some(("run", RUNS_WORK)),
        Command::Each(_) => Some(("each", RUNS_WORK)),
        Command::Work(_) => Some(("work", RUNS_WORK)),
        #[cfg(feature = "serve")]
        Command::Serve(_) => Some(("serve", "it is a server itself")),
        #[cfg(feature = "serve")]
        Command::Mcp(_) => Some(("mcp", "the server has the tools itself, at /mcp")),
        #[cfg(feature = "serve")]
        Command::Account(_) => Some(("account", "it makes and changes the accounts by which people use servers")),
        #[cfg(feature = "serve")]
        Command::Key(_) => Some(("key", "it makes and revokes the keys by which servers are used")),
        Command::Doctor => Some(("doctor", "it checks files and processes of the store")),
        Command::Store(_) => Some(("store", "it works on the files or the database of the store")),
        #[cfg(feature = "top")]
        Command::Top(_) => None,
        Command::Submit(_)
        | Command::Task(_)
        | Command::Orchestration(_)
        | Command::Tag(_)
        | Command::Queue(_)
        | Command::Limit(_)
        | Command::Schedule(_)
        | Command::Import(_)
        | Command::Workflow(_)
        | Command::Stats
        | Command::Events(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Man
        | Command::Generate(_) => None,
    }
}

/// Checks, before anything else, that a command works on the store that the user names.
///
/// # Errors
/// Returns a usage error, with the reason and the remedy, if the store is a server and the command
/// needs the store itself.
pub(crate) fn check_is_served(command: &Command, options: &GlobalOptions) -> anyhow::Result<()> {
    let Location::Http(_) = options.store else { return Ok(()) };
    let server = &options.store;
    if let Some((name, reason)) = needs_store(command) {
        return Err(wrong_usage(format!(
            "`onward {name}` does not work against the server {server}: {reason}; run it where the store is, with \
             --store FILE or --store postgres://…"
        )));
    }
    if options.durability != DurabilityLevel::Full {
        let remedy = "leave it out, or give it to `onward serve`";
        return Err(wrong_usage(format!("--durability has no effect at the server {server}; {remedy}")));
    }
    Ok(())
}
