//! `onward serve --demo`: a store in memory with the traffic of a shop that does not exist.

mod catalog;
mod outcome;
mod settings;
mod subscription;
mod traffic;
mod worker;

pub(super) use worker::Demo;
