//! The source of a template, and places in it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a file.
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// Returns the place some characters further on the same line.
    pub(super) fn right(self, characters: usize) -> Self {
        Self { column: self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX)), ..self }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A part of a file, from its first character to the place behind its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: Position,
    pub(super) end: Position,
}

impl Span {
    /// The first character of a file, for errors that concern all of it.
    pub(super) const START: Self = Self { start: Position::START, end: Position::START };
}

/// A file: its name, its text and where its lines begin.
#[derive(Debug, Clone)]
pub(super) struct Source {
    name: Arc<str>,
    text: Arc<str>,
    lines: Vec<usize>,
}

impl Source {
    /// Indexes the lines of a file. Lines end as in YAML: with a line feed, a carriage return, or
    /// both.
    pub(super) fn new(name: &str, text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len()).filter(|at| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let lines = std::iter::once(0).chain(ends.map(|at| at + 1)).collect();
        Self { name: name.into(), text: text.into(), lines }
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a line without its end; an empty one if there is no such line.
    pub(super) fn line(&self, line: u32) -> &str {
        let Some(index) = (line as usize).checked_sub(1) else { return "" };
        let Some(&start) = self.lines.get(index) else { return "" };
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    /// Returns the place, or the end of the last line with text if the file ends before it.
    pub(super) fn clamp(&self, place: Position) -> Position {
        if !self.line(place.line).is_empty() {
            return place;
        }
        let lines = u32::try_from(self.lines.len()).unwrap_or(u32::MAX).min(place.line);
        let line = (1..=lines).rev().find(|line| !self.line(*line).trim().is_empty()).unwrap_or(1);
        Position { line, column: 1 }.right(self.line(line).chars().count())
    }

    /// Returns the text of a line from a place on.
    pub(super) fn rest_of_line(&self, place: Position) -> &str {
        let line = self.line(place.line);
        let column = (place.column as usize).saturating_sub(1);
        line.char_indices().nth(column).map_or("", |(at, _)| &line[at..])
    }

    /// Returns the text of a span. If it has several lines, returns its part of the first.
    pub(super) fn text_of(&self, span: Span) -> &str {
        let rest = self.rest_of_line(span.start);
        if span.end.line > span.start.line {
            return rest;
        }
        let length = span.end.column.saturating_sub(span.start.column) as usize;
        rest.char_indices().nth(length).map_or(rest, |(at, _)| &rest[..at])
    }

    /// Returns the place of some bytes of a text that the file has at `span`.
    ///
    /// The text is as YAML reads it, so quotes, escapes and folded lines may be missing in it. The
    /// place is exact if the file has the same characters there; otherwise it is the whole span.
    pub(super) fn within(&self, span: Span, text: &str, range: Range<usize>) -> Span {
        let (Some(before), Some(part)) = (text.get(..range.start), text.get(range)) else { return span };
        let part = part.lines().next().unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.chars().rev().take_while(|character| *character != '\n').count();
        let start =
            Position { line: span.start.line.saturating_add(u32::try_from(line).unwrap_or(u32::MAX)), ..span.start };
        let shifts = [column, column + 1];
        let found =
            shifts.iter().map(|shift| start.right(*shift)).find(|place| self.rest_of_line(*place).starts_with(part));
        let exact = |start: Position| Span { start, end: start.right(part.chars().count()) };
        found.filter(|_| !part.is_empty()).map_or(span, exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: (u32, u32), end: (u32, u32)) -> Span {
        let place = |(line, column)| Position { line, column };
        Span { start: place(start), end: place(end) }
    }

    #[test]
    fn lines_end_as_in_yaml() {
        let source = Source::new("a.yaml", "a\nb\r\nc\rd");
        let lines: Vec<&str> = (0..6).map(|line| source.line(line)).collect();
        assert_eq!(lines, ["", "a", "b", "c", "d", ""]);
    }

    #[test]
    fn columns_count_characters() {
        let source = Source::new("a.yaml", "é: äöü # x");
        assert_eq!(source.text_of(span((1, 4), (1, 7))), "äöü");
        assert_eq!(source.rest_of_line(Position { line: 1, column: 99 }), "");
    }

    #[test]
    fn a_part_of_a_text_is_found_in_plain_quoted_and_block_scalars() {
        let source = Source::new("a.yaml", "if: a && b\nif: 'a && b'\nrun: |\n  x\n  a && b\n");
        let within =
            |start, end, text: &str, at: usize| source.within(span(start, end), text, at..at + 2).start.to_string();
        assert_eq!(within((1, 5), (1, 11), "a && b", 2), "1:7");
        assert_eq!(within((2, 5), (2, 13), "a && b", 2), "2:8");
        assert_eq!(within((4, 3), (6, 1), "x\na && b\n", 4), "5:5");
    }

    #[test]
    fn a_part_that_is_written_otherwise_is_placed_at_the_start() {
        let source = Source::new("a.yaml", r#"if: "\x61 && b""#);
        assert_eq!(source.within(span((1, 5), (1, 16)), "a && b", 2..4).start.to_string(), "1:5");
    }
}
