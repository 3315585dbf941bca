//! The store as rows that another backend takes, and out of such rows.
//!
//! [`source`] reads a file that nobody writes to meanwhile: [`settings`] what is no task, [`tasks`]
//! the rest. [`target`] makes a file: rows first, then, with the verbs of the store, what has
//! consequences for lists of tasks (limits, pauses, settings of queues).

mod history;
mod orchestrations;
mod settings;
mod source;
mod target;
mod target_settings;
mod tasks;

pub(crate) use source::SqliteSource;
pub(crate) use target::SqliteTarget;
