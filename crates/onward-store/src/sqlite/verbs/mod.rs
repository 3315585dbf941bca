//! The verbs, one family per file, each as a method of a transaction.

pub(super) mod attempts;
mod documents;
mod orchestrations;
pub(super) mod relations;
mod sessions;
mod settings;
pub(super) mod tasks;
