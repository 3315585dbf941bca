//! Places in a source.

use std::ops::Range;

/// A range of bytes of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// Returns the span from one byte up to another.
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the span from the start of this one to the end of another.
    pub(super) fn to(self, end: usize) -> Self {
        Self { start: self.start, end }
    }

    /// Returns the text of the span in its source.
    pub(super) fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}
