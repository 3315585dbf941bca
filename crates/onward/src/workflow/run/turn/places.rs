//! Places of errors in the file of a template.

use super::scope::NoValue;
use super::{NotRead, Turn};
use crate::workflow::expression::{Path, PathPart};

/// The part of a template in which an expression failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// The template itself.
    Run,
    /// A step.
    Step(usize),
    /// The undo of a step.
    Undo(usize),
}

impl Turn<'_> {
    /// Returns the message of a trouble. The message of an expression ends with the field, and with
    /// the place in the file if that is known.
    pub(super) fn message(&self, part: Part, trouble: NoValue) -> Result<String, NotRead> {
        match trouble {
            NoValue::NotRead => Err(NotRead),
            NoValue::Failed(message) => Ok(message),
            NoValue::Expression { message, field, path } => {
                let dot = if path.parts().is_empty() { "" } else { "." };
                let place = self.place(part, &field, &path).map(|place| format!(", {place}")).unwrap_or_default();
                Ok(format!("{message}. In {field}{dot}{path}{place}"))
            }
        }
    }

    /// Returns `FILE:LINE:COLUMN` of a part of a field. For a field from elsewhere, such as
    /// `defaults`, it is the place of the step.
    fn place(&self, part: Part, field: &str, path: &Path) -> Option<String> {
        let file = self.context.source.as_deref()?;
        let name = |step: usize| self.step(step).map(|step| step.name.clone());
        let mut keys = match part {
            Part::Run => Vec::new(),
            Part::Step(step) => vec!["steps".to_owned(), name(step)?],
            Part::Undo(step) => vec!["steps".to_owned(), name(step)?, "undo".to_owned()],
        };
        let least = keys.len().max(1);
        keys.extend(field.split('.').map(str::to_owned));
        keys.extend(path.parts().iter().map(|part| match part {
            PathPart::Key(key) => key.to_string(),
            PathPart::Index(index) => index.to_string(),
        }));
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let environment = self.context.facts.environment.as_deref();
        let found = (least..=keys.len()).rev().find_map(|length| file.place(environment, &keys[..length]));
        found.map(|(file, position)| format!("{file}:{position}"))
    }
}
