//! What writes have changed, as rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::orchestration::{Message, encode_message};
use crate::api::store::{EndedCounts, KindStatistics};
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::bounds::{HISTORY_DAYS, RESENT_BYTES};
use crate::model::{Document, DocumentId, DocumentTable, State, TakenKey, Task};
use crate::postgres::speculation::columnar_batch::{ColumnarBatch, SimilarTasks};
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::decision::SentTasks;
use crate::postgres::working_set::small_state::{SmallStateChanges, SmallStateRow};
use crate::postgres::working_set::task_row::{ChangedRow, InstanceRow, TaskRow};
use crate::rules::history::first_day;

/// Who has a key, and until when it is kept after the end of a task.
#[derive(Debug, Clone)]
pub(crate) struct KeyRow {
    pub(crate) kind: String,
    pub(crate) key: Vec<u8>,
    pub(crate) task: i64,
    pub(crate) until: Option<i64>,
}

/// Some events of a history.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    pub(crate) task: i64,
    pub(crate) first: i64,
    pub(crate) events: i64,
    pub(crate) chunk: Bytes,
}

/// A message that waits for an orchestration.
#[derive(Debug, Clone)]
pub(crate) struct MessageRow {
    pub(crate) task: i64,
    pub(crate) number: i64,
    pub(crate) body: Vec<u8>,
}

/// A document as it is now.
#[derive(Debug, Clone)]
pub(crate) struct DocumentRow {
    pub(crate) collection: Name,
    pub(crate) key: String,
    pub(crate) document: Arc<Document>,
}

/// How many tasks ended on a day, by queue.
#[derive(Debug, Clone)]
pub(crate) struct DayCounts {
    pub(crate) day: i64,
    pub(crate) queue: String,
    pub(crate) ended: EndedCounts,
}

/// Rows to be written.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    /// Live tasks that are new.
    pub(crate) live: Vec<TaskRow>,
    /// Live tasks of which an attempt begins, and nothing else has changed.
    pub(in crate::postgres) started: Vec<ChangedRow>,
    /// Live tasks of which what their submitters said is as it was.
    pub(in crate::postgres) changed: Vec<ChangedRow>,
    /// Orchestrations of which a turn has appended events, and that run on.
    pub(in crate::postgres) advanced: Vec<InstanceRow>,
    /// Live tasks of which anything may have changed.
    pub(in crate::postgres) rewritten: Vec<TaskRow>,
    /// Tasks that were live and have ended, of which what their submitters said is as it was.
    pub(in crate::postgres) finished: Vec<ChangedRow>,
    /// Other tasks that have ended: new ones, and such of which anything may have changed.
    pub(crate) ended: Vec<TaskRow>,
    /// What is as `live`, as `started` and as `finished`, of tasks that are alike.
    pub(in crate::postgres) live_columnar: Vec<ColumnarBatch>,
    pub(in crate::postgres) started_columnar: Vec<ColumnarBatch>,
    pub(in crate::postgres) finished_columnar: Vec<ColumnarBatch>,
    /// Tasks among `rewritten` that had ended before.
    pub(in crate::postgres) revived: Vec<i64>,
    /// Tasks among `ended` that were live before.
    pub(crate) moved: Vec<i64>,
    pub(in crate::postgres) removed_live: Vec<i64>,
    pub(in crate::postgres) removed_ended: Vec<i64>,
    /// Events that were appended to histories.
    pub(crate) turns: Vec<TurnRow>,
    /// Tasks whose history is to be forgotten first.
    pub(in crate::postgres) dropped_turns: Vec<i64>,
    /// Messages that came.
    pub(crate) messages: Vec<MessageRow>,
    /// Tasks, and up to which number their messages were taken in.
    pub(in crate::postgres) taken_messages: Vec<(i64, i64)>,
    /// Tags that tasks have no longer which are still there.
    pub(in crate::postgres) gone_tags: Vec<(i64, Vec<u8>)>,
    pub(crate) tags: Vec<(i64, Vec<u8>)>,
    pub(crate) keys: Vec<KeyRow>,
    pub(in crate::postgres) freed_keys: Vec<(String, Vec<u8>)>,
    pub(crate) waits: Vec<(i64, i64)>,
    pub(in crate::postgres) ended_waits: Vec<(i64, i64)>,
    pub(crate) members: Vec<(i64, i64)>,
    pub(in crate::postgres) ended_members: Vec<i64>,
    pub(crate) items: Vec<SmallStateRow>,
    /// Items that are there under their names already.
    pub(in crate::postgres) changed_small_state: Vec<SmallStateRow>,
    pub(in crate::postgres) removed_small_state: Vec<(String, String)>,
    pub(crate) documents: Vec<DocumentRow>,
    pub(in crate::postgres) removed_documents: Vec<DocumentId>,
    /// How many documents collections have, if that has changed.
    pub(in crate::postgres) collections: Vec<(String, i64)>,
    /// Number, number of the next task, changes.
    pub(crate) log: Vec<(i64, i64, String)>,
    pub(crate) forget_before: i64,
    pub(crate) statistics: Vec<KindStatistics>,
    pub(crate) days: Vec<DayCounts>,
    /// Days before this one are no longer asked for, if that has changed.
    pub(crate) first_day: Option<i64>,
    /// The numbers given last, before and now.
    pub(in crate::postgres) counters_before: Counters,
    pub(crate) counters: Counters,
}

impl ChangeSet {
    /// What has changed, but for what was written of it.
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

    /// Whether it does nothing but append events to histories.
    pub(in crate::postgres) fn only_appends(&self) -> bool {
        // Without `..`, so that whoever adds a sort of rows says here whether it is one of those.
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
            messages,
            taken_messages,
            gone_tags,
            tags,
            keys,
            freed_keys,
            waits,
            ended_waits,
            members,
            ended_members,
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
        let links = [waits.len(), ended_waits.len(), members.len(), ended_members.len()];
        let items = items.len() + changed_small_state.len() + removed_small_state.len();
        let documents = documents.len() + removed_documents.len() + collections.len();
        let rest = [items, statistics.len(), days.len(), documents];
        let others: [&[usize]; 6] = [&tasks, &similar, &gone, &await_in_order, &links, &rest];
        let is_all = others.concat().iter().all(|rows| *rows == 0) && *forget_before == 0 && first_day.is_none();
        is_all && !turns.is_empty() && after == before
    }

    /// Whether anything that is not a task has changed.
    pub(in crate::postgres) fn changes_small_state(&self) -> bool {
        !self.items.is_empty() || !self.changed_small_state.is_empty() || !self.removed_small_state.is_empty()
    }

    fn tasks(&mut self, before: &State, after: &State, written: &SentTasks) -> Result<()> {
        let mut candidates = ColumnarCandidates::new();
        let mut before = before.tasks.shared().peekable();
        for task in after.tasks.shared() {
            while let Some(gone) = before.next_if(|old| old.id < task.id) {
                self.removed(written.get(gone.id).unwrap_or(gone));
            }
            let old = before.next_if(|old| old.id == task.id);
            // What did not change was not written either, and that is most of what is loaded.
            if old.is_some_and(|old| Arc::ptr_eq(old, task)) {
                continue;
            }
            let sent = written.get(task.id);
            match sent.or(old) {
                Some(old) if Arc::ptr_eq(old, task) => {}
                // What was decided again is another copy.
                Some(old) if sent.is_some() && old == task => {}
                old => self.task(old.map(Arc::as_ref), task, &mut candidates)?,
            }
        }
        before.for_each(|gone| self.removed(written.get(gone.id).unwrap_or(gone)));
        self.remove_sent(after, written);
        self.add_columnar(candidates)
    }

    /// Forgets a task that the store has as it is here.
    fn removed(&mut self, task: &Task) {
        let removed = if task.state.is_ended() { &mut self.removed_ended } else { &mut self.removed_live };
        removed.push(task.id.0);
        if task.instance.is_some() {
            self.dropped_turns.push(task.id.0);
            self.taken_messages.push((task.id.0, i64::MAX));
        }
    }

    /// Forgets tasks that were written and are gone again.
    fn remove_sent(&mut self, after: &State, written: &SentTasks) {
        for task in written.new_tasks().filter(|task| after.tasks.share(task.id).is_none()) {
            self.removed(task);
        }
    }

    /// Takes the end of a task, if that is all that has changed of it.
    pub(super) fn accept_end(
        &mut self,
        old: &Task,
        task: &Arc<Task>,
        candidates: &mut ColumnarCandidates,
    ) -> Result<bool> {
        let is_end =
            !old.state.is_ended() && task.state.is_ended() && task.instance.is_none() && has_same_submission(old, task);
        if is_end {
            self.changed_task(old, task, candidates)?;
        }
        Ok(is_end)
    }

    /// Takes a new task, if it is one that shall run.
    pub(super) fn accept_new(&mut self, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<bool> {
        let is_plain = !task.state.is_ended() && task.instance.is_none();
        if is_plain {
            self.new_task(task, candidates)?;
        }
        Ok(is_plain)
    }

    fn task(&mut self, old: Option<&Task>, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        self.turns(old, task);
        self.messages(old, task)?;
        self.changed_tags(old, task);
        match old {
            None => self.new_task(task, candidates),
            Some(old) if old.state.is_ended() || !has_same_submission(old, task) => self.rewritten_task(old, task),
            Some(old) if has_same_instance(old, task) => self.changed_task(old, task, candidates),
            Some(old) => self.turned_task(old, task),
        }
    }

    /// A task of which its submitter's words are as they were, and what it remembers as an
    /// orchestration is not.
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

    fn new_task(&mut self, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        self.tags.extend(task.new.tags.iter().map(|(key, value)| (task.id.0, tag(key, value))));
        if task.state.is_ended() {
            self.ended.push(TaskRow::of(task, true)?);
        } else {
            candidates.new.add(task);
        }
        Ok(())
    }

    fn changed_task(&mut self, old: &Task, task: &Arc<Task>, candidates: &mut ColumnarCandidates) -> Result<()> {
        if task.retained_until().is_some() {
            // Until when it is kept is not among what the end of most tasks writes.
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

    /// Tasks that are like many others are written with them; each other has a row of its own.
    pub(in crate::postgres) fn add_columnar(&mut self, candidates: ColumnarCandidates) -> Result<()> {
        let rewritten = |task: &Task| TaskRow::of(task, true);
        self.live_columnar = split(candidates.new, &mut self.live, rewritten)?;
        self.started_columnar = split(candidates.started, &mut self.started, ChangedRow::of)?;
        self.finished_columnar = split(candidates.finished, &mut self.finished, ChangedRow::of)?;
        Ok(())
    }

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

    fn turns(&mut self, old: Option<&Task>, task: &Task) {
        let Some(instance) = &task.instance else { return };
        let before = old.and_then(|old| old.instance.as_deref());
        let begins_again = before.is_some_and(|before| before.generation != instance.generation);
        self.dropped_turns.extend(begins_again.then_some(task.id.0));
        // What was loaded has no chunks: all there are were appended since.
        self.turns.extend(instance.chunks.iter().map(|chunk| TurnRow {
            task: task.id.0,
            first: chunk.first.cast_signed(),
            events: chunk.events.cast_signed(),
            chunk: chunk.chunk.clone(),
        }));
    }

    fn messages(&mut self, old: Option<&Task>, task: &Task) -> Result<()> {
        let Some(instance) = &task.instance else { return Ok(()) };
        let before = old.and_then(|old| old.instance.as_deref());
        let (received, taken) = before.map_or((0, 0), |before| (before.received, before.taken));
        self.taken_messages.extend((instance.taken > taken).then_some((task.id.0, instance.taken.cast_signed())));
        // What had come before is a row already.
        self.put_messages(task.id.0, instance.mailbox.iter().filter(|message| message.number > received))
    }

    /// Adds messages that came for an orchestration.
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

    /// Only orchestrations change theirs.
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

    fn links(&mut self, before: &State, after: &State) {
        let pairs = |pairs: Vec<&(TaskId, TaskId)>| pairs.into_iter().map(|(one, other)| (one.0, other.0)).collect();
        let (old, new) = (&before.dependencies.dependents, &after.dependencies.dependents);
        self.waits = pairs(new.difference(old).collect());
        self.ended_waits = pairs(old.difference(new).collect());
        let batches = |state: &State| -> BTreeSet<(TaskId, TaskId)> {
            state.batches.batch_of.iter().map(|(member, bundle)| (*member, *bundle)).collect()
        };
        let (old, new) = (batches(before), batches(after));
        self.members = pairs(new.difference(&old).collect());
        self.ended_members = old.difference(&new).map(|(member, _)| member.0).collect();
    }

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

/// Those that are like many others; each other gets a row.
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

/// What happens to most tasks of a batch.
pub(in crate::postgres) struct ColumnarCandidates {
    new: SimilarTasks,
    started: SimilarTasks,
    finished: SimilarTasks,
}

impl ColumnarCandidates {
    pub(in crate::postgres) fn new() -> Self {
        Self {
            new: SimilarTasks::for_new(),
            started: SimilarTasks::for_started(),
            finished: SimilarTasks::for_finished(),
        }
    }
}

/// Whether what an orchestration remembers is as it was.
fn has_same_instance(old: &Task, task: &Task) -> bool {
    match (&old.instance, &task.instance) {
        (None, None) => true,
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        _ => false,
    }
}

/// Whether an orchestration is as it was but for what it remembers.
fn only_advances(old: &Task, task: &Task) -> bool {
    old.instance.is_some() && *old == Task { instance: old.instance.clone(), ..task.clone() }
}

/// Whether the columns are as they were that say what a submitter said.
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

/// Whether a task, whose submitter's words are as they were, is where it was in every order but
/// that of those that run and that expire.
fn only_starts(old: &Task, task: &Task) -> bool {
    old.run_at == task.run_at
        && old.must_be_finished_by() == task.must_be_finished_by()
        && old.cancel_requested == task.cancel_requested
        && old.result == task.result
}

/// Whether bytes are the same; those that share their memory, as nearly all do, are not looked at.
fn is_same(one: &Bytes, other: &Bytes) -> bool {
    (one.as_ptr() == other.as_ptr() && one.len() == other.len()) || one == other
}

fn name(queue: &Name) -> String {
    queue.to_string()
}

/// A tag as it is kept: no key has the sign between.
pub(crate) fn tag(key: &str, value: &str) -> Vec<u8> {
    format!("{key}={value}").into_bytes()
}
