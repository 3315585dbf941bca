//! Onward for other processes.
//!
//! [`gateway`] runs the tasks of an engine in workers of any language.

pub mod gateway;
