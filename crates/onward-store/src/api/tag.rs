//! Tags: key–value pairs by which a submitter finds a task again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::check_seen;
use crate::bounds;
use crate::text::Shown;

/// The tags of a task: up to 32 keys, each with one value.
///
/// A key has 1 to 64 bytes, without `=` and without the invisible characters that a
/// [`Name`](crate::Name) excludes. A value has up to 256 bytes, may be empty, and may be any text.
/// Tags are cheap to clone, and a task without tags allocates nothing for them.
///
/// ```
/// use onward_store::Tags;
///
/// let tags: Tags = [("customer", "42"), ("region", "eu")].into_iter().collect();
/// assert_eq!(tags.get("customer"), Some("42"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tags(Option<Arc<BTreeMap<String, String>>>);

impl Tags {
    /// Creates an empty set of tags.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Sets a tag and replaces the previous value of its key.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        Arc::make_mut(self.0.get_or_insert_default()).insert(key.into(), value.into());
    }

    /// Removes a tag and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        // A missing key must not copy tags that are shared.
        self.get(key)?;
        let tags = Arc::make_mut(self.0.as_mut()?);
        let value = tags.remove(key);
        if tags.is_empty() {
            self.0 = None;
        }
        value
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns the tags in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|tags| tags.iter()).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the number of tags.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tags| tags.len())
    }

    /// Returns whether there are no tags.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether all tags of `others` are present with the same values.
    #[must_use]
    pub fn contains(&self, others: &Self) -> bool {
        others.iter().all(|(key, value)| self.get(key) == Some(value))
    }

    /// Checks the tags as a store does.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if there are more than 32 tags, or if a key or a value is
    /// out of bounds. The message names the key.
    pub fn check(&self) -> Result<()> {
        if self.len() > bounds::TAGS {
            return Err(Error::invalid(format!(
                "a task has {} tags and may have {}; put what is never searched for in the payload",
                self.len(),
                bounds::TAGS
            )));
        }
        self.iter().try_for_each(|(key, value)| check_tag(key, value))
    }
}

/// Checks one tag: the length of its key and value, and the characters that a key may have.
fn check_tag(key: &str, value: &str) -> Result<()> {
    let wrong = |what: String| Err(Error::invalid(what));
    let beginning: String = key.chars().take(32).collect();
    let shown = Shown(&beginning);
    if key.is_empty() {
        return wrong(format!("the tag with the value {value:?} has an empty key; give it one"));
    }
    if key.len() > bounds::TAG_KEY_BYTES {
        let (bytes, limit) = (key.len(), bounds::TAG_KEY_BYTES);
        return wrong(format!("the tag key `{shown}…` has {bytes} bytes and may have {limit}; shorten it"));
    }
    if key.contains('=') {
        return wrong(format!("the tag key `{shown}` has `=`; leave it out"));
    }
    check_seen("tag key", key)?;
    if value.len() > bounds::TAG_VALUE_BYTES {
        let (bytes, limit) = (value.len(), bounds::TAG_VALUE_BYTES);
        return wrong(format!(
            "the value of the tag `{key}` has {bytes} bytes and may have {limit}; use a digest of it"
        ));
    }
    Ok(())
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Tags {
    /// Collects tags. If a key occurs several times, its last value is kept.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(tags: I) -> Self {
        let tags: BTreeMap<_, _> = tags.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self((!tags.is_empty()).then(|| Arc::new(tags)))
    }
}

impl Serialize for Tags {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(BTreeMap::<String, String>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The part of a listing of tag keys, or of the values of a key, that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagPage {
    /// The entry after which the page starts: the `next` of the previous page. `None` starts at the
    /// first entry.
    pub after: Option<String>,
    /// The largest number of entries, clamped to 1 to 1000. Default: 50.
    pub limit: usize,
}

impl Default for TagPage {
    fn default() -> Self {
        Self { after: None, limit: 50 }
    }
}

/// A value of a tag key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagValue {
    /// The value.
    pub value: String,
    /// The number of tasks that have the value.
    pub tasks: u64,
}

/// A page of the values of a tag key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TagValuePage {
    /// The values that at least one task has, in byte order.
    pub values: Vec<TagValue>,
    /// The value to pass as [`TagPage::after`] for the next page; `None` if this was the last page.
    pub next: Option<String>,
}

impl TagValuePage {
    /// Builds the page of the first `limit` values. A caller passes one value more than the limit,
    /// if there is one, to show that another page follows.
    pub(crate) fn of(mut values: Vec<TagValue>, limit: usize) -> Self {
        let more = values.len() > limit;
        values.truncate(limit);
        let next = values.last().filter(|_| more).map(|last| last.value.clone());
        Self { values, next }
    }
}

/// A page of tag keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TagKeyPage {
    /// The keys that at least one task has, in byte order.
    pub keys: Vec<String>,
    /// The key to pass as [`TagPage::after`] for the next page; `None` if this was the last page.
    pub next: Option<String>,
}

impl TagKeyPage {
    /// Builds the page of the first `limit` keys. A caller passes one key more than the limit, if
    /// there is one, to show that another page follows.
    pub(crate) fn of(mut keys: Vec<String>, limit: usize) -> Self {
        let more = keys.len() > limit;
        keys.truncate(limit);
        let next = keys.last().filter(|_| more).cloned();
        Self { keys, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(key: &str, value: &str) -> bool {
        [(key, value)].into_iter().collect::<Tags>().check().is_err_and(|error| error.is_invalid())
    }

    #[test]
    fn tags_of_nothing_are_no_tags() {
        assert_eq!(Tags::from_iter(Vec::<(String, String)>::new()), Tags::new());
    }

    #[test]
    fn a_key_has_one_value() {
        let mut tags = Tags::new();
        tags.set("a", "1");
        tags.set("a", "2");
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("a", "2")]);
    }

    #[test]
    fn tags_whose_last_was_removed_are_no_tags() {
        let mut tags: Tags = [("a", "1"), ("b", "2")].into_iter().collect();
        assert_eq!((tags.remove("c"), tags.remove("a"), tags.len()), (None, Some("1".to_owned()), 1));
        tags.remove("b");
        assert_eq!(tags, Tags::new());
    }

    #[test]
    fn bounds_are_included() {
        let tags: Tags = (0..32).map(|number| (format!("{number:064}"), "v".repeat(256))).collect();
        tags.check().unwrap();
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let many: Tags = (0..33).map(|number| (number.to_string(), "")).collect();
        assert!(many.check().is_err());
        assert!(wrong("", "v") && wrong(&"k".repeat(65), "v") && wrong("k", &"v".repeat(257)));
        assert!(wrong("a=b", "v") && wrong("a\n", "v"));
    }
}
