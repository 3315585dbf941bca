//! YAML that is no template, as JSON.

use super::loader::load;
use crate::workflow::template::errors::{Errors, TemplateErrors};
use crate::workflow::template::source::Source;

/// Reads a YAML file with the rules of templates, as JSON.
///
/// # Errors
/// All errors of the file, each with its place.
pub(crate) fn read_yaml(file: &str, text: &str) -> Result<serde_json::Value, TemplateErrors> {
    let source = Source::new(file, text);
    let mut errors = Errors::new(&source);
    let root = load(&mut errors);
    errors.end(root.map(|root| root.to_json()))
}
