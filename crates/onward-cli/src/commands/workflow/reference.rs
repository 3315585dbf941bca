//! The name of a stored template, as the user types it.

use std::fmt;
use std::str::FromStr;

use onward::Engine;
use onward::workflow::library::StoredTemplate;

use crate::exit_code::wrong_usage;

/// A name, and a label unless the newest template is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    name: String,
    label: Option<String>,
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('@') {
            Some((_, "")) => Err(format!("`{text}` has no label after its `@`; leave `@` out for the newest template")),
            Some((name, label)) => Ok(Self { name: name.to_owned(), label: Some(label.to_owned()) }),
            None => Ok(Self { name: text.to_owned(), label: None }),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(f, "{}@{label}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Reference {
    /// Returns the name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the label, unless the newest template is meant.
    pub(super) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Reads the template, which must be stored.
    pub(super) async fn find(&self, engine: &Engine) -> anyhow::Result<StoredTemplate> {
        let found = engine.template(&self.name, self.label.as_deref()).await?;
        found.ok_or_else(|| {
            wrong_usage(format!("there is no template `{self}`; onward workflow list shows the stored templates"))
        })
    }
}
