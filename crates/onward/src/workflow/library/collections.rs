//! The collections of documents that hold the library.

/// The collection of the templates: the key is the hash, the content the canonical form.
pub(super) const TEMPLATES: &str = "onward.templates";

/// The collection of the names: the content is a hash.
pub(super) const NAMES: &str = "onward.template-names";
