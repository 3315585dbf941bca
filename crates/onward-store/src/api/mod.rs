//! The storage interface: the values that describe tasks and changes, and the trait that a store
//! implements. This module decides nothing and stores nothing.

pub(crate) mod aggregate;
pub(crate) mod bulk;
pub(crate) mod completion;
pub(crate) mod dependency;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod io;
pub(crate) mod limit;
pub(crate) mod name;
pub(crate) mod notification;
pub(crate) mod orchestration;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod queue;
pub(crate) mod read;
pub(crate) mod reason;
pub(crate) mod result;
pub(crate) mod schedule;
pub(crate) mod served;
pub(crate) mod store;
pub(crate) mod tag;
pub(crate) mod task;
pub(crate) mod timestamp;
pub(crate) mod write;
