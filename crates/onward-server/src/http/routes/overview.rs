//! `/v1/overview`, `/v1/statistics` and `/v1/workers`.

use axum::http::Method;
use onward_store::{KindStatistics, SessionRecord, StoreReads as _, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::request::Call;
use crate::http::wire::{DurationText, EndedBody, LimitBody, Page, QueueBody, Reply, json};

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    vec![
        route(Method::GET, "/v1/overview", viewer, "Returns the state of the store on one page.", overview)
            .returns::<OverviewBody>(200, "The state."),
        route(Method::GET, "/v1/statistics", viewer, "Lists durations and sizes of ended tasks, by kind.", statistics)
            .returns_page::<KindBody>("All kinds."),
        route(Method::GET, "/v1/workers", viewer, "Lists the workers that are registered now.", workers)
            .returns_page::<WorkerBody>("The workers, the oldest first."),
    ]
}

/// The state of a store.
#[derive(Debug, Serialize, ToSchema)]
struct OverviewBody {
    /// The time of the read.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The sort of the store: `memory`, `sqlite` or `postgres`.
    store: &'static str,
    /// The durability of an acknowledgement: `full`, `normal` or `memory`.
    durability: String,
    /// The mode by which claims choose among queues.
    queue_mode: String,
    /// The queues.
    queues: Vec<QueueBody>,
    /// The limits.
    limits: Vec<LimitBody>,
    /// The workers.
    workers: Vec<WorkerBody>,
    /// The kinds.
    kinds: Vec<KindBody>,
}

/// A worker.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerBody {
    /// The number of its session.
    id: String,
    /// The name.
    name: String,
    /// The time at which it was registered.
    #[schema(value_type = String, format = DateTime)]
    opened_at: Timestamp,
    /// The number of tasks that it runs.
    running: u64,
}

impl From<SessionRecord> for WorkerBody {
    fn from(session: SessionRecord) -> Self {
        let SessionRecord { id, name, opened_at, running, .. } = session;
        Self { id: id.to_string(), name, opened_at, running }
    }
}

/// Statistics of a kind, since the store was created.
#[derive(Debug, Serialize, ToSchema)]
struct KindBody {
    /// The kind.
    kind: String,
    /// The number of tasks that ended in each state.
    ended: EndedBody,
    /// The number of attempts of completed tasks.
    attempts: u64,
    /// The time that completed tasks waited, in total.
    wait: DurationText,
    /// The time that the last attempts of completed tasks took, in total.
    run: DurationText,
    /// The longest time of the last attempt of a completed task.
    run_maximum: DurationText,
}

impl From<KindStatistics> for KindBody {
    fn from(kind: KindStatistics) -> Self {
        Self {
            kind: kind.kind.to_string(),
            ended: kind.ended.into(),
            attempts: kind.attempts,
            wait: DurationText(kind.wait),
            run: DurationText(kind.run),
            run_maximum: DurationText(kind.run_maximum),
        }
    }
}

fn page<A, B: Serialize + From<A>>(items: Vec<A>) -> Reply {
    json(&Page { items: bodies::<A, B>(items), next: None })
}

fn bodies<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

async fn overview(call: Call) -> Reply {
    let store = &call.server.store;
    let info = store.info();
    json(&OverviewBody {
        at: store.clock().now(),
        store: info.backend,
        durability: info.durability.to_string(),
        queue_mode: store.queue_mode().await?.to_string(),
        queues: bodies(store.queues().await?),
        limits: bodies(store.limits().await?),
        workers: bodies(store.sessions().await?),
        kinds: bodies(store.statistics().await?),
    })
}

async fn statistics(call: Call) -> Reply {
    page::<_, KindBody>(call.server.store.statistics().await?)
}

async fn workers(call: Call) -> Reply {
    page::<_, WorkerBody>(call.server.store.sessions().await?)
}
