//! The store as rows that another backend takes, and out of such rows.
//!
//! [`source`] reads a file while no process writes to it: [`settings`] reads everything except
//! tasks, [`tasks`] the rest. [`target`] creates a file: rows first, then, with the verbs of the
//! store, what has consequences for lists of tasks (limits, pauses, settings of queues).

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
