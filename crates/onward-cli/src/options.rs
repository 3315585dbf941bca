//! The options that every command takes.

use clap::{Args, ValueEnum};
use onward_store::Durability;

use crate::location::Location;

/// The options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct GlobalOptions {
    /// Store to use: a file, sqlite:PATH, postgres://USER@HOST/DATABASE, or the address of `onward
    /// serve`, https://HOST. Commands that add or set something create a missing store
    #[arg(long, global = true, env = "ONWARD_STORE", value_name = "STORE", default_value = "onward.db")]
    pub(crate) store: Location,

    /// Failure that acknowledged work survives
    #[arg(long, global = true, value_name = "DURABILITY-LEVEL", default_value = "full")]
    pub(crate) durability: DurabilityLevel,

    /// Print JSON: one object, or one object per line for lists
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show no progress bar (there is none anyway where stderr is not a terminal)
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,

    /// Log more to stderr; repeat for even more (ONWARD_LOG takes a filter such as onward=debug)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The failure that acknowledged work survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityLevel {
    /// Power loss
    Full,
    /// A killed process, not power loss
    Normal,
}

impl From<DurabilityLevel> for Durability {
    fn from(level: DurabilityLevel) -> Self {
        match level {
            DurabilityLevel::Full => Self::Full,
            DurabilityLevel::Normal => Self::Normal,
        }
    }
}
