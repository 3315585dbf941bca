//! Tasks to which the same happens in one batch: what is the same of all of them is written down
//! once.

use std::sync::Arc;

use crate::api::error::Result;
use crate::bounds;
use crate::model::Task;
use crate::postgres::working_set::task_row::TaskRow;
use crate::postgres::working_set::task_row::is_brief;

/// Tasks of which most columns are the same.
#[derive(Debug)]
pub(in crate::postgres) struct ColumnarBatch {
    /// One of them, without its payload: what it has in the columns that are not listed is what all
    /// have there.
    pub(crate) row: TaskRow,
    tasks: Vec<Arc<Task>>,
}

/// What is different of tasks that are alike, column by column.
impl ColumnarBatch {
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.id.0).collect()
    }

    /// Empty for none.
    pub(crate) fn groups(&self) -> Vec<&str> {
        self.tasks.iter().map(|task| task.new.group.as_ref().map_or("", |group| group.as_str())).collect()
    }

    pub(crate) fn keys(&self) -> Vec<Option<&[u8]>> {
        self.tasks.iter().map(|task| task.new.unique.as_ref().map(|unique| unique.key.as_bytes())).collect()
    }

    pub(super) fn payloads(&self) -> Vec<&[u8]> {
        self.tasks.iter().map(|task| &task.new.payload[..]).collect()
    }

    pub(crate) fn sort_keys(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.sort_key().at).collect()
    }

    /// When each was due, in microseconds.
    pub(crate) fn run_at(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.run_at.as_microseconds()).collect()
    }

    /// When each was submitted, in microseconds.
    pub(crate) fn submitted_at(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.submitted_at.as_microseconds()).collect()
    }

    pub(crate) fn results(&self) -> Vec<Option<&[u8]>> {
        self.tasks.iter().map(|task| task.result.as_deref()).collect()
    }

    pub(super) fn end_numbers(&self) -> Vec<Option<i64>> {
        self.tasks.iter().map(|task| task.end.map(|end| end.number.cast_signed())).collect()
    }
}

/// Tasks of a batch, those that are alike together.
#[derive(Debug)]
pub(in crate::postgres) struct SimilarTasks {
    is_similar: fn(&Task, &Task) -> bool,
    groups: Vec<Vec<Arc<Task>>>,
    /// Those that are like few or none.
    others: Vec<Arc<Task>>,
}

impl SimilarTasks {
    /// New live tasks: what differs is number, group, key and payload.
    pub(in crate::postgres) fn for_new() -> Self {
        let is_similar = |one: &Task, other: &Task| {
            is_similar(one, other) && one.run_at == other.run_at && one.submitted_at == other.submitted_at
        };
        Self::by(is_similar)
    }

    /// Tasks of which an attempt begins: what differs is the number, and what does not change.
    pub(in crate::postgres) fn for_started() -> Self {
        Self::by(is_similar_now)
    }

    /// Tasks that end: what differs is number, group, key, payload, times of before, result, and
    /// the number of the end.
    pub(in crate::postgres) fn for_finished() -> Self {
        Self::by(is_similar)
    }

    fn by(is_similar: fn(&Task, &Task) -> bool) -> Self {
        Self { is_similar, groups: Vec::new(), others: Vec::new() }
    }

    pub(in crate::postgres) fn add(&mut self, task: &Arc<Task>) {
        let task = Arc::clone(task);
        if !is_brief(&task) {
            return self.others.push(task);
        }
        // What follows one another is mostly alike.
        let is_like = |group: &Vec<Arc<Task>>| group.first().is_some_and(|one| (self.is_similar)(one, &task));
        match self.groups.iter().rposition(is_like) {
            Some(at) => self.groups[at].push(task),
            None if self.groups.len() < bounds::LOTS => self.groups.push(vec![task]),
            None => self.others.push(task),
        }
    }

    /// Those that are alike, as far as they are many; and the others.
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

/// Whether what may change of two tasks is the same, but for what each end has of its own.
fn is_similar_now(one: &Task, other: &Task) -> bool {
    let now = |task: &Task| {
        let entry = task.end.map(|end| end.entry);
        (task.state, task.session, task.expires_at, task.cancel_requested, task.finished_at, entry)
    };
    let history = |task: &Task| (task.attempts, task.claims, task.lost, task.started_at, task.expiry_before_claim);
    now(one) == now(other) && history(one) == history(other)
}

/// Whether two tasks are of one sort, too.
fn is_similar(one: &Task, other: &Task) -> bool {
    let (new, old) = (&one.new, &other.new);
    is_similar_now(one, other)
        && new.queue == old.queue
        && new.kind == old.kind
        && new.affinity == old.affinity
        && new.priority == old.priority
        && new.parent == old.parent
}
