//! Flow control: how many tasks run at once, and how fast they start.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::queue::ConcurrencyLimit;
use crate::text::Shown;

/// What a limit is on. Limits of different scopes combine: a task starts when every limit that it
/// falls under lets it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope", content = "name")]
pub enum LimitScope {
    /// All tasks of the store together.
    All,
    /// The tasks of one queue together.
    Queue(Name),
    /// The tasks of one kind together.
    Kind(Name),
    /// The tasks of one group together.
    Group(Name),
    /// The tasks of each group whose name begins so, each group by itself, unless a
    /// [`Group`](Self::Group) of that name or a longer beginning has a limit. The empty text is the
    /// beginning of every name.
    Groups(String),
}

impl LimitScope {
    /// Whether it is one group, or groups by the beginning of their names.
    #[must_use]
    pub fn is_of_groups(&self) -> bool {
        matches!(self, Self::Group(_) | Self::Groups(_))
    }
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("everything"),
            Self::Queue(name) => write!(f, "the queue `{name}`"),
            Self::Kind(name) => write!(f, "the kind `{name}`"),
            Self::Group(name) => write!(f, "the group `{name}`"),
            Self::Groups(beginning) => write!(f, "each group `{}*`", Shown(beginning)),
        }
    }
}

/// How fast tasks may start: a token bucket. It holds at most `burst` tokens and gets `tasks` of
/// them every `per`; a task that starts takes one. So in any time the tasks that start are at most
/// `burst` and what that time brings.
///
/// A task starts, here, when a claim hands it to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// How many tasks: 1 to 1 000 000.
    pub tasks: u32,
    /// In what time: 1 ms to 30 days; at most 1 000 000 tasks a second.
    pub per: Duration,
    /// How many may start at once after a pause: 1 to 1 000 000.
    pub burst: u32,
}

impl Rate {
    /// So many tasks in a time, with a burst of as many as start in a second, and one at least.
    #[must_use]
    pub fn new(tasks: u32, per: Duration) -> Self {
        let in_a_second = f64::from(tasks) / per.as_secs_f64().max(f64::MIN_POSITIVE);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within the range of the type"
        )]
        let burst = in_a_second.clamp(1.0, f64::from(crate::bounds::RATE_BURST)) as u32;
        Self { tasks, per, burst }
    }

    /// The same rate with another burst.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }
}

/// A limit on the tasks of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// The most that run at once, in all processes of the store together: 1 to 1 000 000; `None`
    /// for any number. A task that is claimed counts as running.
    pub concurrency: Option<u32>,
    /// How fast they start; `None` for as fast as they can.
    pub rate: Option<Rate>,
    /// Of groups alone: the share of starts in each queue, beside the other groups that have work
    /// there: 1 to 1000; `None` counts as 1.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Of groups alone: while fewer than so many of its tasks run, in all queues together, it goes
    /// before groups that have theirs: 1 to 1 000 000; `None` for none.
    #[serde(default)]
    pub minimum: Option<u32>,
}

impl Limit {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// What is to change about the limit of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLimit {
    /// What the limit is on.
    pub scope: LimitScope,
    /// How many may run at once from now on; `None` leaves that as it is.
    pub concurrency: Option<ConcurrencyLimit>,
    /// How fast they may start from now on; `None` leaves that as it is.
    pub rate: Option<RateLimit>,
    /// The weight from now on; `None` leaves that as it is. For scopes of groups.
    pub weight: Option<GroupShare>,
    /// The minimum from now on; `None` leaves that as it is. For scopes of groups.
    pub minimum: Option<GroupShare>,
}

/// A weight or a minimum of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupShare {
    /// None of its own.
    Unset,
    /// So much.
    Of(u32),
}

impl GroupShare {
    /// How much, if something is set.
    #[must_use]
    pub fn value(self) -> Option<u32> {
        match self {
            Self::Unset => None,
            Self::Of(value) => Some(value),
        }
    }
}

/// How fast tasks may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateLimit {
    /// As fast as they can.
    Unlimited,
    /// At most so fast.
    AtMost(Rate),
}

impl RateLimit {
    /// The rate, if there is one.
    #[must_use]
    pub fn limit(self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::AtMost(rate) => Some(rate),
        }
    }
}

impl SetLimit {
    /// A change of nothing, to be filled in.
    #[must_use]
    pub fn new(scope: LimitScope) -> Self {
        Self { scope, concurrency: None, rate: None, weight: None, minimum: None }
    }

    /// A change of the limit of one group, to be filled in.
    #[must_use]
    pub fn group(name: Name) -> Self {
        Self::new(LimitScope::Group(name))
    }

    /// Limits how many tasks run at once, in all processes together: 1 to 1 000 000.
    #[must_use]
    pub fn concurrency(self, tasks: u32) -> Self {
        Self { concurrency: Some(ConcurrencyLimit::AtMost(tasks)), ..self }
    }

    /// Limits how fast tasks start.
    #[must_use]
    pub fn rate(self, rate: Rate) -> Self {
        Self { rate: Some(RateLimit::AtMost(rate)), ..self }
    }

    /// Gives groups a weight: 1 to 1000. Groups that have work share the starts of their queue in
    /// proportion to their weights; one without a weight has 1, and so have the tasks without a
    /// group, together. As soon as any group has a weight or a minimum, all share so.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight: Some(GroupShare::Of(weight)), ..self }
    }

    /// Guarantees groups how many tasks run at once, as far as there are slots: 1 to 1 000 000. A
    /// group of which fewer run goes before those that have their minimum.
    #[must_use]
    pub fn minimum(self, tasks: u32) -> Self {
        Self { minimum: Some(GroupShare::Of(tasks)), ..self }
    }

    /// Takes every limit of the scope away, weight and minimum too. For a group, what its name
    /// begins with counts then.
    #[must_use]
    pub fn unlimited(self) -> Self {
        let share = self.scope.is_of_groups().then_some(GroupShare::Unset);
        Self {
            concurrency: Some(ConcurrencyLimit::Unlimited),
            rate: Some(RateLimit::Unlimited),
            weight: share,
            minimum: share,
            ..self
        }
    }
}

/// A limit in force, and how far it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRecord {
    /// What it is on.
    #[serde(flatten)]
    pub scope: LimitScope,
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// How many of its tasks run; `None` for [`LimitScope::Groups`], whose groups count each for
    /// itself.
    pub running: Option<u64>,
    /// How many more the rate lets start now; `None` without a rate, and for
    /// [`LimitScope::Groups`].
    pub tokens: Option<u32>,
}
