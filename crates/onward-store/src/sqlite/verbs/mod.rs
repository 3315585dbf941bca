//! The verbs: the writes of [`Write`](crate::Write), one family per file, each a method of the
//! transaction.

pub(super) mod attempts;
mod documents;
mod orchestrations;
pub(super) mod relations;
mod sessions;
mod settings;
pub(super) mod tasks;
