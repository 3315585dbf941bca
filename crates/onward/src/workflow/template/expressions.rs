//! The door to expressions: all that the reader needs of them.
//!
//! It finds where expressions begin and end, and which names they use; it does not check their
//! syntax.

use std::ops::Range;
use std::sync::Arc;

/// A name at which an expression starts to read what a run knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The input of the run.
    Input,
    /// The constants of the template.
    Vars,
    /// The run itself.
    Run,
    /// The steps before the one that has the expression.
    Steps,
    /// The item of a step with `each`.
    Item,
    /// The number of that item, from 0.
    Index,
}

impl Root {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "input" => Self::Input,
            "vars" => Self::Vars,
            "run" => Self::Run,
            "steps" => Self::Steps,
            "item" => Self::Item,
            "index" => Self::Index,
            _ => return None,
        })
    }
}

/// A use of a [`Root`] in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The root.
    pub root: Root,
    /// The step, if the root is [`Root::Steps`].
    pub step: Option<Arc<str>>,
    /// The bytes of the source that hold root and step.
    pub span: Range<usize>,
}

/// An error in the source of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionError {
    /// The bytes of the source that are wrong.
    pub span: Range<usize>,
    /// The fault and its remedy.
    pub message: String,
    /// The source that the author probably meant.
    pub correction: Option<String>,
}

impl ExpressionError {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), correction: None }
    }
}

/// An expression of a field that is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    source: Arc<str>,
    names: Vec<Reference>,
}

impl Expression {
    /// Reads an expression. One `${{ … }}` around all of it is taken off.
    ///
    /// # Errors
    /// If it is empty, has no end, or has `${{` elsewhere.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let start = text.len() - text.trim_start().len();
        let (from, is_wrapped) =
            if text[start..].starts_with(OPEN) { (start + OPEN.len(), true) } else { (start, false) };
        let (names, end) = scan(text, from, is_wrapped)?;
        let behind = if is_wrapped { end + CLOSE.len() } else { end };
        if !text[behind..].trim().is_empty() {
            return Err(not_at_its_end(text, start..behind));
        }
        if let Some(at) = text[from..end].find(OPEN) {
            return Err(not_at_its_end(text, from + at..from + at + OPEN.len()));
        }
        if text[from..end].trim().is_empty() {
            return Err(ExpressionError::new(0..text.len(), "the expression is empty"));
        }
        Ok(Self { source: text[from..end].trim().into(), names })
    }

    /// Returns the source of the expression, without `${{ }}` around it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the names that the expression uses, with their places in the text that was read.
    #[must_use]
    pub fn names(&self) -> &[Reference] {
        &self.names
    }
}

/// Returns the error of an expression that goes on behind `${{ … }}`, or has it inside.
fn not_at_its_end(text: &str, wrapped: Range<usize>) -> ExpressionError {
    let correction = text.replace(OPEN, "").replace(CLOSE, "");
    let correction = correction.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_first = text[..wrapped.start].trim().is_empty();
    let end = wrapped.end + (text[wrapped.end..].len() - text[wrapped.end..].trim_start().len());
    let (span, fault) = match is_first {
        true => (end..text.len(), format!("expected an end after `{}`", text[wrapped].trim())),
        false => (wrapped.start..text.len(), "`${{` stands within an expression".to_owned()),
    };
    let message = format!("{fault}; write the whole condition without `${{{{ }}}}`");
    ExpressionError { span, message, correction: Some(correction) }
}

/// A text that may have expressions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    source: Arc<str>,
    names: Vec<Reference>,
}

impl TextTemplate {
    /// Reads a text. `$${{` in it is a literal `${{`.
    ///
    /// # Errors
    /// If an expression in it is empty or has no end.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Some(found) = text[from..].find(OPEN) {
            let start = from + found;
            from = start + OPEN.len();
            if !text[..start].ends_with('$') {
                let (found, end) = scan(text, from, true)?;
                if text[from..end].trim().is_empty() {
                    return Err(ExpressionError::new(start..end + CLOSE.len(), "the expression is empty"));
                }
                names.extend(found);
                from = end + CLOSE.len();
            }
        }
        Ok(Self { source: text.into(), names })
    }

    /// Returns the source of the text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the names that its expressions use.
    #[must_use]
    pub fn names(&self) -> Vec<Reference> {
        self.names.clone()
    }
}

/// A value whose texts may have expressions in them.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueTemplate {
    source: serde_json::Value,
}

impl ValueTemplate {
    /// Reads a value.
    ///
    /// # Errors
    /// If an expression in one of its texts is empty or has no end.
    pub fn parse(value: &serde_json::Value) -> Result<Self, ExpressionError> {
        check(value)?;
        Ok(Self { source: value.clone() })
    }

    /// Returns the source of the value.
    #[must_use]
    pub fn source(&self) -> &serde_json::Value {
        &self.source
    }
}

/// Checks the texts of a value.
fn check(value: &serde_json::Value) -> Result<(), ExpressionError> {
    match value {
        serde_json::Value::String(text) => TextTemplate::parse(text).map(drop),
        serde_json::Value::Array(items) => items.iter().try_for_each(check),
        serde_json::Value::Object(map) => map.values().try_for_each(check),
        _ => Ok(()),
    }
}

/// The most bytes of one expression.
const EXPRESSION_BYTES: usize = 4 * 1024;

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// The most characters before the comma behind a variable.
const VARIABLE_CHARACTERS: usize = 128;

/// The functions that take a variable.
const WITH_VARIABLE: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];

/// Finds the names of an expression that starts at `from`, and its end: the end of the text, or the
/// place of its `}}`.
fn scan(text: &str, from: usize, is_wrapped: bool) -> Result<(Vec<Reference>, usize), ExpressionError> {
    let mut scanner = Scanner { text, at: from, depth: 0, names: Vec::new(), variables: Vec::new() };
    while let Some(character) = scanner.peek() {
        if scanner.at - from > EXPRESSION_BYTES {
            return Err(ExpressionError::new(
                from..scanner.at,
                format!("an expression has at most {EXPRESSION_BYTES} bytes"),
            ));
        }
        match character {
            '}' if is_wrapped && scanner.depth == 0 && text[scanner.at..].starts_with(CLOSE) => {
                return Ok((scanner.names, scanner.at));
            }
            '\'' | '"' => scanner.quoted(character).map(drop)?,
            '{' => scanner.brace(1),
            '}' => scanner.brace(-1),
            letter if is_start(letter) => scanner.name(),
            other => scanner.at += other.len_utf8(),
        }
    }
    match is_wrapped {
        true => Err(ExpressionError::new(from.saturating_sub(OPEN.len())..text.len(), "`${{` has no `}}`")),
        false => Ok((scanner.names, text.len())),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: i64,
    names: Vec<Reference>,
    variables: Vec<&'a str>,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn brace(&mut self, by: i64) {
        self.depth += by;
        self.at += 1;
    }

    /// Passes over a text in quotes and returns what stands between them.
    fn quoted(&mut self, quote: char) -> Result<&'a str, ExpressionError> {
        let start = self.at;
        let mut is_escaped = false;
        for (offset, character) in self.text[start + 1..].char_indices() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                end if end == quote => {
                    self.at = start + 1 + offset + 1;
                    return Ok(&self.text[start + 1..start + 1 + offset]);
                }
                _ => {}
            }
        }
        Err(ExpressionError::new(start..self.text.len(), format!("the text has no closing {quote}")))
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|letter: char| !is_start(letter) && !letter.is_ascii_digit()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) {
        let start = self.at;
        let is_member = self.text[..start].trim_end().ends_with('.');
        let word = self.word();
        match Root::named(word) {
            _ if is_member && WITH_VARIABLE.contains(&word) => self.variable(),
            Some(root) if !is_member && !self.variables.contains(&word) => self.reference(root, start),
            _ => {}
        }
    }

    /// Notes the variable of a function such as `filter(s, …)`.
    fn variable(&mut self) {
        let Some(rest) = self.text[self.at..].trim_start().strip_prefix('(') else { return };
        let near = rest.char_indices().nth(VARIABLE_CHARACTERS).map_or(rest, |(end, _)| &rest[..end]);
        let Some((variable, _)) = near.split_once(',') else { return };
        self.variables.push(variable.trim());
    }

    fn reference(&mut self, root: Root, start: usize) {
        let step = if root == Root::Steps { self.step() } else { None };
        self.names.push(Reference { root, step, span: start..self.at });
    }

    /// Reads `.NAME` or `["NAME"]` behind `steps`.
    fn step(&mut self) -> Option<Arc<str>> {
        let rest = &self.text[self.at..];
        if rest.starts_with('.') {
            self.at += 1;
            return Some(self.word().into());
        }
        let quote = rest.strip_prefix('[')?.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        self.at += 1;
        self.quoted(quote).ok().map(Arc::from)
    }
}

fn is_start(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(names: &[Reference]) -> Vec<&str> {
        names.iter().filter_map(|name| name.step.as_deref()).collect()
    }

    #[test]
    fn the_steps_that_an_expression_names_are_found() {
        let parsed = Expression::parse("steps.a.result > 1 && steps['b'].state == 'steps.c'").unwrap();
        assert_eq!(steps(parsed.names()), ["a", "b"]);
        assert_eq!(
            &"x ${{ steps.a.n }}"[TextTemplate::parse("x ${{ steps.a.n }}").unwrap().names()[0].span.clone()],
            "steps.a"
        );
    }

    #[test]
    fn fields_and_variables_are_no_names() {
        let parsed = Expression::parse("input.steps.filter(item, item.index > 0)").unwrap();
        let roots: Vec<Root> = parsed.names().iter().map(|name| name.root).collect();
        assert_eq!(roots, [Root::Input]);
    }

    #[test]
    fn wrapping_is_taken_off_once() {
        assert_eq!(Expression::parse("${{ a }}").unwrap().source(), "a");
        let error = Expression::parse("${{ a }} && b").unwrap_err();
        assert_eq!((error.span, error.correction.as_deref()), (9..13, Some("a && b")));
        assert!(Expression::parse("a && ${{ b }}").is_err());
    }

    #[test]
    fn an_expression_ends_at_braces_that_belong_to_it() {
        let text = "${{ {'a': {'b': '}}'}} }} and ${{ steps.x }}";
        assert_eq!(steps(&TextTemplate::parse(text).unwrap().names()), ["x"]);
    }

    #[test]
    fn dollars_are_text_unless_braces_follow() {
        assert_eq!(TextTemplate::parse("$${{ steps.a }} ${steps.b} $steps").unwrap().names(), Vec::new());
        for text in ["${{", "${{ a", "${{ }}", "${{ 'a }}"] {
            assert!(TextTemplate::parse(text).is_err(), "{text}");
        }
    }
}
