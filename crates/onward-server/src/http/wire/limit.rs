//! Limits.

use std::time::Duration;

use onward_store::{
    ConcurrencyLimit, GroupShare, Limit, LimitRecord, LimitScope, Name, Rate, RateLimit, Scope, SetLimit, bounds,
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::duration::DurationText;
use crate::http::problem::Problem;

/// A limit and its usage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitBody {
    /// The scope: `all`, `queue:NAME`, `kind:NAME`, `group:NAME` or `groups:PREFIX`.
    scope: String,
    /// The largest number of tasks that run at once.
    concurrency: Option<u32>,
    /// The rate at which tasks start.
    rate: Option<RateBody>,
    /// The weight of a group.
    weight: Option<u32>,
    /// The minimum of a group.
    minimum: Option<u32>,
    /// The number of running tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<u64>,
    /// The number of tasks that may start at once by the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
}

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateBody {
    /// The number of starts in each period.
    tasks: u32,
    /// The period.
    per: DurationText,
    /// The largest number of starts at once after a pause. Default: the starts in a second, at
    /// least one.
    burst: Option<u32>,
}

/// A limit to set. Parts that are left out or null are not limited.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitChange {
    /// The largest number of tasks that run at once, 1 to 1000000.
    concurrency: Option<u32>,
    /// The rate at which tasks start.
    rate: Option<RateBody>,
    /// Groups only: the share of the starts of a queue, 1 to 1000.
    weight: Option<u32>,
    /// Groups only: the number of running tasks below which the group goes first.
    minimum: Option<u32>,
}

/// Reads a value that may be null, and is different from one that is missing.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Reads a scope.
pub(crate) fn read_scope(text: &str) -> Result<LimitScope, Problem> {
    let name = |name: &str| Name::new(name).map_err(|error| Problem::from(error).field("scope"));
    match text.split_once(':') {
        None if text == "all" => Ok(LimitScope::All),
        Some(("queue", queue)) => name(queue).map(LimitScope::Queue),
        Some(("kind", kind)) => name(kind).map(LimitScope::Kind),
        Some(("group", group)) => name(group).map(LimitScope::Group),
        Some(("groups", prefix)) => Ok(LimitScope::Groups(prefix.to_owned())),
        _ => Err(Problem::invalid(
            "scope",
            format!("`{text}` is not the scope of a limit"),
            "write all, queue:NAME, kind:NAME, group:NAME or groups:PREFIX",
        )),
    }
}

/// Writes a scope.
pub(crate) fn scope_text(scope: &LimitScope) -> String {
    match scope {
        LimitScope::All => "all".to_owned(),
        LimitScope::Queue(name) => format!("queue:{name}"),
        LimitScope::Kind(name) => format!("kind:{name}"),
        LimitScope::Group(name) => format!("group:{name}"),
        LimitScope::Groups(prefix) => format!("groups:{prefix}"),
    }
}

/// Writes the scope of a pause.
pub(crate) fn pause_scope_text(scope: &Scope) -> String {
    match scope {
        Scope::All => "all".to_owned(),
        Scope::Queue(name) => format!("queue:{name}"),
        Scope::Kind(name) => format!("kind:{name}"),
        Scope::Group(name) => format!("group:{name}"),
    }
}

impl LimitBody {
    pub(crate) fn new(scope: &LimitScope, limit: Limit) -> Self {
        let rate = |rate: Rate| RateBody { tasks: rate.tasks, per: DurationText(rate.per), burst: Some(rate.burst) };
        Self {
            scope: scope_text(scope),
            concurrency: limit.concurrency,
            rate: limit.rate.map(rate),
            weight: limit.weight,
            minimum: limit.minimum,
            running: None,
            tokens: None,
        }
    }
}

impl From<LimitRecord> for LimitBody {
    fn from(record: LimitRecord) -> Self {
        Self { running: record.running, tokens: record.tokens, ..Self::new(&record.scope, record.limit) }
    }
}

impl LimitChange {
    /// Returns the write of the whole limit: a part that is not set is removed.
    pub(crate) fn of(self, scope: LimitScope) -> Result<SetLimit, Problem> {
        let is_of_groups = scope.is_of_groups();
        if !is_of_groups && (self.weight.is_some() || self.minimum.is_some()) {
            let field = if self.weight.is_some() { "weight" } else { "minimum" };
            return Err(Problem::invalid(field, "only limits of groups have it", "leave it out"));
        }
        let share = |share: Option<u32>| is_of_groups.then(|| share.map_or(GroupShare::Unset, GroupShare::Of));
        Ok(SetLimit {
            concurrency: Some(self.concurrency.map_or(ConcurrencyLimit::Unlimited, ConcurrencyLimit::AtMost)),
            rate: Some(self.rate.map_or(RateLimit::Unlimited, RateBody::limit)),
            weight: share(self.weight),
            minimum: share(self.minimum),
            scope,
        })
    }
}

/// A change of a limit. Parts that are left out stay as they are; null removes a part.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitPatch {
    /// The largest number of tasks that run at once, 1 to 1000000.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>)]
    concurrency: Option<Option<u32>>,
    /// The rate at which tasks start.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<RateBody>)]
    rate: Option<Option<RateBody>>,
    /// The share of the starts of a queue, 1 to 1000.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>)]
    weight: Option<Option<u32>>,
    /// The number of running tasks below which the group goes first.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>)]
    minimum: Option<Option<u32>>,
}

impl LimitPatch {
    /// Returns the write of the parts that the body has.
    pub(crate) fn of(self, scope: LimitScope) -> SetLimit {
        let share = |share: Option<u32>| share.map_or(GroupShare::Unset, GroupShare::Of);
        SetLimit {
            concurrency: self
                .concurrency
                .map(|limit| limit.map_or(ConcurrencyLimit::Unlimited, ConcurrencyLimit::AtMost)),
            rate: self.rate.map(|rate| rate.map_or(RateLimit::Unlimited, RateBody::limit)),
            weight: self.weight.map(share),
            minimum: self.minimum.map(share),
            scope,
        }
    }
}

impl RateBody {
    fn limit(self) -> RateLimit {
        let limit = Rate::new(self.tasks, self.per.0);
        RateLimit::AtMost(self.burst.map_or(limit, |burst| limit.burst(burst)))
    }

    /// Returns the number and the period of a rate without a burst.
    pub(crate) fn checked(self) -> Result<(u32, Duration), Problem> {
        if self.burst.is_some() {
            return Err(Problem::invalid("burst", "the retries have no burst", "leave it out"));
        }
        let (least, most) = (bounds::RATE_PER_MINIMUM, bounds::RATE_PER_MAXIMUM);
        if !(1..=bounds::RATE_TASKS).contains(&self.tasks) || !(least..=most).contains(&self.per.0) {
            let (tasks, per) = (self.tasks, self.per.0);
            let detail = format!(
                "the rate is {tasks} in {per:?} and may be 1 to {} in {least:?} to {most:?}",
                bounds::RATE_TASKS
            );
            return Err(Problem::invalid("rate", detail, "choose another rate"));
        }
        Ok((self.tasks, self.per.0))
    }
}

impl LimitBody {
    /// Returns the limit without its usage, which changes by itself.
    pub(crate) fn settings(&self) -> Self {
        let Self { scope, concurrency, rate, weight, minimum, .. } = self;
        let (scope, concurrency, rate) = (scope.clone(), *concurrency, *rate);
        Self { scope, concurrency, rate, weight: *weight, minimum: *minimum, running: None, tokens: None }
    }
}
