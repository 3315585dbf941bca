//! Filters of tasks.

use onward_store::{TaskFilter, TaskState, Timestamp};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::new_task::{check_text, name, task_id};
use crate::http::problem::Problem;

/// A filter of tasks. A task must meet every condition that is set.
#[derive(Debug, Default, Clone, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFilterQuery {
    /// The kind.
    pub(crate) kind: Option<String>,
    /// The queue.
    pub(crate) queue: Option<String>,
    /// The group.
    pub(crate) group: Option<String>,
    /// The states, separated by commas.
    pub(crate) state: Option<String>,
    /// A tag, as `KEY=VALUE`.
    pub(crate) tag: Option<String>,
    /// The unique key.
    pub(crate) key: Option<String>,
    /// The id of the parent.
    pub(crate) parent: Option<String>,
    /// The earliest time of the submission.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) since: Option<Timestamp>,
    /// The time before which the task was submitted.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) until: Option<Timestamp>,
    /// True selects orchestrations and runs, false all other tasks.
    pub(crate) orchestration: Option<bool>,
    /// True returns payloads and results as well, which needs the role operator. Default: false.
    pub(crate) payloads: Option<bool>,
    /// `next` of the page before. Default: the first page.
    pub(crate) cursor: Option<String>,
    /// The largest number of tasks, 1 to 1000. Default: 50.
    pub(crate) limit: Option<usize>,
}

impl TaskFilterQuery {
    /// Returns the filter.
    pub(crate) fn filter(&self) -> Result<TaskFilter, Problem> {
        self.key.as_deref().map_or(Ok(()), |key| check_text("key", key))?;
        self.tag.as_deref().map_or(Ok(()), |tag| check_text("tag", tag))?;
        let text = |field, text: &Option<String>| text.as_deref().map(|text| name(field, text)).transpose();
        Ok(TaskFilter {
            kind: text("kind", &self.kind)?,
            queue: text("queue", &self.queue)?,
            group: text("group", &self.group)?,
            key: self.key.clone(),
            parent: self.parent.as_deref().map(|parent| task_id("parent", parent)).transpose()?,
            states: self.state.as_deref().map_or(Ok(Vec::new()), parse_states)?,
            submitted_from: self.since,
            submitted_before: self.until,
            tags: self.tag.as_deref().map(tag).transpose()?.into_iter().collect(),
            orchestration: self.orchestration,
            with_payload: self.payloads.unwrap_or(false),
            ..TaskFilter::default()
        })
    }
}

/// Reads states that are separated by commas.
pub(crate) fn parse_states(text: &str) -> Result<Vec<TaskState>, Problem> {
    let state = |state: &str| state.trim().parse::<TaskState>().map_err(|error| Problem::from(error).field("state"));
    text.split(',').map(state).collect()
}

fn tag(text: &str) -> Result<(String, String), Problem> {
    let tag = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    tag.ok_or_else(|| Problem::invalid("tag", format!("`{text}` is not a tag"), "write it as KEY=VALUE"))
}
