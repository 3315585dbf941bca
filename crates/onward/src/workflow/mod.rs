//! Workflows: graphs of steps that a template describes.

pub mod expression;
pub mod template;
