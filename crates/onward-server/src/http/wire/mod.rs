//! Values on the wire: the parts of bodies and queries.
//!
//! Ids are decimal strings, times RFC 3339 in UTC, and durations texts such as `1h30m`.

mod content;
mod duration;
mod event;
mod limit;
mod new_task;
mod page;
mod queue;
mod reply;
mod retry;
mod schedule;
mod task;
mod task_filter;

pub(crate) use content::Content;
pub(crate) use duration::{DurationText, read_duration};
pub(crate) use event::{EventBody, EventPageBody};
pub(crate) use limit::{LimitBody, LimitChange, LimitPatch, RateBody, pause_scope_text, read_scope, scope_text};
pub(crate) use new_task::{NewTaskBody, check_text, name};
pub(crate) use page::{Page, PageQuery, check_limit};
pub(crate) use queue::{EndedBody, QueueBody, QueueChange};
pub(crate) use reply::{Reply, created, json, no_content, with_status};
pub(crate) use schedule::{ScheduleBody, ScheduleChange, read_policy};
pub(crate) use task::{AttemptBody, TaskBody};
pub(crate) use task_filter::{TaskFilterQuery, parse_states};
