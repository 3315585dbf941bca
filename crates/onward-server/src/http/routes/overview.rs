//! `/v1/overview`, `/v1/statistics` and `/v1/workers`.

use std::time::Duration;

use axum::http::Method;
use onward_store::{
    KindStatistics, Page as StorePage, PauseRecord, QueueDay, QueueRecord, ScheduleSelection, SessionRecord,
    StoreReads as _, TaskFilter, TaskState, Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::tasks::ReasonBody;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::Problem;
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{
    DurationText, EndedBody, LimitBody, Page, PageQuery, QueueBody, Reply, ScheduleBody, check_limit, json,
    pause_scope_text,
};

/// The number of days of which the overview has the ends.
const DAYS: u32 = 14;

/// The number of schedules of the overview.
const SCHEDULES: usize = 10;

/// The time after which a waiting task is late.
const LATE: Duration = Duration::from_secs(10);

/// The largest number of queues whose reasons the overview has.
const HELD_BACK: usize = 20;

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    vec![
        route(Method::GET, "/v1/overview", viewer, "Returns the state of the store on one page.", overview)
            .returns::<OverviewBody>(200, "The state."),
        route(Method::GET, "/v1/statistics", viewer, "Lists durations and sizes of ended tasks, by kind.", statistics)
            .returns_page::<KindBody>("All kinds."),
        route(Method::GET, "/v1/workers", viewer, "Lists the workers that are registered now.", workers)
            .query::<PageQuery>()
            .returns_page::<WorkerBody>("A page of workers, the oldest first."),
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
    /// The workers, at most 1000, the oldest first.
    workers: Vec<WorkerBody>,
    /// The kinds.
    kinds: Vec<KindBody>,
    /// The pauses in force.
    pauses: Vec<PauseBody>,
    /// The schedules that fire next, at most 10.
    schedules: Vec<ScheduleBody>,
    /// The ends of tasks on each of the last 14 days, by queue, the oldest day first.
    days: Vec<DayBody>,
    /// The queues in which a task has waited for more than 10 seconds, with the reasons of one
    /// waiting task; at most 20.
    held_back: Vec<HeldBackBody>,
}

/// A pause.
#[derive(Debug, Serialize, ToSchema)]
struct PauseBody {
    /// The scope: `all`, `queue:NAME`, `kind:NAME` or `group:NAME`.
    scope: String,
    /// The time at which it ends by itself; null if it has to be resumed.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// The ends of the tasks of a queue on one day.
#[derive(Debug, Serialize, ToSchema)]
struct DayBody {
    /// The first moment of the day in UTC.
    #[schema(value_type = String, format = DateTime)]
    day: Timestamp,
    /// The queue.
    queue: String,
    /// The number of tasks that ended in each state.
    ended: EndedBody,
}

/// A queue in which tasks wait for long.
#[derive(Debug, Serialize, ToSchema)]
struct HeldBackBody {
    /// The queue.
    queue: String,
    /// The id of a waiting task.
    task: String,
    /// The reasons why it waits; none if only tasks before it do.
    reasons: Vec<ReasonBody>,
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
    let queues = store.queues().await?;
    let held_back = held_back(&call, &queues).await?;
    json(&OverviewBody {
        at: store.clock().now(),
        store: info.backend,
        durability: info.durability.to_string(),
        queue_mode: store.queue_mode().await?.to_string(),
        queues: bodies(queues),
        limits: bodies(store.limits().await?),
        workers: bodies(store.sessions().await?.into_iter().take(bounds::PAGE).collect()),
        kinds: bodies(store.statistics().await?),
        pauses: store.pauses().await?.into_iter().map(pause).collect(),
        schedules: bodies(store.schedules(ScheduleSelection::Next { limit: SCHEDULES }).await?),
        days: store.history(DAYS).await?.into_iter().map(day).collect(),
        held_back,
    })
}

fn pause(record: PauseRecord) -> PauseBody {
    PauseBody { scope: pause_scope_text(&record.scope), until: record.until }
}

fn day(day: QueueDay) -> DayBody {
    DayBody { day: day.day, queue: day.queue.to_string(), ended: day.ended.into() }
}

/// Returns the reasons of a waiting task of each queue that has one which waits for long.
async fn held_back(call: &Call, queues: &[QueueRecord]) -> Result<Vec<HeldBackBody>, Problem> {
    let store = &call.server.store;
    let late = store.clock().now().minus(LATE);
    let is_late = |queue: &&QueueRecord| queue.oldest_waiting.is_some_and(|oldest| oldest <= late);
    let mut held = Vec::new();
    for queue in queues.iter().filter(is_late).take(HELD_BACK) {
        let states = vec![TaskState::Waiting];
        let filter = TaskFilter { queue: Some(queue.name.clone()), states, ..TaskFilter::default() };
        let page = store.task_ids(filter, StorePage { before: None, limit: 1 }).await?;
        let Some(task) = page.tasks.first().copied() else { continue };
        let reasons = store.why(task).await?.unwrap_or_default();
        let reasons = reasons.iter().map(ReasonBody::from).collect();
        held.push(HeldBackBody { queue: queue.name.to_string(), task: task.to_string(), reasons });
    }
    Ok(held)
}

async fn statistics(call: Call) -> Reply {
    page::<_, KindBody>(call.server.store.statistics().await?)
}

/// The position of a worker in the list.
type WorkerCursor = (Timestamp, String);

async fn workers(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let after = query.cursor.as_deref().map(decode_cursor::<WorkerCursor>).transpose()?;
    let limit = check_limit(query.limit)?;
    let place = |worker: &SessionRecord| (worker.opened_at, worker.id.to_string());
    let mut workers = call.server.store.sessions().await?;
    workers.retain(|worker| after.as_ref().is_none_or(|after| place(worker) > *after));
    workers.sort_by_key(place);
    let has_more = workers.len() > limit;
    workers.truncate(limit);
    let next = workers.last().filter(|_| has_more).map(|last| encode_cursor(&place(last)));
    json(&Page { items: bodies::<_, WorkerBody>(workers), next })
}
