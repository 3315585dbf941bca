//! Templates that a program makes, without YAML.
//!
//! A builder writes the file that a person would write, and [`TemplateFile::read`] reads it. So a
//! built template passes the same checks and has the same hash as a file with the same content.
//!
//! [`TemplateFile::read`]: super::TemplateFile::read

mod fields;
mod step;
mod template;

#[cfg(test)]
mod tests;

pub use step::StepBuilder;
pub use template::TemplateBuilder;
