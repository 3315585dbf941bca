//! Workflows: graphs of steps that a template describes.

pub mod expression;
mod nearest;
#[allow(dead_code, unused_imports, reason = "the turn runner is not there yet")]
mod run;
pub mod template;
