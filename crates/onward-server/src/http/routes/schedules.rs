//! `/v1/schedules`.

use axum::http::{Method, StatusCode};
use onward_store::{Firing, Overlap, ScheduleRecord, ScheduleSet, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::Problem;
use crate::http::request::{Call, etag, with_etag};
use crate::http::wire::{Page, Reply, ScheduleBody, ScheduleChange, json, no_content, read_policy, with_status};

/// The number of coming firings if the request sets none.
const COMING: usize = 10;

const IF_MATCH: &str = "The entity tag of the schedule that is changed; 412 if it is another one now.";

pub(super) fn table() -> Vec<Route> {
    let (viewer, developer) = (Access::Needs(Role::Viewer), Access::Needs(Role::Developer));
    let operator = Access::Needs(Role::Operator);
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/v1/schedules", viewer, "Lists the schedules.", list)
            .returns_page::<ScheduleBody>("All schedules."),
        route(get.clone(), "/v1/schedules/{schedule}", viewer, "Returns a schedule and its entity tag.", show)
            .returns::<ScheduleBody>(200, "The schedule."),
        route(Method::PUT, "/v1/schedules/{schedule}", developer, "Creates or changes a schedule.", set)
            .takes::<ScheduleChange>()
            .header("If-Match", IF_MATCH)
            .returns::<ScheduleBody>(200, "The schedule.")
            .returns::<ScheduleBody>(201, "The schedule is new."),
        route(Method::DELETE, "/v1/schedules/{schedule}", developer, "Deletes a schedule; its tasks stay.", remove)
            .header("If-Match", IF_MATCH)
            .returns_nothing("The schedule is gone."),
        route(get, "/v1/schedules/{schedule}/next", viewer, "Returns the coming firings of a schedule.", next)
            .query::<NextQuery>()
            .returns_page::<ComingBody>("The firings, the first one first."),
        route(post.clone(), "/v1/schedules/{schedule}/pause", operator, "Pauses a schedule.", pause)
            .returns::<ScheduleBody>(200, "The schedule."),
        route(post.clone(), "/v1/schedules/{schedule}/resume", operator, "Resumes a schedule.", resume)
            .returns::<ScheduleBody>(200, "The schedule."),
        route(post.clone(), "/v1/schedules/{schedule}/fire", operator, "Fires a schedule now.", fire)
            .takes::<FireBody>()
            .returns::<FiringBody>(200, "The effect."),
        route(post, "/v1/schedules/{schedule}/backfill", operator, "Fires for past moments.", backfill)
            .takes::<BackfillBody>()
            .returns_page::<FiringBody>("The effect for each moment."),
    ]
}

/// The number of coming firings.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct NextQuery {
    /// The number, 1 to 1000. Default: 10.
    n: Option<usize>,
}

/// A coming firing.
#[derive(Debug, Serialize, ToSchema)]
struct ComingBody {
    /// The moment.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The time at which the task is due, which is later by the jitter.
    #[schema(value_type = String, format = DateTime)]
    due: Timestamp,
}

/// A firing by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FireBody {
    /// The effect if the task of the last firing is active, as in the schedule. Default: that of
    /// the schedule.
    overlap: Option<String>,
}

/// Firings for past moments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BackfillBody {
    /// The first moment.
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    /// The time before which all moments are.
    #[schema(value_type = String, format = DateTime)]
    until: Timestamp,
    /// The effect if the task of the last firing is active. Default: `allow`.
    overlap: Option<String>,
}

/// The effect of a firing.
#[derive(Debug, Serialize, ToSchema)]
struct FiringBody {
    /// The moment.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    /// The effect: `submitted`, `skipped`, `pending` or `failed`.
    effect: &'static str,
    /// The id of the task that was submitted, or that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl FiringBody {
    fn new(at: Option<Timestamp>, firing: Firing) -> Self {
        let (effect, task, error) = match firing {
            Firing::Submitted { task } => ("submitted", Some(task.to_string()), None),
            Firing::Skipped { active } => ("skipped", Some(active.to_string()), None),
            Firing::Pending { behind } => ("pending", Some(behind.to_string()), None),
            Firing::Failed { message } => ("failed", None, Some(message)),
        };
        Self { at, effect, task, error }
    }
}

async fn record(call: &Call) -> Result<ScheduleRecord, Problem> {
    Ok(call.server.engine.find_schedule(&call.name("schedule")?).await?)
}

/// Returns the entity tag of a schedule. A firing does not change it.
fn tag(record: &ScheduleRecord) -> String {
    etag(&(&record.schedule, record.paused))
}

fn body(record: ScheduleRecord, status: StatusCode) -> Reply {
    let tag = tag(&record);
    Ok(with_etag(with_status(status, &ScheduleBody::from(record))?, &tag))
}

async fn list(call: Call) -> Reply {
    let items = call.server.engine.schedules().await?.into_iter().map(ScheduleBody::from).collect();
    json(&Page { items, next: None })
}

async fn show(call: Call) -> Reply {
    body(record(&call).await?, StatusCode::OK)
}

/// Adds the guard of the schedule to the changes of the request.
async fn guard(call: &Call) -> Result<(), Problem> {
    call.guard(format!("schedule {}", call.name("schedule")?)).await
}

async fn check_match(call: &Call) -> Result<(), Problem> {
    guard(call).await?;
    if call.header("if-match").is_none() {
        return Ok(());
    }
    match call.server.engine.find_schedule(&call.name("schedule")?).await {
        Ok(record) => call.check_match(Some(&tag(&record))),
        Err(error) if error.is_not_found() => call.check_match(None),
        Err(error) => Err(error.into()),
    }
}

async fn set(call: Call) -> Reply {
    let change: ScheduleChange = call.json()?;
    let schedule = change.of(call.name("schedule")?)?;
    check_match(&call).await?;
    let status = match call.server.engine.set_schedule(schedule).await? {
        ScheduleSet::Created => StatusCode::CREATED,
        ScheduleSet::Changed | ScheduleSet::Unchanged => StatusCode::OK,
    };
    body(record(&call).await?, status)
}

async fn remove(call: Call) -> Reply {
    check_match(&call).await?;
    call.server.engine.delete_schedule(&call.name("schedule")?).await?;
    no_content()
}

async fn next(call: Call) -> Reply {
    let NextQuery { n } = call.query()?;
    let count = n.unwrap_or(COMING);
    if !(1..=onward_store::bounds::FIRINGS).contains(&count) {
        let detail = format!("the number is {count} and may be 1 to {}", onward_store::bounds::FIRINGS);
        return Err(Problem::invalid("n", detail, "ask for fewer firings"));
    }
    let coming = call.server.engine.upcoming(&call.name("schedule")?, count).await?;
    let items = coming.into_iter().map(|firing| ComingBody { at: firing.at, due: firing.due }).collect();
    json(&Page { items, next: None })
}

async fn pause(call: Call) -> Reply {
    guard(&call).await?;
    call.server.engine.pause_schedule(&call.name("schedule")?).await?;
    show(call).await
}

async fn resume(call: Call) -> Reply {
    guard(&call).await?;
    call.server.engine.resume_schedule(&call.name("schedule")?).await?;
    show(call).await
}

async fn fire(call: Call) -> Reply {
    let FireBody { overlap } = call.json()?;
    let overlap = overlap.as_deref().map(|text| read_policy::<Overlap>("overlap", Some(text))).transpose()?;
    let firing = call.server.engine.trigger_schedule(&call.name("schedule")?, overlap).await?;
    json(&FiringBody::new(None, firing))
}

async fn backfill(call: Call) -> Reply {
    let BackfillBody { from, until, overlap } = call.json()?;
    let overlap = match overlap {
        Some(text) => read_policy("overlap", Some(&text))?,
        None => Overlap::Allow,
    };
    let firings = call.server.engine.backfill_schedule(&call.name("schedule")?, from, until, overlap).await?;
    let items = firings.into_iter().map(|(at, firing)| FiringBody::new(Some(at), firing)).collect();
    json(&Page { items, next: None })
}
