//! The library: templates that a store keeps.
//!
//! A template is a document of [`TEMPLATES`], under its hash. It never changes. A document of
//! [`NAMES`] names the hash of each `NAME@LABEL`, and one the newest hash of each `NAME`.

mod diff;
mod pretty;
mod put;
mod read;
mod record;
mod stored_file;

pub use record::{StoredTemplate, TemplatePage, TemplateQuery, TemplateRecord};
pub(crate) use stored_file::stored_file;

/// The collection of the templates: the key is the hash, the content the canonical form.
const TEMPLATES: &str = "onward.templates";

/// The collection of the names: the content is a hash.
const NAMES: &str = "onward.template-names";
