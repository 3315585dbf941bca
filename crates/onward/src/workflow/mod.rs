//! Workflows: graphs of steps that a template describes.

pub mod expression;
mod nearest;
pub mod template;
