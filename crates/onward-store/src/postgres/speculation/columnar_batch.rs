//! Columnar batches: tasks that undergo the same change in one batch, and whose common values are
//! stored once.

use std::sync::Arc;

use crate::api::error::Result;
use crate::bounds;
use crate::model::Task;
use crate::postgres::working_set::task_row::TaskRow;
use crate::postgres::working_set::task_row::is_brief;

/// Tasks with the same values in most columns.
#[derive(Debug)]
pub(in crate::postgres) struct ColumnarBatch {
    /// One of the tasks, without its payload. Columns without a method here have this row's value
    /// for all tasks.
    pub(crate) row: TaskRow,
    tasks: Vec<Arc<Task>>,
}

/// The columns in which the tasks differ, each in the order of the tasks.
impl ColumnarBatch {
    /// Returns the task numbers.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.id.0).collect()
    }

    /// Returns the groups; the empty string stands for none.
    pub(crate) fn groups(&self) -> Vec<&str> {
        self.tasks.iter().map(|task| task.new.group.as_ref().map_or("", |group| group.as_str())).collect()
    }

    /// Returns the unique keys.
    pub(crate) fn keys(&self) -> Vec<Option<&[u8]>> {
        self.tasks.iter().map(|task| task.new.unique.as_ref().map(|unique| unique.key.as_bytes())).collect()
    }

    /// Returns the payloads, which are small enough to be sent again with the end of a task.
    pub(super) fn payloads(&self) -> Vec<&[u8]> {
        self.tasks.iter().map(|task| &task.new.payload[..]).collect()
    }

    /// Returns the sort keys within the sub-queue.
    pub(crate) fn sort_keys(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.sort_key().at).collect()
    }

    /// Returns the due times in microseconds.
    pub(crate) fn run_at(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.run_at.as_microseconds()).collect()
    }

    /// Returns the submission times in microseconds.
    pub(crate) fn submitted_at(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.submitted_at.as_microseconds()).collect()
    }

    /// Returns the results.
    pub(crate) fn results(&self) -> Vec<Option<&[u8]>> {
        self.tasks.iter().map(|task| task.result.as_deref()).collect()
    }

    /// Returns the numbers of the ends; `None` while a task is live.
    pub(super) fn end_numbers(&self) -> Vec<Option<i64>> {
        self.tasks.iter().map(|task| task.end.map(|end| end.number.cast_signed())).collect()
    }
}

/// The tasks of a batch that undergo one kind of change, grouped by similarity.
#[derive(Debug)]
pub(in crate::postgres) struct SimilarTasks {
    is_similar: fn(&Task, &Task) -> bool,
    groups: Vec<Vec<Arc<Task>>>,
    /// The tasks in no group: they are not brief, or the number of groups is at its bound.
    others: Vec<Arc<Task>>,
}

impl SimilarTasks {
    /// Groups new live tasks, which may differ in number, group, key and payload.
    pub(in crate::postgres) fn for_new() -> Self {
        let is_similar = |one: &Task, other: &Task| {
            is_similar(one, other) && one.run_at == other.run_at && one.submitted_at == other.submitted_at
        };
        Self::by(is_similar)
    }

    /// Groups tasks whose attempt begins. Columns that the start does not change may differ.
    pub(in crate::postgres) fn for_started() -> Self {
        Self::by(is_similar_now)
    }

    /// Groups tasks that end, which may differ in number, group, key, payload, earlier times,
    /// result and the number of their end.
    pub(in crate::postgres) fn for_finished() -> Self {
        Self::by(is_similar)
    }

    /// Creates an empty grouping by a predicate, which must be an equivalence.
    fn by(is_similar: fn(&Task, &Task) -> bool) -> Self {
        Self { is_similar, groups: Vec::new(), others: Vec::new() }
    }

    /// Adds a task to the group that it is similar to, or begins one.
    pub(in crate::postgres) fn add(&mut self, task: &Arc<Task>) {
        let task = Arc::clone(task);
        if !is_brief(&task) {
            return self.others.push(task);
        }
        // Consecutive tasks are mostly similar, so the search starts at the newest group.
        let is_like = |group: &Vec<Arc<Task>>| group.first().is_some_and(|one| (self.is_similar)(one, &task));
        match self.groups.iter().rposition(is_like) {
            Some(at) => self.groups[at].push(task),
            None if self.groups.len() < bounds::LOTS => self.groups.push(vec![task]),
            None => self.others.push(task),
        }
    }

    /// Returns the groups that are large enough to gain from it, and all other tasks.
    pub(in crate::postgres) fn split_similar(self) -> Result<(Vec<ColumnarBatch>, Vec<Arc<Task>>)> {
        let (mut similar, mut others) = (Vec::new(), self.others);
        for tasks in self.groups {
            match tasks.first() {
                Some(first) if tasks.len() >= bounds::LOT => {
                    similar.push(ColumnarBatch { row: TaskRow::of(first, false)?, tasks })
                }
                _ => others.extend(tasks),
            }
        }
        Ok((similar, others))
    }
}

/// Returns true if the columns that may change agree, except for the number of the end.
fn is_similar_now(one: &Task, other: &Task) -> bool {
    let now = |task: &Task| {
        let entry = task.end.map(|end| end.entry);
        (task.state, task.session, task.expires_at, task.cancel_requested, task.finished_at, entry)
    };
    let history = |task: &Task| (task.attempts, task.claims, task.lost, task.started_at, task.expiry_before_claim);
    now(one) == now(other) && history(one) == history(other)
}

/// Returns true if two tasks also agree in the columns that a submission sets and that are sent
/// once.
fn is_similar(one: &Task, other: &Task) -> bool {
    let (new, old) = (&one.new, &other.new);
    is_similar_now(one, other)
        && new.queue == old.queue
        && new.kind == old.kind
        && new.affinity == old.affinity
        && new.priority == old.priority
        && new.parent == old.parent
}
