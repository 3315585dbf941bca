//! How tasks are collected into bundles.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{NewTask, TtlFrom, When};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// Has a task collected with others of its queue, kind and group (those without a group together),
/// to be handed over with them as one: a **bundle**, which is a task of that queue, kind and group
/// with an empty payload, and adopts the tasks as its members.
///
/// A bundle is handed over as soon as one of these holds: it has `size` members; `delay` has passed
/// since its first one; `grace` has passed since its newest one; its members' payloads are
/// [`bounds::BUNDLE_BYTES`]. Where members say different things, the newest one's size and grace
/// hold, and none waits longer than its own delay allows.
///
/// A member is [`Blocked`](crate::TaskState::Blocked) until its bundle has ended, and ends with it:
/// completed (with its result), failed or dead as that is, else cancelled. Its priority, key, tags
/// and parent are its own; the bundle is as urgent as its most urgent member, and takes timeout and
/// retry policy from its oldest one.
///
/// ```
/// use std::time::Duration;
/// use onward_store::{Aggregate, NewTask};
///
/// let mut mail = NewTask::new("digest")?;
/// mail.aggregate = Some(Aggregate { size: 100, delay: Duration::from_secs(600), grace: Duration::from_secs(30) });
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aggregate {
    /// How many members are enough: 1 to [`bounds::BUNDLE`].
    pub size: u32,
    /// The longest time since the first member: more than nothing, at most
    /// [`bounds::BUNDLE_DELAY`].
    pub delay: Duration,
    /// The longest time since the newest member: more than nothing, at most `delay`.
    pub grace: Duration,
}

impl Aggregate {
    /// Checks a task that is to be collected so.
    pub(crate) fn check(&self, task: &NewTask) -> Result<()> {
        match self.wrong().or_else(|| wrong_with(task)) {
            None => Ok(()),
            Some((what, remedy)) => Err(Error::invalid(format!(
                "a task of kind `{}` is to be collected in a bundle and has {what}; {remedy}",
                task.kind
            ))),
        }
    }

    fn wrong(&self) -> Option<(String, &'static str)> {
        let Self { size, delay, grace } = *self;
        if size == 0 || size > bounds::BUNDLE {
            return Some((format!("a size of {size}"), "a bundle has 1 to 1000 members"));
        }
        if delay.is_zero() || delay > bounds::BUNDLE_DELAY {
            return Some((format!("a delay of {delay:?}"), "give it more than nothing and at most 30 days"));
        }
        if grace.is_zero() || grace > delay {
            return Some((format!("a grace of {grace:?}"), "give it more than nothing and at most the delay"));
        }
        None
    }
}

/// What is being collected of one queue, kind and group, until it is handed over as a bundle; see
/// [`Aggregate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionRecord {
    /// The queue of its members.
    pub queue: Name,
    /// Their kind.
    pub kind: Name,
    /// Their group; `None` for those without one.
    pub group: Option<Name>,
    /// How many members it has.
    pub members: u32,
    /// How many are enough, as its newest member says.
    pub size: u32,
    /// How many bytes their payloads have.
    pub payload_bytes: u64,
    /// When its first member came.
    pub began_at: Timestamp,
    /// When it is handed over if nothing more comes.
    pub ripe_at: Timestamp,
}

/// Which of what is being collected is listed: that which is handed over next, if nothing more
/// comes, goes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionSelection {
    /// Of this queue; of all by default.
    pub queue: Option<Name>,
    /// At most so many, 1 to [`bounds::PAGE`]; 50 by default.
    pub limit: usize,
}

impl Default for CollectionSelection {
    fn default() -> Self {
        Self { queue: None, limit: 50 }
    }
}

/// What a member cannot have.
fn wrong_with(task: &NewTask) -> Option<(String, &'static str)> {
    let is_now = matches!(task.when, When::Now | When::After(Duration::ZERO));
    let wrong = |what: &str, remedy| Some((what.to_owned(), remedy));
    if !is_now {
        return wrong("a time at which it is due", "it is collected at once; submit it when it is time");
    }
    if !task.depends_on.is_empty() {
        return wrong("dependencies", "it is collected at once; have one of those tasks submit it");
    }
    if task.affinity.is_some() {
        return wrong("an affinity", "a bundle goes to any worker; leave one of the two out");
    }
    if task.deadline.is_some() {
        return wrong("a deadline", "a bundle has none; give it a timeout or a time to live");
    }
    if task.ttl.is_some_and(|ttl| ttl.from == TtlFrom::FirstAttempt) {
        return wrong("a time to live from its first attempt", "it has none of its own; count from the submission");
    }
    None
}
