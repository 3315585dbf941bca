//! The rules: pure functions from values to values, without clock, I/O or async. Every store calls
//! them, so all stores decide in the same way.

pub mod affinity;
pub mod aggregate;
pub mod all;
pub mod attempt;
pub mod bulk;
pub(crate) mod change_code;
pub mod children;
pub mod choice;
pub mod completion;
pub mod dependencies;
pub mod document;
pub mod due;
pub mod duplicate;
pub mod errors;
pub mod history;
pub mod intervene;
pub mod key;
pub mod limit;
pub mod orchestration;
pub mod order;
pub mod output;
pub mod prefix;
pub mod prune;
pub mod purge;
pub mod queue;
pub mod retry;
pub mod schedule;
pub mod session;
pub mod share;
pub mod why;
