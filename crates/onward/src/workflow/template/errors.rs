//! Errors of templates, with their place and the line of the source.

use std::fmt;
use std::sync::Arc;

use onward_store::text::Shown;

use super::bounds::{ERRORS_REPORTED, EXCERPT_COLUMNS, SHOWN};
use super::source::{Position, Source, Span};

/// An error in a template.
///
/// It is shown as `FILE:LINE:COLUMN: MESSAGE`, then the line of the source with a mark under the
/// part that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateError {
    /// The name of the file.
    pub file: Arc<str>,
    /// The place in the file.
    pub position: Position,
    /// The fault and its remedy.
    pub message: String,
    /// The YAML of the correction that the message suggests, as it appears in the message.
    pub correction: Option<String>,
    excerpt: Option<Excerpt>,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", Shown(&self.file), self.position, self.message)?;
        self.excerpt.as_ref().map_or(Ok(()), |excerpt| excerpt.write(self.position.line, f))
    }
}

impl std::error::Error for TemplateError {}

/// A line of the source, cut to [`EXCERPT_COLUMNS`], with the characters to mark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    before: usize,
    marked: usize,
}

impl Excerpt {
    fn new(source: &Source, span: Span) -> Option<Self> {
        let line = source.line(span.start.line);
        if line.trim().is_empty() {
            return None;
        }
        let column = (span.start.column as usize).saturating_sub(1);
        let length = line.chars().count();
        let behind = if span.end.line > span.start.line { length } else { span.end.column as usize - 1 };
        // A long line is cut so that the marked part begins in the middle.
        let start = if length > EXCERPT_COLUMNS { column.saturating_sub(EXCERPT_COLUMNS / 2) } else { 0 };
        let end = length.min(start + EXCERPT_COLUMNS);
        let shown = line.chars().skip(start).take(end - start).map(visible).collect();
        let marked = behind.clamp(column, end.max(column)) - column;
        Some(Self { line: shown, before: column - start, marked: marked.max(1) })
    }

    fn write(&self, line: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let (before, marks) = (" ".repeat(self.before), "^".repeat(self.marked));
        write!(f, "\n{number} | {}\n{margin} | {before}{marks}", self.line)
    }
}

/// Returns a character that takes one column and that no terminal interprets.
fn visible(character: char) -> char {
    match character {
        '\t' => ' ',
        hidden if onward_store::text::is_hidden(hidden) => '\u{fffd}',
        seen => seen,
    }
}

/// All errors of a template, in the order of their places; at least one, at most
/// [`ERRORS_REPORTED`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateErrors {
    errors: Vec<TemplateError>,
    left_out: usize,
}

impl TemplateErrors {
    /// Returns the errors.
    #[must_use]
    pub fn as_slice(&self) -> &[TemplateError] {
        &self.errors
    }

    /// Returns the number of errors that were found and left out.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl fmt::Display for TemplateErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        match self.left_out {
            0 => Ok(()),
            left_out => write!(f, "\nand {left_out} more"),
        }
    }
}

impl std::error::Error for TemplateErrors {}

/// The fault of an error, without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    message: String,
    correction: Option<String>,
}

impl Fault {
    /// Makes a fault without a correction that could be copied.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), correction: None }
    }

    /// Adds a correction, with the words that introduce it.
    pub(super) fn fix(self, introduction: &str, correction: impl Into<String>) -> Self {
        self.with(&format!("; {introduction}: "), correction)
    }

    /// Adds a correction to a message that already introduces it.
    pub(super) fn with(self, separator: &str, correction: impl Into<String>) -> Self {
        let correction = correction.into();
        Self { message: format!("{}{separator}{correction}", self.message), correction: Some(correction) }
    }

    /// Adds a correction inside the sentence that introduces it.
    pub(super) fn offer(self, correction: impl Into<String>, words: impl FnOnce(&str) -> String) -> Self {
        let correction = correction.into();
        Self { message: format!("{}; {}", self.message, words(&correction)), correction: Some(correction) }
    }

    /// Suggests the nearest known name, if there is one.
    pub(super) fn mean(self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(name) => self.offer(name, |name| format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Adds to the message.
    pub(super) fn and(self, more: &str) -> Self {
        Self { message: self.message + more, ..self }
    }
}

/// The errors that were found so far.
#[derive(Debug)]
pub(super) struct Errors<'s> {
    source: &'s Source,
    found: Vec<TemplateError>,
    left_out: usize,
    note: String,
}

impl<'s> Errors<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, found: Vec::new(), left_out: 0, note: String::new() }
    }

    /// Returns the source that the errors are in.
    pub(super) fn source(&self) -> &'s Source {
        self.source
    }

    /// Returns true if no error was found.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the number of errors that were found.
    pub(super) fn found(&self) -> usize {
        self.found.len() + self.left_out
    }

    /// Returns true if further errors are counted and not reported. The caller then need not
    /// compute what only a report would contain.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= ERRORS_REPORTED
    }

    /// Counts an error without reporting it.
    pub(super) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    /// Adds an error. `fault` is only called while there is room for it.
    pub(super) fn add(&mut self, span: Span, fault: impl FnOnce() -> Fault) {
        self.add_at(|_| span, fault);
    }

    /// Adds an error whose place is looked up in the source.
    pub(super) fn add_at(&mut self, span: impl FnOnce(&Source) -> Span, fault: impl FnOnce() -> Fault) {
        if self.is_full() {
            return self.leave_out();
        }
        let (span, fault) = (span(self.source), fault());
        let (file, position, excerpt) = (self.source.name().clone(), span.start, Excerpt::new(self.source, span));
        let repeated = |found: &TemplateError| found.position == position && found.message == fault.message;
        if !self.found.iter().any(repeated) {
            let message = fault.message + &self.note;
            self.found.push(TemplateError { file, position, message, correction: fault.correction, excerpt });
        }
    }

    /// Adds an error with a message alone.
    pub(super) fn add_message(&mut self, span: Span, message: impl Into<String>) {
        self.add(span, || Fault::new(message));
    }

    /// Adds the name of an environment to all further errors.
    pub(super) fn for_environment(&mut self, name: &str) {
        self.note = format!(" (in environment `{}`)", shown(name));
    }

    /// Adds no name of an environment to further errors.
    pub(super) fn for_all_environments(&mut self) {
        self.note.clear();
    }

    /// Returns the value if there are no errors, and otherwise the errors.
    pub(super) fn end<T>(mut self, value: Option<T>) -> Result<T, TemplateErrors> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => {
                self.found.sort_by_key(|error| error.position);
                Err(TemplateErrors { errors: self.found, left_out: self.left_out })
            }
        }
    }
}

/// An error of a run in a template's expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    /// The number of the run.
    pub run: u64,
    /// The step.
    pub step: String,
    /// The fault.
    pub message: String,
    /// The place in the step, such as `with.to`.
    pub place: String,
    /// The file and the place in it, where they are known.
    pub source: Option<(Arc<str>, Position)>,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {}, step `{}`: {}. In {}", self.run, Shown(&self.step), self.message, self.place)?;
        match &self.source {
            Some((file, position)) => write!(f, ", {}:{position}", Shown(file)),
            None => Ok(()),
        }
    }
}

/// Returns a text of a user as an error shows it: cut, and with hidden characters escaped.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => Shown(text).to_string(),
        Some((end, _)) => format!("{}…", Shown(&text[..end])),
    }
}
