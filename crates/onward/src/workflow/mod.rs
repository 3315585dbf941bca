//! Workflows: graphs of steps that a template describes.

pub mod template;
