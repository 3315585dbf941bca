//! Stored templates, as callers see them.

use onward_store::{DocumentCursor, DocumentRecord, Timestamp};
use serde::Serialize;

use super::diff;
use super::pretty::pretty;
use crate::error::{Error, Result};
use crate::workflow::template::{TemplateErrors, TemplateFile, TemplateHash};

/// The record of a stored template, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TemplateRecord {
    /// The name.
    pub name: String,
    /// The label of this content: `version`, or the first 12 digits of the hash.
    pub label: String,
    /// The hash of the canonical form.
    pub hash: TemplateHash,
    /// The time at which this content was first put.
    pub put_at: Timestamp,
    /// True if this is the content of the name that was put last.
    pub is_newest: bool,
}

impl TemplateRecord {
    /// Reads the record of a document. `newest` is the newest hash of its name.
    pub(super) fn of(document: &DocumentRecord, newest: impl FnOnce(&str) -> Option<TemplateHash>) -> Result<Self> {
        let hash: TemplateHash = document.key.parse()?;
        let mut index = document.index.iter().cloned();
        let (name, label) = (index.next().unwrap_or_default(), index.next().unwrap_or_default());
        let is_newest = newest(&name) == Some(hash);
        Ok(Self { name, label, hash, put_at: document.changed_at, is_newest })
    }
}

/// A stored template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredTemplate {
    /// Its name, label and hash.
    pub record: TemplateRecord,
    /// The canonical form, which [`TemplateFile::canonical`] returned.
    pub canonical: String,
}

impl StoredTemplate {
    pub(super) fn of(record: TemplateRecord, content: &[u8]) -> Result<Self> {
        match String::from_utf8(content.to_vec()) {
            Ok(canonical) if TemplateHash::of(&canonical) == record.hash => Ok(Self { record, canonical }),
            _ => Err(damaged(record.hash)),
        }
    }

    /// Returns `NAME@LABEL`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}@{}", self.record.name, self.record.label)
    }

    /// Reads the template.
    ///
    /// # Errors
    /// If this version of Onward does not know all of the content.
    pub fn read(&self) -> Result<TemplateFile, TemplateErrors> {
        TemplateFile::read(&self.reference(), &self.canonical)
    }

    /// Returns the canonical form with line breaks and indentation.
    #[must_use]
    pub fn pretty(&self) -> String {
        pretty(&self.canonical)
    }

    /// Returns the difference to another template, line by line, in the unified format. It is empty
    /// if both have the same content.
    #[must_use]
    pub fn diff(&self, other: &Self) -> String {
        diff::unified((&self.reference(), &self.pretty()), (&other.reference(), &other.pretty()))
    }
}

#[cold]
fn damaged(hash: TemplateHash) -> Error {
    onward_store::Error::corrupt(format!("the content of template {hash} has another hash; put the template again"))
        .into()
}

/// A query for stored templates, in pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateQuery {
    /// The template after which the page starts: [`TemplatePage::next`] of the previous page.
    /// `None` starts with the first template.
    pub after: Option<DocumentCursor>,
    /// The largest number of templates, clamped to 1 to 1000. Default: 50.
    pub limit: usize,
}

impl Default for TemplateQuery {
    fn default() -> Self {
        Self { after: None, limit: 50 }
    }
}

/// A page of stored templates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TemplatePage {
    /// The templates by name, those of one name by their hashes.
    pub templates: Vec<TemplateRecord>,
    /// The value for [`TemplateQuery::after`] of the next page; `None` if this was the last page.
    pub next: Option<DocumentCursor>,
}
