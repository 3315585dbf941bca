//! The library: templates that a store keeps.
//!
//! A template is a document of the collection `onward.templates`, under its hash. It never changes.
//! A document of `onward.template-names` names the hash of each `NAME@LABEL`, and one the newest
//! hash of each `NAME`.

mod collections;
mod diff;
mod pretty;
mod prune;
mod put;
mod read;
mod record;
mod stored_file;

pub use record::{StoredTemplate, TemplatePage, TemplateQuery, TemplateRecord};
pub(crate) use stored_file::stored_file;
