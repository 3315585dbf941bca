//! Templates of Tasker, as templates of Onward.
//!
//! In reading order: [`import`] (a file), [`steps`] (its steps), [`values`] (retries, events and
//! environments), [`write`] (the new file).

mod import;
mod steps;
mod values;
mod write;

#[cfg(test)]
mod tests;

pub use import::{TaskerImport, TaskerLeftOut};
