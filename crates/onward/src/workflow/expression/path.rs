//! Places in a value made of lists and maps.

use std::fmt;
use std::sync::Arc;

/// One level of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    /// The value under a key of a map.
    Key(Arc<str>),
    /// The value at an index of a list.
    Index(usize),
}

/// The way from a value to one of its parts, shown as `to[0].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(Vec<PathPart>);

impl Path {
    /// Returns the parts, from the outside in.
    #[must_use]
    pub fn parts(&self) -> &[PathPart] {
        &self.0
    }

    /// Returns the path to a part of what this path leads to.
    pub(super) fn with(&self, part: PathPart) -> Self {
        let mut parts = self.0.clone();
        parts.push(part);
        Self(parts)
    }

    /// Returns the same path, seen from the value around the one where it starts.
    pub(super) fn within(mut self, part: PathPart) -> Self {
        self.0.insert(0, part);
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, part) in self.0.iter().enumerate() {
            match part {
                PathPart::Key(key) if is_name(key) && level == 0 => f.write_str(key)?,
                PathPart::Key(key) if is_name(key) => write!(f, ".{key}")?,
                PathPart::Key(key) => write!(f, "[{key:?}]")?,
                PathPart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns true if a key can be written after a dot.
fn is_name(key: &str) -> bool {
    !key.starts_with(|first: char| first.is_ascii_digit())
        && !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
