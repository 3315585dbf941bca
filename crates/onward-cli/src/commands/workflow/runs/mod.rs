//! Verbs of `onward workflow` on runs. They write to the store and run nothing.

pub(super) mod action;
pub(super) mod compare;
pub(super) mod critical_path;
pub(super) mod events;
pub(super) mod fork;
pub(super) mod history;
pub(super) mod list;
pub(super) mod pause;
mod reply;
pub(super) mod signal;
pub(super) mod start;
pub(super) mod status;

pub(crate) use reply::reply_command;
