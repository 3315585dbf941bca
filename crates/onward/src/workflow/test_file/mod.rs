//! Tests of templates: files that state the results of steps, and what a run comes to.
//!
//! In reading order: [`file`] (the file), [`rewrite`] (the template whose steps end as the file
//! says), [`handlers`], [`play`] (a case from its start to its end), [`expect`] and [`report`].

mod expect;
mod file;
mod handlers;
mod play;
mod report;
mod rewrite;

pub use file::WorkflowTest;
pub use report::{CaseReport, WorkflowTestReport};
