//! A hook, as it is stored and as it is returned.

use onward_store::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::scheme::Scheme;

/// The document of a hook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredHook {
    pub(crate) scheme: Scheme,
    /// The secret. The check of a signature needs it, so it is stored as it is.
    pub(crate) secret: String,
    /// The sorts of events; an empty list takes all.
    pub(crate) events: Vec<String>,
    pub(crate) target: HookTarget,
    pub(crate) created_at: Timestamp,
}

/// The effect of a delivery. One of the fields is set.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HookTarget {
    /// Submits a task whose payload is the body.
    Task(TaskTarget),
    /// Sends a signal whose payload is the body.
    Signal(SignalTarget),
}

/// A task of a hook.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTarget {
    /// The kind.
    pub(crate) kind: String,
    /// The queue. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<String>,
    /// The group. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The urgency, 0 to 255. Default: 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u8>,
}

/// A signal of a hook.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalTarget {
    /// The name of the signal.
    pub(crate) name: String,
    /// The kind of the orchestration.
    pub(crate) kind: String,
    /// A JSON pointer to the key of the orchestration in the body, such as `/data/order`.
    pub(crate) key: String,
}

/// A hook without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HookBody {
    /// The name.
    pub(crate) name: String,
    /// The path to which deliveries are sent.
    path: String,
    /// The scheme of the signature.
    scheme: Scheme,
    /// The sorts of events; an empty list takes all.
    events: Vec<String>,
    /// The effect of a delivery.
    target: HookTarget,
    /// The time of the last change.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl StoredHook {
    pub(crate) fn body(&self, name: String) -> HookBody {
        let Self { scheme, events, target, created_at, .. } = self.clone();
        HookBody { path: format!("/v1/hooks/{name}"), name, scheme, events, target, created_at }
    }
}
