//! Workflows: graphs of steps that a template describes.

pub mod expression;
pub mod library;
pub mod template;
