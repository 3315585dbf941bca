//! The filter arguments of commands on tasks.

use clap::Args;
use onward_store::{Name, Priority, TaskFilter, TaskId, TaskState, Timestamp};

use crate::values::{Tag, parse_past_time, parse_priority, tags_of};

/// Conditions, all of which must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct FilterArguments {
    /// Only tasks in this state; may be given several times
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<TaskState>,
    /// Only tasks of this kind
    #[arg(long)]
    kind: Option<Name>,
    /// Only tasks in this queue
    #[arg(long)]
    queue: Option<Name>,
    /// Only tasks of this group
    #[arg(long)]
    group: Option<Name>,
    /// Only tasks with this key
    #[arg(long)]
    key: Option<String>,
    /// Only tasks with a key that has this prefix
    #[arg(long, value_name = "TEXT")]
    key_prefix: Option<String>,
    /// Only tasks with this tag; may be given several times, and then all of them must match
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    tags: Vec<Tag>,
    /// Only tasks with a tag whose key has this prefix
    #[arg(long, value_name = "TEXT")]
    tag_key_prefix: Option<String>,
    /// Only children of this task
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,
    /// Only items of this batch
    #[arg(long, value_name = "TASK")]
    batch: Option<TaskId>,
    /// Only tasks submitted at or after this time: 1h (ago), 'yesterday 9:00', '2026-11-27 12:00',
    /// 12:00 (the last), 2026-11-27T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    since: Option<Timestamp>,
    /// Only tasks submitted before this time
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    until: Option<Timestamp>,
    /// Only tasks that ended at or after this time
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    finished_since: Option<Timestamp>,
    /// Only tasks that ended before this time
    #[arg(long, value_name = "TIME", value_parser = parse_past_time)]
    finished_until: Option<Timestamp>,
    /// Only tasks of at least this priority (a name or 0 to 255)
    #[arg(long, value_name = "PRIORITY", value_parser = parse_priority)]
    min_priority: Option<Priority>,
    /// Only tasks of at most this priority (a name or 0 to 255)
    #[arg(long, value_name = "PRIORITY", value_parser = parse_priority)]
    max_priority: Option<Priority>,
}

impl FilterArguments {
    /// Returns true if the filter selects every task.
    ///
    /// # Errors
    /// Returns the errors of [`filter`](Self::filter).
    pub(super) fn is_empty(&self) -> anyhow::Result<bool> {
        Ok(self.filter()? == TaskFilter::default())
    }

    /// Returns the filter that the user typed.
    ///
    /// # Errors
    /// Returns a usage error if it contradicts itself.
    pub(crate) fn filter(&self) -> anyhow::Result<TaskFilter> {
        Ok(TaskFilter {
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            parent: self.parent,
            group: self.group.clone(),
            key: self.key.clone(),
            states: self.states.clone(),
            submitted_from: self.since,
            submitted_before: self.until,
            finished_from: self.finished_since,
            finished_before: self.finished_until,
            with_payload: false,
            tags: tags_of(&self.tags)?,
            tag_key_prefix: self.tag_key_prefix.clone(),
            key_prefix: self.key_prefix.clone(),
            priority_from: self.min_priority,
            priority_to: self.max_priority,
            cancel_requested: None,
            batch: self.batch,
            orchestration: None,
        })
    }
}
