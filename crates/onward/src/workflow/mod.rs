//! Workflows: graphs of steps that a template describes.

pub mod expression;
mod nearest;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "the turn runner is not there yet"))]
mod run;
pub mod template;
