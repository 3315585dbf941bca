//! The change set: the effects of writes as rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::orchestration::{Message, encode_message};
use crate::api::output::{OutputPiece, OutputStream};
use crate::api::store::{EndedCounts, KindStatistics};
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::bounds::{HISTORY_DAYS, RESENT_BYTES};
use crate::model::{Document, DocumentId, DocumentTable, Output, State, TakenKey, Task};
use crate::postgres::speculation::columnar_batch::{ColumnarBatch, SimilarTasks};
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::decision::SentTasks;
use crate::postgres::working_set::small_state::{SmallStateChanges, SmallStateRow};
use crate::postgres::working_set::task_row::{ChangedRow, InstanceRow, TaskRow};
use crate::rules::history::first_day;
use crate::rules::output::cut_to;

/// The holder of a unique key, and the time until which the key stays taken after the holder's end.
#[derive(Debug, Clone)]
pub(crate) struct KeyRow {
    /// The kind, within which keys are unique.
    pub(crate) kind: String,
    /// The key.
    pub(crate) key: Vec<u8>,
    /// The holder.
    pub(crate) task: i64,
    /// The time in microseconds; `None` while the holder is live.
    pub(crate) until: Option<i64>,
}

/// A chunk of consecutive events in an orchestration's history.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    /// The orchestration.
    pub(crate) task: i64,
    /// The number of the first event.
    pub(crate) first: i64,
    /// The number of events.
    pub(crate) events: i64,
    /// The encoded events.
    pub(crate) chunk: Bytes,
}

/// A piece of the output of a task.
#[derive(Debug, Clone)]
pub(crate) struct OutputRow {
    pub(crate) task: i64,
    pub(crate) piece: OutputPiece,
}

#[cfg(feature = "sqlite")]
impl OutputRow {
    /// The columns that order the rows.
    pub(crate) fn key(&self) -> (i64, i16, i64) {
        (self.task, self.piece.stream.code().into(), self.piece.at.cast_signed())
    }

    /// Returns a row as the table has it.
    pub(crate) fn read((task, stream, at): (i64, i16, i64), length: u32, bytes: Bytes) -> Result<Self> {
        let stream = OutputStream::from_code(stream.into()).ok_or_else(|| {
            crate::api::error::Error::corrupt(format!(
                "a piece of the output of task {task} is of no known stream; restore a backup"
            ))
        })?;
        Ok(Self { task, piece: OutputPiece { stream, at: at.cast_unsigned(), length, bytes } })
    }
}

/// An unread message for an orchestration.
#[derive(Debug, Clone)]
pub(crate) struct MessageRow {
    /// The orchestration.
    pub(crate) task: i64,
    /// The message's number, counted per orchestration from 1.
    pub(crate) number: i64,
    /// The encoded message.
    pub(crate) body: Vec<u8>,
}

/// A document as it is now.
#[derive(Debug, Clone)]
pub(crate) struct DocumentRow {
    pub(crate) collection: Name,
    pub(crate) key: String,
    pub(crate) document: Arc<Document>,
}

/// The number of tasks of a queue that ended on a day.
#[derive(Debug, Clone)]
pub(crate) struct DayCounts {
    /// The day, counted from 1970-01-01 UTC.
    pub(crate) day: i64,
    /// The queue.
    pub(crate) queue: String,
    /// The tasks by final state; an addition to the counts in the store.
    pub(crate) ended: EndedCounts,
}

/// The rows to write for a batch. Columnar fields have the tasks that many others resemble.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    /// New live tasks.
    pub(crate) live: Vec<TaskRow>,
    /// Live tasks that changed only by the start of an attempt.
    pub(in crate::postgres) started: Vec<ChangedRow>,
    /// Live tasks whose submission is unchanged.
    pub(in crate::postgres) changed: Vec<ChangedRow>,
    /// Orchestrations that continue, and that changed only in their instance.
    pub(in crate::postgres) advanced: Vec<InstanceRow>,
    /// Live tasks in which anything may have changed.
    pub(in crate::postgres) rewritten: Vec<TaskRow>,
    /// Tasks that have just ended, and whose submission is unchanged.
    pub(in crate::postgres) finished: Vec<ChangedRow>,
    /// Other ended tasks: new ones, and those in which anything may have changed.
    pub(crate) ended: Vec<TaskRow>,
    /// The columnar batches that belong to `live`, `started` and `finished`.
    pub(in crate::postgres) live_columnar: Vec<ColumnarBatch>,
    pub(in crate::postgres) started_columnar: Vec<ColumnarBatch>,
    pub(in crate::postgres) finished_columnar: Vec<ColumnarBatch>,
    /// The tasks in `rewritten` that had ended before.
    pub(in crate::postgres) revived: Vec<i64>,
    /// The tasks in `history` that were live before.
    pub(crate) moved: Vec<i64>,
    /// Live tasks to delete.
    pub(in crate::postgres) removed_live: Vec<i64>,
    /// Ended tasks to delete.
    pub(in crate::postgres) removed_ended: Vec<i64>,
    /// Events that were appended to histories.
    pub(crate) turns: Vec<TurnRow>,
    /// Orchestrations whose old history is deleted before events are appended.
    pub(in crate::postgres) dropped_turns: Vec<i64>,
    /// Output that was appended.
    pub(crate) output: Vec<OutputRow>,
    /// Tasks whose output is to be forgotten first.
    pub(in crate::postgres) dropped_output: Vec<i64>,
    /// Tasks of whose output, by stream, the middle is to be forgotten up to an offset.
    pub(in crate::postgres) cut_output: Vec<(i64, OutputStream, u64)>,
    /// New messages.
    pub(crate) messages: Vec<MessageRow>,
    /// Orchestrations, each with the number up to which its messages were consumed.
    pub(in crate::postgres) taken_messages: Vec<(i64, i64)>,
    /// Tags to delete, of tasks that stay.
    pub(in crate::postgres) gone_tags: Vec<(i64, Vec<u8>)>,
    /// Tags to insert.
    pub(crate) tags: Vec<(i64, Vec<u8>)>,
    /// Unique keys with a new holder or time.
    pub(crate) keys: Vec<KeyRow>,
    /// Unique keys to delete.
    pub(in crate::postgres) freed_keys: Vec<(String, Vec<u8>)>,
    /// New dependencies: a task and the one that waits for it.
    pub(crate) waits: Vec<(i64, i64)>,
    /// Dependencies that have ended.
    pub(in crate::postgres) ended_waits: Vec<(i64, i64)>,
    /// New items of batches: an item and its batch.
    pub(crate) batch_items: Vec<(i64, i64)>,
    /// Items that have left their batch.
    pub(in crate::postgres) ended_batch_items: Vec<i64>,
    /// New rows of the small state.
    pub(crate) items: Vec<SmallStateRow>,
    /// Rows of the small state that already exist.
    pub(in crate::postgres) changed_small_state: Vec<SmallStateRow>,
    /// Rows of the small state to delete, by sort and name.
    pub(in crate::postgres) removed_small_state: Vec<(String, String)>,
    pub(crate) documents: Vec<DocumentRow>,
    pub(in crate::postgres) removed_documents: Vec<DocumentId>,
    /// The number of documents of collections whose number has changed.
    pub(in crate::postgres) collections: Vec<(String, i64)>,
    /// Entries of the log: the entry's number, the next task's number, and the changes.
    pub(crate) log: Vec<(i64, i64, String)>,
    /// The first entry of the log to keep; 0 to delete none.
    pub(crate) forget_before: i64,
    /// Additions to the statistics of kinds.
    pub(crate) statistics: Vec<KindStatistics>,
    /// Additions to the daily counts.
    pub(crate) days: Vec<DayCounts>,
    /// The first day to keep, if it has changed.
    pub(crate) first_day: Option<i64>,
    /// The store's counters before and after the writes.
    pub(in crate::postgres) counters_before: Counters,
    pub(crate) counters: Counters,
}

impl ChangeSet {
    /// Returns the difference between two states, without what was already `written`.
    pub(in crate::postgres) fn between(before: &State, after: &State, written: &SentTasks) -> Result<Self> {
        let mut change_set = Self::default();
        change_set.tasks(before, after, written)?;
        change_set.keys(before, after);
        change_set.links(before, after);
        change_set.counts(before, after);
        change_set.documents(before.documents.table(), after.documents.table());
        let SmallStateChanges { set, changed, gone } = SmallStateChanges::between(before, after)?;
        (change_set.items, change_set.changed_small_state, change_set.removed_small_state) = (set, changed, gone);
        Ok(change_set)
    }

    /// Returns true if the change set only appends events to histories.
    pub(in crate::postgres) fn only_appends(&self) -> bool {
        // No `..`: a new field must be classified here.
        let Self {
            advanced: _,
            turns,
            live,
            started,
            changed,
            rewritten,
            finished,
            ended,
            live_columnar,
            started_columnar,
            finished_columnar,
            revived,
            moved,
            removed_live,
            removed_ended,
            dropped_turns,
            output,
            dropped_output,
            cut_output,
            messages,
            taken_messages,
            gone_tags,
            tags,
            keys,
            freed_keys,
            waits,
            ended_waits,
            batch_items,
            ended_batch_items,
            items,
            changed_small_state,
            removed_small_state,
            documents,
            removed_documents,
            collections,
            log,
            forget_before,
            statistics,
            days,
            first_day,
            counters_before: before,
            counters: after,
        } = self;
        let tasks = [live.len(), rewritten.len(), ended.len(), started.len() + changed.len() + finished.len()];
        let similar = [live_columnar.len(), started_columnar.len(), finished_columnar.len()];
        let gone = [revived.len(), moved.len(), removed_live.len(), removed_ended.len(), dropped_turns.len()];
        let tags = gone_tags.len() + tags.len();
        let await_in_order = [messages.len(), taken_messages.len(), tags, keys.len(), freed_keys.len(), log.len()];
        let links = [waits.len(), ended_waits.len(), batch_items.len(), ended_batch_items.len()];
        let items = items.len() + changed_small_state.len() + removed_small_state.len();
        let output = output.len() + dropped_output.len() + cut_output.len();
        let documents = documents.len() + removed_documents.len() + collections.len();
        let rest = [items, output, statistics.len(), days.len(), documents];
        let others: [&[usize]; 6] = [&tasks, &similar, &gone, &await_in_order, &links, &rest];
        let is_all = others.concat().iter().all(|rows| *rows == 0) && *forget_before == 0 && first_day.is_none();
        is_all && !turns.is_empty() && after == before
    }

    /// Returns true if the small state has changed.
    pub(in crate::postgres) fn changes_small_state(&self) -> bool {
        !self.items.is_empty() || !self.changed_small_state.is_empty() || !self.removed_small_state.is_empty()
    }

    /// Compares the tasks of two states. Both are sorted by number, so one pass over them is
    /// enough.
    fn tasks(&mut self, before: &State, after: &State, written: &SentTasks) -> Result<()> {
        let mut candidates = ColumnarCandidates::new();
        let mut before = before.tasks.shared().peekable();
        for task in after.tasks.shared() {
            while let Some(gone) = before.next_if(|old| old.id < task.id) {
                self.removed(written.get(gone.id).unwrap_or(gone));
            }
            let old = before.next_if(|old| old.id == task.id);
            // Unchanged tasks share their allocation, and most of what is loaded is unchanged.
            if old.is_some_and(|old| Arc::ptr_eq(old, task)) {
                continue;
            }
            let sent = written.get(task.id);
            match sent.or(old) {
                Some(old) if Arc::ptr_eq(old, task) => {}
                // A second decision makes equal copies of the tasks that were sent.
                Some(old) if sent.is_some() && old == task => {}
                old => self.task(old.map(Arc::as_ref), task, &mut candidates)?,
            }
        }
        before.for_each(|gone| self.removed(written.get(gone.id).unwrap_or(gone)));
        self.remove_sent(after, written);
        self.add_columnar(candidates)
    }

    /// Deletes a task from the table that it is in.
    fn removed(&mut self, task: &Task) {
        let removed = if task.state.is_ended() { &mut self.removed_ended } else { &mut self.removed_live };
        removed.push(task.id.0);
        self.dropped_output.extend(task.output.is_some().then_some(task.id.0));
        if task.instance.is_some() {
            self.dropped_turns.push(task.id.0);
            self.taken_messages.push((task.id.0, i64::MAX));
        }
    }

    /// Deletes tasks that were sent as new rows and do not exist after all.
    fn remove_sent(&mut self, after: &State, written: &SentTasks) {
        for task in written.new_tasks().filter(|task| after.tasks.share(task.id).is_none()) {
            self.removed(task);
        }
    }

    /// Adds a task if its end is its only change. Returns true if it did.
    pub(super) fn accept_end(
        &mut self,
        old: &Task,
        task: &Arc<Task>,
        candidates: &mut ColumnarCandidates,
    ) -> Result<bool> {
        let is_end =
            !old.state.is_ended() && task.state.is_ended() && task.instance.is_none() && has_same_submission(old, task);
        let is_end = is_end && has_same_output(old, task);
        if is_end {
            self.changed_task(old, task, candidates)?;
        }
        Ok(is_end)
    }

    /// Adds a new task if it is live and no orchestration. Returns true if it did.
    pub(super) fn accept_new(&mut self, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<bool> {
        let is_plain = !task.state.is_ended() && task.instance.is_none() && task.output.is_none();
        if is_plain {
            self.new_task(task, candidates)?;
        }
        Ok(is_plain)
    }

    /// Adds a new or changed task with the cheapest sort of row that covers its change.
    fn task(&mut self, old: Option<&Task>, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        self.turns(old, task);
        self.output(old, task);
        self.messages(old, task)?;
        self.changed_tags(old, task);
        match old {
            None => self.new_task(task, candidates),
            Some(old) if old.state.is_ended() || !has_same_submission(old, task) => self.rewritten_task(old, task),
            Some(old) if has_same_instance(old, task) => self.changed_task(old, task, candidates),
            Some(old) => self.turned_task(old, task),
        }
    }

    /// Adds a task whose submission is unchanged and whose instance has changed.
    fn turned_task(&mut self, old: &Task, task: &Task) -> Result<()> {
        match &task.instance {
            Some(instance) if only_advances(old, task) => self.advanced.push(InstanceRow::of(task.id, instance)?),
            Some(instance) if old.instance.is_some() && !task.state.is_ended() => {
                self.changed.push(ChangedRow::of(task)?.and_instance(instance)?);
            }
            _ => self.rewritten_task(old, task)?,
        }
        Ok(())
    }

    /// Adds a new task and its tags.
    fn new_task(&mut self, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        self.tags.extend(task.new.tags.iter().map(|(key, value)| (task.id.0, tag(key, value))));
        if task.state.is_ended() {
            self.ended.push(TaskRow::of(task, true)?);
        } else {
            candidates.new.add(task);
        }
        Ok(())
    }

    /// Adds a task whose submission and instance are unchanged.
    fn changed_task(&mut self, old: &Task, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        if task.retained_until().is_some() {
            // The narrow rows of ended tasks lack the column for the time until which a task is
            // retained.
            self.rewritten_task(old, task)?;
        } else if task.state.is_ended() && task.new.payload.len() <= RESENT_BYTES {
            candidates.finished.add(task);
        } else if task.state.is_ended() {
            self.finished.push(ChangedRow::of(task)?);
        } else if only_starts(old, task) {
            candidates.started.add(task);
        } else {
            self.changed.push(ChangedRow::of(task)?);
        }
        Ok(())
    }

    /// Makes columnar batches of similar tasks, and single rows of all others.
    pub(in crate::postgres) fn add_columnar(&mut self, candidates: ColumnarCandidates) -> Result<()> {
        let rewritten = |task: &Task| TaskRow::of(task, true);
        self.live_columnar = split(candidates.new, &mut self.live, rewritten)?;
        self.started_columnar = split(candidates.started, &mut self.started, ChangedRow::of)?;
        self.finished_columnar = split(candidates.finished, &mut self.finished, ChangedRow::of)?;
        Ok(())
    }

    /// Adds a whole row, without the payload if that is unchanged.
    fn rewritten_task(&mut self, old: &Task, task: &Task) -> Result<()> {
        let row = TaskRow::of(task, !is_same(&old.new.payload, &task.new.payload))?;
        let had_ended = old.state.is_ended();
        if task.state.is_ended() {
            self.moved.extend((!had_ended).then_some(task.id.0));
            self.ended.push(row);
        } else {
            self.revived.extend(had_ended.then_some(task.id.0));
            self.rewritten.push(row);
        }
        Ok(())
    }

    /// Adds the events that the batch appended to a history.
    fn turns(&mut self, old: Option<&Task>, task: &Task) {
        let Some(instance) = &task.instance else { return };
        let before = old.and_then(|old| old.instance.as_deref());
        let begins_again = before.is_some_and(|before| before.generation != instance.generation);
        self.dropped_turns.extend(begins_again.then_some(task.id.0));
        // A loaded instance has no chunks, so all chunks were appended since.
        self.turns.extend(instance.chunks.iter().map(|chunk| TurnRow {
            task: task.id.0,
            first: chunk.first.cast_signed(),
            events: chunk.events.cast_signed(),
            chunk: chunk.chunk.clone(),
        }));
    }

    /// Adds the pieces that were appended to a task's output, and the cut that follows from them.
    fn output(&mut self, old: Option<&Task>, task: &Task) {
        let Some(output) = &task.output else { return };
        let before = old.and_then(|old| old.output.as_deref());
        let is_of_another = before.is_some_and(|before| before.claim != output.claim);
        self.dropped_output.extend(is_of_another.then_some(task.id.0));
        // A loaded task has no pieces: all of them were appended since.
        self.output.extend(output.pieces.iter().map(|piece| OutputRow { task: task.id.0, piece: piece.clone() }));
        let before = before.filter(|_| !is_of_another);
        for stream in OutputStream::ALL {
            let cut = |output: &Output| cut_to(output.end(stream));
            let cut_before = before.and_then(cut);
            let cut = cut(output).filter(|cut| before.is_some() && Some(*cut) != cut_before);
            self.cut_output.extend(cut.map(|cut| (task.id.0, stream, cut)));
        }
    }

    /// Adds the changes of a mailbox.
    fn messages(&mut self, old: Option<&Task>, task: &Task) -> Result<()> {
        let Some(instance) = &task.instance else { return Ok(()) };
        let before = old.and_then(|old| old.instance.as_deref());
        let (received, taken) = before.map_or((0, 0), |before| (before.received, before.taken));
        self.taken_messages.extend((instance.taken > taken).then_some((task.id.0, instance.taken.cast_signed())));
        // Messages up to `received` are rows already.
        self.put_messages(task.id.0, instance.mailbox.iter().filter(|message| message.number > received))
    }

    /// Adds new messages of an orchestration.
    fn put_messages<'a>(&mut self, task: i64, messages: impl IntoIterator<Item = &'a Message>) -> Result<()> {
        for message in messages {
            self.messages.push(MessageRow {
                task,
                number: message.number.cast_signed(),
                body: encode_message(message)?,
            });
        }
        Ok(())
    }

    /// Adds the changes of an orchestration's tags. Tags of other tasks never change.
    fn changed_tags(&mut self, old: Option<&Task>, task: &Task) {
        let Some(old) = old.filter(|old| task.instance.is_some() && old.new.tags != task.new.tags) else { return };
        let only_of = |one: &Task, other: &Task| -> Vec<(i64, Vec<u8>)> {
            let is_of_both = |key: &str, value: &str| other.new.tags.get(key) == Some(value);
            let tags = one.new.tags.iter().filter(|(key, value)| !is_of_both(key, value));
            tags.map(|(key, value)| (one.id.0, tag(key, value))).collect()
        };
        self.gone_tags.extend(only_of(old, task));
        self.tags.extend(only_of(task, old));
    }

    /// Compares the unique keys of two states.
    fn keys(&mut self, before: &State, after: &State) {
        for (key, taken) in &after.keys.taken {
            let TakenKey { by, until } = *taken;
            if before.keys.taken.get(key) != Some(taken) {
                let until = until.map(Timestamp::as_microseconds);
                let (kind, key) = (key.0.to_string(), key.1.clone().into_bytes());
                self.keys.push(KeyRow { kind, key, task: by.0, until });
            }
        }
        let freed = before.keys.taken.keys().filter(|key| !after.keys.taken.contains_key(*key));
        self.freed_keys = freed.map(|(kind, key)| (kind.to_string(), key.clone().into_bytes())).collect();
    }

    /// Adds the documents that differ. Unchanged ones share their allocation, so the comparison
    /// reads no content.
    fn documents(&mut self, before: &Arc<DocumentTable>, after: &Arc<DocumentTable>) {
        if Arc::ptr_eq(before, after) {
            return;
        }
        for ((collection, key), document) in &after.by_id {
            let id = (collection.clone(), key.clone());
            if before.by_id.get(&id).is_none_or(|old| !Arc::ptr_eq(old, document)) {
                self.documents.push(DocumentRow { collection: id.0, key: id.1, document: Arc::clone(document) });
            }
        }
        let removed = before.by_id.keys().filter(|id| !after.by_id.contains_key(*id));
        self.removed_documents = removed.cloned().collect();
        let names: BTreeSet<&Name> = before.sizes.keys().chain(after.sizes.keys()).collect();
        for collection in names {
            let (old, new) = (before.sizes.get(collection), after.sizes.get(collection));
            if old != new {
                self.collections.push((name(collection), new.copied().unwrap_or_default().cast_signed()));
            }
        }
    }

    /// Compares the dependencies and the items of batches of two states.
    fn links(&mut self, before: &State, after: &State) {
        let pairs = |pairs: Vec<&(TaskId, TaskId)>| pairs.into_iter().map(|(one, other)| (one.0, other.0)).collect();
        let (old, new) = (&before.dependencies.dependents, &after.dependencies.dependents);
        self.waits = pairs(new.difference(old).collect());
        self.ended_waits = pairs(old.difference(new).collect());
        let batches = |state: &State| -> BTreeSet<(TaskId, TaskId)> {
            state.batches.batch_of.iter().map(|(item, batch)| (*item, *batch)).collect()
        };
        let (old, new) = (batches(before), batches(after));
        self.batch_items = pairs(new.difference(&old).collect());
        self.ended_batch_items = old.difference(&new).map(|(item, _)| item.0).collect();
    }

    /// Adds statistics, daily counts and the store's counters.
    fn counts(&mut self, before: &State, after: &State) {
        self.statistics = after.statistics.values().cloned().collect();
        let days = after.daily_counts.days.iter().filter(|(_, ended)| ended.total() > 0);
        let row = |((day, queue), ended): (&(i64, _), &EndedCounts)| DayCounts {
            day: *day,
            queue: name(queue),
            ended: *ended,
        };
        self.days = days.map(row).collect();
        let latest = after.daily_counts.latest();
        self.first_day =
            (latest != before.daily_counts.latest()).then(|| first_day(after.now.wall, latest, HISTORY_DAYS));
        let counters = |state: &State| Counters {
            last_task: state.last_task,
            last_session: state.last_session,
            ends: state.ends.cast_signed(),
            last_entry: state.entry - 1,
        };
        (self.counters_before, self.counters) = (counters(before), counters(after));
    }
}

/// Adds a row for each task without enough similar ones, and returns the columnar batches of the
/// others.
fn split<Row>(
    sort: SimilarTasks,
    rows: &mut Vec<Row>,
    row: impl Fn(&Task) -> Result<Row>,
) -> Result<Vec<ColumnarBatch>> {
    let (similar, others) = sort.split_similar()?;
    for task in others {
        rows.push(row(&task)?);
    }
    Ok(similar)
}

/// Tasks with one of the three changes that most tasks of a batch undergo.
pub(in crate::postgres) struct ColumnarCandidates {
    /// New tasks.
    new: SimilarTasks,
    /// Tasks whose attempt begins.
    started: SimilarTasks,
    /// Tasks that end.
    finished: SimilarTasks,
}

impl ColumnarCandidates {
    /// Creates a list without tasks.
    pub(in crate::postgres) fn new() -> Self {
        Self {
            new: SimilarTasks::for_new(),
            started: SimilarTasks::for_started(),
            finished: SimilarTasks::for_finished(),
        }
    }
}

/// Returns true if an orchestration's instance is unchanged.
fn has_same_instance(old: &Task, task: &Task) -> bool {
    match (&old.instance, &task.instance) {
        (None, None) => true,
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        _ => false,
    }
}

/// Returns true if nothing was appended to the output of a task.
fn has_same_output(old: &Task, task: &Task) -> bool {
    match (&old.output, &task.output) {
        (None, None) => true,
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        _ => false,
    }
}

/// Returns true if an orchestration has changed only in its instance.
fn only_advances(old: &Task, task: &Task) -> bool {
    old.instance.is_some() && *old == Task { instance: old.instance.clone(), ..task.clone() }
}

/// Returns true if the columns that a submission sets are unchanged.
fn has_same_submission(old: &Task, task: &Task) -> bool {
    let (one, other) = (&old.new, &task.new);
    one.priority == other.priority
        && one.queue == other.queue
        && one.kind == other.kind
        && one.group == other.group
        && one.affinity == other.affinity
        && one.parent == other.parent
        && one.unique == other.unique
        && old.submitted_at == task.submitted_at
        && is_same(&one.payload, &other.payload)
}

/// Returns true if a task with an unchanged submission has also kept its sort keys, except those of
/// running and of expiring tasks.
fn only_starts(old: &Task, task: &Task) -> bool {
    old.run_at == task.run_at
        && old.completion_deadline() == task.completion_deadline()
        && old.cancel_requested == task.cancel_requested
        && old.result == task.result
}

/// Compares bytes. Nearly all share their memory, and are equal without a comparison.
fn is_same(one: &Bytes, other: &Bytes) -> bool {
    (one.as_ptr() == other.as_ptr() && one.len() == other.len()) || one == other
}

/// Returns a queue's name as a column.
fn name(queue: &Name) -> String {
    queue.to_string()
}

/// Returns a tag as a column. No key contains `=`, so the encoding is unambiguous.
pub(crate) fn tag(key: &str, value: &str) -> Vec<u8> {
    format!("{key}={value}").into_bytes()
}
