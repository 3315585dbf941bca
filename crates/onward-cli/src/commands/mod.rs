//! The commands, one file each.

#[cfg(feature = "serve")]
pub(crate) mod account;
pub(crate) mod completions;
pub(crate) mod config;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod each;
pub(crate) mod events;
pub(crate) mod generate;
pub(crate) mod import;
#[cfg(feature = "serve")]
pub(crate) mod key;
pub(crate) mod limit;
pub(crate) mod man;
#[cfg(feature = "serve")]
pub(crate) mod mcp;
pub(crate) mod orchestration;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod schedule;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod submit;
pub(crate) mod tag;
pub(crate) mod task;
#[cfg(feature = "top")]
pub(crate) mod top;
pub(crate) mod work;
pub(crate) mod workflow;

pub(crate) use dispatch::run_command;
