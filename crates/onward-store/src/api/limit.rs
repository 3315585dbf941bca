//! Limits: how many tasks run at once, and how fast they start.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::queue::ConcurrencyLimit;
use crate::text::Shown;

/// The scope of a limit. Limits of different scopes combine: a task starts only if every limit that
/// applies to it allows the start.
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
    /// The tasks of each group whose name has this prefix, each group separately. A limit of
    /// [`Group`](Self::Group) or of a longer prefix replaces it for a group. The empty prefix
    /// matches every group.
    Groups(String),
}

impl LimitScope {
    /// Returns whether the scope is one group, or groups by the prefix of their names.
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

/// A limit on the speed of starts, as a token bucket. The bucket holds at most `burst` tokens and
/// gains `tasks` tokens every `per`. Each start takes a token.
///
/// In any period, at most `burst` tasks plus the tokens gained in the period start. A task starts,
/// in this sense, when a worker claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// The number of tokens gained every [`per`](Self::per): 1 to 1 000 000.
    pub tasks: u32,
    /// The period: 1 ms to 30 days. The rate is at most 1 000 000 tasks a second.
    pub per: Duration,
    /// The largest number of tasks that start at once after a pause: 1 to 1 000 000.
    pub burst: u32,
}

impl Rate {
    /// Creates a rate of `tasks` tasks in `per`. Its burst is the number of tasks that start in a
    /// second, at least 1.
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

    /// Sets the burst, 1 to 1 000 000.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }
}

/// A limit on the tasks of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// The largest number of tasks that run at once, in all processes of the store together: 1 to 1
    /// 000 000. `None` sets no limit. A claimed task counts as running.
    pub concurrency: Option<u32>,
    /// The speed of starts; `None` sets no limit.
    pub rate: Option<Rate>,
    /// The weight of a group: its share of the starts in each queue, relative to the other groups
    /// that have work there. 1 to 1000; `None` counts as 1. Only scopes of groups have one.
    #[serde(default)]
    pub weight: Option<u32>,
    /// The minimum of a group. While fewer of its tasks run, in all queues together, the group goes
    /// before groups that have their minimum. 1 to 1 000 000; `None` sets none. Only scopes of
    /// groups have one.
    #[serde(default)]
    pub minimum: Option<u32>,
}

impl Limit {
    /// Returns whether nothing is set.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// A change of the limit of a scope. Each field that is `None` leaves its value unchanged.
/// ```
/// use std::time::Duration;
/// use onward_store::{
///     ConcurrencyLimit, LimitScope, MemoryStore, Outcome, Rate, RateLimit, SetLimit, Store, Write,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Each customer has a group `customer-…`: at most 2 tasks at once, and 10 starts a minute.
/// let set = SetLimit {
///     concurrency: Some(ConcurrencyLimit::AtMost(2)),
///     rate: Some(RateLimit::AtMost(Rate::new(10, Duration::from_secs(60)))),
///     ..SetLimit::new(LimitScope::Groups("customer-".into()))
/// };
/// let outcomes = MemoryStore::new().apply(vec![Write::SetLimit(set)]).await?;
/// let Outcome::LimitSet(limit) = outcomes[0] else { panic!("a limit was set") };
/// assert_eq!(limit.concurrency, Some(2));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLimit {
    /// The scope of the limit.
    pub scope: LimitScope,
    /// The number of tasks that run at once.
    pub concurrency: Option<ConcurrencyLimit>,
    /// The speed of starts.
    pub rate: Option<RateLimit>,
    /// The weight. Only for scopes of groups.
    pub weight: Option<GroupShare>,
    /// The minimum. Only for scopes of groups.
    pub minimum: Option<GroupShare>,
}

/// A weight or a minimum of a group, in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupShare {
    /// Removes the value.
    Unset,
    /// Sets the value.
    Of(u32),
}

impl GroupShare {
    /// Returns the value; `None` if the change removes it.
    #[must_use]
    pub fn value(self) -> Option<u32> {
        match self {
            Self::Unset => None,
            Self::Of(value) => Some(value),
        }
    }
}

/// A limit on the speed of starts, in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateLimit {
    /// Removes the limit.
    Unlimited,
    /// Sets the limit.
    AtMost(Rate),
}

impl RateLimit {
    /// Returns the rate; `None` if the change removes it.
    #[must_use]
    pub fn limit(self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::AtMost(rate) => Some(rate),
        }
    }
}

impl SetLimit {
    /// Creates a change without values. A store rejects it until at least one is set.
    #[must_use]
    pub fn new(scope: LimitScope) -> Self {
        Self { scope, concurrency: None, rate: None, weight: None, minimum: None }
    }

    /// Creates a change of the limit of one group, without values.
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

    /// Sets the weight of groups: 1 to 1000.
    ///
    /// Groups that have work share the starts of their queue in proportion to their weights. A
    /// group without a weight counts as 1, and so do all tasks without a group together. As soon as
    /// any group has a weight or a minimum, all groups share in this way.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight: Some(GroupShare::Of(weight)), ..self }
    }

    /// Sets the minimum of groups: the number of tasks that run at once, 1 to 1 000 000, as far as
    /// workers have slots. A group below its minimum goes before those that have theirs.
    #[must_use]
    pub fn minimum(self, tasks: u32) -> Self {
        Self { minimum: Some(GroupShare::Of(tasks)), ..self }
    }

    /// Removes every limit of the scope, including weight and minimum. A limit on the prefix of a
    /// group's name then applies to that group.
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
    /// The scope.
    #[serde(flatten)]
    pub scope: LimitScope,
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// The number of running tasks of the scope. `None` for [`LimitScope::Groups`], because each of
    /// its groups is counted separately.
    pub running: Option<u64>,
    /// The number of tasks that the rate allows to start now. `None` without a rate, and for
    /// [`LimitScope::Groups`].
    pub tokens: Option<u32>,
}
