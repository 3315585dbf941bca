//! Checks of the language of comments, documents and names.

pub(super) mod prose;
pub(super) mod prose_of_documents;
pub(super) mod prose_of_scripts;
pub(super) mod retired_words;
pub(crate) mod script_comments;
pub(super) mod words;
