//! Copies between a file and another backend: the store as rows.
//!
//! [`source`] reads a file while no process writes to it: [`settings`] reads everything except
//! tasks, and [`tasks`] reads these. [`target`] creates a file. It writes rows first. Limits,
//! pauses and settings of queues, which affect ready lists, are then applied with the verbs of the
//! store.

mod documents;
mod history;
mod orchestrations;
mod output;
mod settings;
mod source;
mod target;
mod target_settings;
mod tasks;

pub(crate) use source::SqliteSource;
pub(crate) use target::SqliteTarget;
