//! The client.

mod builder;
mod control;
mod core;
mod orchestrations;
mod pages;
mod task_actions;
mod tasks;
mod watch;
mod workflows;

pub use builder::ClientBuilder;
pub use core::Client;
pub use pages::Pages;
pub use watch::Watch;
