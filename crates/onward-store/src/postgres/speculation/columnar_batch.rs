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

    pub(crate) fn places(&self) -> Vec<i64> {
        self.tasks.iter().map(|task| task.place().at).collect()
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
    is_alike: fn(&Task, &Task) -> bool,
    lots: Vec<Vec<Arc<Task>>>,
    /// Those that are like few or none.
    others: Vec<Arc<Task>>,
}

impl SimilarTasks {
    /// New live tasks: what differs is number, group, key and payload.
    pub(in crate::postgres) fn new_ones() -> Self {
        let is_alike = |one: &Task, other: &Task| {
            is_alike(one, other) && one.run_at == other.run_at && one.submitted_at == other.submitted_at
        };
        Self::by(is_alike)
    }

    /// Tasks of which an attempt begins: what differs is the number, and what does not change.
    pub(in crate::postgres) fn started_ones() -> Self {
        Self::by(is_alike_now)
    }

    /// Tasks that end: what differs is number, group, key, payload, times of before, result, and
    /// the number of the end.
    pub(in crate::postgres) fn finished_ones() -> Self {
        Self::by(is_alike)
    }

    fn by(is_alike: fn(&Task, &Task) -> bool) -> Self {
        Self { is_alike, lots: Vec::new(), others: Vec::new() }
    }

    pub(in crate::postgres) fn add(&mut self, task: &Arc<Task>) {
        let task = Arc::clone(task);
        if !is_brief(&task) {
            return self.others.push(task);
        }
        // What follows one another is mostly alike.
        let is_like = |lot: &Vec<Arc<Task>>| lot.first().is_some_and(|one| (self.is_alike)(one, &task));
        match self.lots.iter().rposition(is_like) {
            Some(at) => self.lots[at].push(task),
            None if self.lots.len() < bounds::LOTS => self.lots.push(vec![task]),
            None => self.others.push(task),
        }
    }

    /// Those that are alike, as far as they are many; and the others.
    pub(in crate::postgres) fn split_similar(self) -> Result<(Vec<ColumnarBatch>, Vec<Arc<Task>>)> {
        let (mut alike, mut others) = (Vec::new(), self.others);
        for tasks in self.lots {
            match tasks.first() {
                Some(first) if tasks.len() >= bounds::LOT => {
                    alike.push(ColumnarBatch { row: TaskRow::of(first, false)?, tasks })
                }
                _ => others.extend(tasks),
            }
        }
        Ok((alike, others))
    }
}

/// Whether what may change of two tasks is the same, but for what each end has of its own.
fn is_alike_now(one: &Task, other: &Task) -> bool {
    let now = |task: &Task| {
        let entry = task.end.map(|end| end.entry);
        (task.state, task.session, task.expires_at, task.cancel_requested, task.finished_at, entry)
    };
    let history = |task: &Task| (task.attempts, task.claims, task.lost, task.started_at, task.expiry_before_claim);
    now(one) == now(other) && history(one) == history(other)
}

/// Whether two tasks are of one sort, too.
fn is_alike(one: &Task, other: &Task) -> bool {
    let (new, old) = (&one.new, &other.new);
    is_alike_now(one, other)
        && new.queue == old.queue
        && new.kind == old.kind
        && new.affinity == old.affinity
        && new.priority == old.priority
        && new.parent == old.parent
}
