//! Writes to tasks.

pub mod atomic_writes;
pub mod attempts;
pub mod batches;
pub mod bounds;
pub mod bulk;
pub mod children;
pub mod control;
pub mod dependencies;
pub mod documents;
pub mod external_completion;
pub mod io;
pub mod keys;
pub mod manual_operations;
pub mod moving;
pub mod output;
pub mod removal;
pub mod retention;
pub mod submit;
pub mod tags;
