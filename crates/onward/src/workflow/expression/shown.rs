//! Values and texts as they stand in errors.

use std::fmt;

use onward_store::text::Shown;

use super::value::Value;

/// The most characters of a text that an error shows.
const SHOWN: usize = 64;

/// The beginning of a text, on one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excerpt<'a>(pub(super) &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((end, _)) = self.0.char_indices().nth(SHOWN) else { return Shown(self.0).fmt(f) };
        write!(f, "{}…", Shown(&self.0[..end]))
    }
}

/// A number or another short value, or the type of a longer one.
pub(super) struct Described<'a>(pub(super) &'a Value);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Bool(value) => value.fmt(f),
            Value::Int(number) => number.fmt(f),
            Value::Uint(number) => number.fmt(f),
            Value::Double(number) => f.write_str(&super::number::double_text(*number)),
            Value::Text(text) => write!(f, "the text `{}`", Excerpt(text)),
            other => f.write_str(other.with_article()),
        }
    }
}
