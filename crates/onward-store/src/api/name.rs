//! Names of kinds, queues, groups, schedules and events.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::api::error::{Error, Result};
use crate::bounds;
use crate::text::{self, Shown};

/// The name of a kind, a queue, a group, a schedule or an event.
///
/// A name has 1 to 128 bytes. It has no white space at either end and no invisible characters:
/// controls, direction marks such as U+202E, and characters without a shape such as U+200B.
/// [`is_hidden`](crate::text::is_hidden) lists them.
///
/// A name is cheap to clone. A name of up to 23 bytes is stored without an allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(SmolStr);

impl Name {
    /// Creates a name after checking the text.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if `text` is empty, has more than 128 bytes, has an
    /// invisible character, or has white space at an end. For an invisible character, the message
    /// states its code and position.
    pub fn new(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        check(text)?;
        Ok(Self(text.into()))
    }

    /// Returns the name of the queue of tasks that name no other: `default`.
    #[must_use]
    pub fn default_queue() -> Self {
        Self(SmolStr::new_static("default"))
    }

    /// Returns the name of the queue of orchestrations that were never started.
    pub(crate) fn unstarted_queue() -> Self {
        Self(SmolStr::new_static(bounds::UNSTARTED_QUEUE))
    }

    /// Returns whether the name begins with [`bounds::RESERVED_PREFIX`], which is reserved for
    /// Onward.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(bounds::RESERVED_PREFIX)
    }

    /// Checks that a kind or a queue is not reserved for Onward. `what` names the thing in the
    /// message.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the name begins with [`bounds::RESERVED_PREFIX`].
    pub fn check_own(&self, what: &str) -> Result<()> {
        if self.is_reserved() {
            return Err(Error::invalid(format!(
                "the {what} `{self}` begins with `{}`, which is reserved for Onward itself; choose another name",
                bounds::RESERVED_PREFIX
            )));
        }
        Ok(())
    }

    /// Returns the text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks that a text can be a name: not empty, not too long, visible, and without white space
/// around it.
fn check(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid("a kind, queue or group needs a name; the one given is empty"));
    }
    if text.len() > bounds::NAME_BYTES {
        let beginning: String = text.chars().take(32).collect();
        return Err(Error::invalid(format!(
            "the name `{}…` has {} bytes; the name of a kind, queue or group may have at most {}",
            Shown(&beginning),
            text.len(),
            bounds::NAME_BYTES
        )));
    }
    check_seen("name", text)?;
    if text.trim() != text {
        return Err(Error::invalid(format!("the name `{text}` has white space at its beginning or end; leave it out")));
    }
    Ok(())
}

/// Checks that a text has no invisible character. `what` names the text in the message.
///
/// # Errors
/// [`is_invalid`](Error::is_invalid) with the code and the position of the first such character.
pub(crate) fn check_seen(what: &str, text: &str) -> Result<()> {
    text::hidden_in(text).map_or(Ok(()), |wrong| Err(Error::invalid(format!("the {what} {wrong}"))))
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}
