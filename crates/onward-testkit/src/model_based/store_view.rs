//! Reads everything that can be read of a store.

use std::time::Duration;

use onward_store::{
    Change, Claim, DocumentPage, DocumentQuery, DocumentSelection, Event, EventCursor, HistoryChunk, InstanceRecord,
    KindSelection, KindStatistics, LimitRecord, Name, OutputStream, Page, PauseRecord, PendingBatch,
    PendingBatchSelection, Priority, QueueChoice, QueueDay, QueueMode, QueueRecord, QueueSelection, Result,
    ScheduleRecord, ScheduleSelection, SessionId, SessionRecord, Store, StoreReads, TagPage, Tags, TaskFilter, TaskId,
    TaskIdPage, TaskOutput, TaskPage, TaskRecord, TaskState, Timestamp, WaitReason,
};

use crate::test_store::name;

/// The number of newest tasks for which `why` is compared. Each call makes several reads of a
/// store.
const NEWEST_TASKS: i64 = 6;

/// The replies of every read except the events.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    tasks: Vec<Option<TaskRecord>>,
    listings: Vec<(TaskFilter, Vec<TaskPage>)>,
    selected: Vec<Selected>,
    tags: Vec<TagsInUse>,
    queues: Vec<QueueRecord>,
    mode: [QueueMode; 1],
    statistics: Vec<KindStatistics>,
    history: [Vec<QueueDay>; 2],
    sessions: Vec<SessionRecord>,
    pauses: Vec<PauseRecord>,
    pending_batches: Vec<PendingBatch>,
    documents: Vec<DocumentPage>,
    limits: Vec<LimitRecord>,
    reasons: Vec<Option<Vec<WaitReason>>>,
    peeked: Vec<Option<TaskRecord>>,
    pub(super) schedules: [Vec<ScheduleRecord>; 4],
    output: Vec<Option<TaskOutput>>,
    /// The newest orchestrations, with their histories.
    pub(super) instances: Vec<(TaskId, InstanceRecord, Vec<HistoryChunk>)>,
}

/// Reads the newest orchestrations. It runs after each step, because turns are generated from what
/// it returns.
async fn instances(store: &dyn Store, highest: i64) -> Result<Vec<(TaskId, InstanceRecord, Vec<HistoryChunk>)>> {
    let mut instances = Vec::new();
    for id in ((highest - NEWEST_TASKS).max(1)..=highest).map(TaskId) {
        if let Some(instance) = store.instance(id).await? {
            instances.push((id, instance, store.instance_history(id, 1, 3).await?));
        }
    }
    Ok(instances)
}

/// The share of the reads that is made: every `one_in`-th, starting at `number`, which changes with
/// each step.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadShare {
    pub(super) number: usize,
    pub(super) one_in: usize,
}

impl ReadShare {
    pub(super) const ALL: Self = Self { number: 0, one_in: 1 };

    fn pick<T>(self, reads: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        reads.into_iter().skip(self.number % self.one_in).step_by(self.one_in)
    }
}

impl View {
    /// Reads everything of a share of the reads: tasks up to and including number `highest`, one
    /// more, and the rest.
    pub(super) async fn of(store: &dyn Store, highest: i64, now: Timestamp, share: ReadShare) -> Result<Self> {
        let mut tasks = Vec::new();
        for id in share.pick(1..=highest + 1) {
            tasks.push(store.task(TaskId(id)).await?);
        }
        let mut reasons = Vec::new();
        for id in share.pick((highest - NEWEST_TASKS).max(1)..=highest + 1) {
            reasons.push(store.why(TaskId(id)).await?);
        }
        let mut output = Vec::new();
        for id in share.pick((highest - NEWEST_TASKS).max(1)..=highest + 1) {
            for (stream, from) in [(OutputStream::Stdout, 0), (OutputStream::Stderr, 4)] {
                output.push(store.task_output(TaskId(id), stream, from, 7).await?);
            }
        }
        let instances = instances(store, highest).await?;
        let mut listings = Vec::new();
        for filter in share.pick(filters(now)) {
            listings.push((filter.clone(), pages(store, &filter).await?));
        }
        let (mut selected, mut tags) = (Vec::new(), Vec::new());
        for filter in share.pick(filters(now)) {
            selected.push(Selected::of(store, filter).await?);
        }
        for filter in share.pick(tag_filters()) {
            tags.push(TagsInUse::of(store, filter).await?);
        }
        let mut peeked = Vec::new();
        let sessions = store.sessions().await?;
        // A task that is reserved for a session is returned to that session alone.
        let own = sessions.iter().map(|session| Claim::any(session.id, 1));
        for claim in share.pick(claims().into_iter().chain(own)) {
            peeked.push(store.peek(claim).await?);
        }
        Ok(Self {
            tasks,
            listings,
            selected,
            tags,
            peeked,
            reasons,
            output,
            instances,
            queues: store.queues().await?,
            mode: [store.queue_mode().await?],
            statistics: store.statistics().await?,
            history: [store.history(1).await?, store.history(90).await?],
            sessions,
            pauses: store.pauses().await?,
            pending_batches: store.pending_batches(PendingBatchSelection { queue: None, limit: usize::MAX }).await?,
            documents: documents(store, share).await?,
            limits: store.limits().await?,
            schedules: [
                store.schedules(ScheduleSelection::All).await?,
                store.schedules(ScheduleSelection::Named(name("daily"))).await?,
                store.schedules(ScheduleSelection::Next { limit: 2 }).await?,
                store.schedules(ScheduleSelection::Pending).await?,
            ],
        })
    }

    /// Returns the first read whose replies differ, with both replies. Destructures the view, so
    /// that no field can be left out.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let Self {
            tasks,
            listings,
            selected,
            tags,
            queues,
            mode,
            statistics,
            history,
            sessions,
            pauses,
            pending_batches,
            documents,
            limits,
            reasons,
            peeked,
            schedules,
            output,
            instances,
        } = self;
        each(tasks, &other.tasks)
            .or_else(|| each(listings, &other.listings))
            .or_else(|| each(selected, &other.selected))
            .or_else(|| each(tags, &other.tags))
            .or_else(|| each(queues, &other.queues))
            .or_else(|| each(mode, &other.mode))
            .or_else(|| each(statistics, &other.statistics))
            .or_else(|| each(history, &other.history))
            .or_else(|| each(sessions, &other.sessions))
            .or_else(|| each(pauses, &other.pauses))
            .or_else(|| each(documents, &other.documents))
            .or_else(|| each(limits, &other.limits))
            .or_else(|| each(pending_batches, &other.pending_batches))
            .or_else(|| each(reasons, &other.reasons))
            .or_else(|| each(peeked, &other.peeked))
            .or_else(|| each(schedules, &other.schedules))
            .or_else(|| each(output, &other.output))
            .or_else(|| each(instances, &other.instances))
    }
}

fn each<T: PartialEq + std::fmt::Debug>(one: &[T], other: &[T]) -> Option<String> {
    let differ = one.iter().zip(other).find(|(one, other)| one != other);
    let differ = differ.map(|(one, other)| format!("{one:#?}\nand\n{other:#?}"));
    differ.or_else(|| (one.len() != other.len()).then(|| format!("{one:#?}\nand\n{other:#?}")))
}

fn filters(now: Timestamp) -> Vec<TaskFilter> {
    let any = TaskFilter::default;
    let recently = now.minus(Duration::from_secs(5));
    vec![
        TaskFilter { with_payload: true, ..any() },
        TaskFilter { kind: Some(name("copy")), ..any() },
        TaskFilter { queue: Some(name("slow")), ..any() },
        TaskFilter { group: Some(name("tenant-1")), ..any() },
        TaskFilter { key: Some("b".to_owned()), ..any() },
        TaskFilter { states: vec![TaskState::Waiting, TaskState::Cancelled], kind: Some(name("mail")), ..any() },
        TaskFilter { states: vec![TaskState::Completed, TaskState::Scheduled], ..any() },
        TaskFilter { states: vec![TaskState::Blocked], ..any() },
        TaskFilter { parent: Some(TaskId(1)), ..any() },
        TaskFilter { batch: Some(TaskId(3)), ..any() },
        TaskFilter { submitted_from: Some(recently), ..any() },
        TaskFilter { submitted_before: Some(recently), finished_from: Some(recently), ..any() },
        TaskFilter { finished_before: Some(recently), queue: Some(name("default")), ..any() },
        TaskFilter { tags: tags(&[("a", "1")]), ..any() },
        TaskFilter { tags: tags(&[("a", "1"), ("b", "1")]), ..any() },
        TaskFilter { tags: tags(&[("a", "2")]), states: vec![TaskState::Running], ..any() },
        TaskFilter { tags: tags(&[("a", "1")]), orchestration: Some(true), ..any() },
        TaskFilter { tags: tags(&[("b", "")]), tag_key_prefix: Some("a".to_owned()), ..any() },
        TaskFilter { tag_key_prefix: Some(String::new()), kind: Some(name("copy")), ..any() },
        TaskFilter { key_prefix: Some(String::new()), priority_from: Some(Priority(128)), ..any() },
        TaskFilter { priority_to: Some(Priority(128)), cancel_requested: Some(true), ..any() },
    ]
}

/// Returns the filters under which the values of a tag key are counted.
fn tag_filters() -> [TaskFilter; 3] {
    let any = TaskFilter::default;
    [any(), TaskFilter { kind: Some(name("mail")), ..any() }, TaskFilter { tags: tags(&[("b", "1")]), ..any() }]
}

fn tags(tags: &[(&str, &str)]) -> Tags {
    tags.iter().copied().collect()
}

/// The numbers and the count of the tasks that match a filter.
#[derive(Debug, PartialEq)]
struct Selected {
    filter: TaskFilter,
    pages: Vec<TaskIdPage>,
    count: u64,
}

impl Selected {
    async fn of(store: &dyn Store, filter: TaskFilter) -> Result<Self> {
        let first = store.task_ids(filter.clone(), Page { before: None, limit: 2 }).await?;
        let second = store.task_ids(filter.clone(), Page { before: first.next, limit: 1000 }).await?;
        let count = store.count(filter.clone()).await?;
        Ok(Self { filter, pages: vec![first, second], count })
    }
}

/// The tags in use: the values of one key with their counts, and the keys.
#[derive(Debug, PartialEq)]
struct TagsInUse {
    filter: TaskFilter,
    values: Vec<(String, u64)>,
    keys: Vec<String>,
}

impl TagsInUse {
    async fn of(store: &dyn Store, filter: TaskFilter) -> Result<Self> {
        let (mut values, mut keys) = (Vec::new(), Vec::new());
        let mut page = TagPage { after: None, limit: 1 };
        loop {
            let found = store.tag_values("a".to_owned(), filter.clone(), page).await?;
            values.extend(found.values.into_iter().map(|value| (value.value, value.tasks)));
            page = TagPage { after: found.next, limit: 10 };
            if page.after.is_none() {
                break;
            }
        }
        for (prefix, after) in [("", None), ("a", None), ("a", Some("a"))] {
            let page = TagPage { after: after.map(str::to_owned), limit: 2 };
            keys.extend(store.tag_keys(prefix.to_owned(), page).await?.keys);
        }
        Ok(Self { filter, values, keys })
    }
}

/// Reads documents in every order, in small pages.
async fn documents(store: &dyn Store, share: ReadShare) -> Result<Vec<DocumentPage>> {
    let mut pages = Vec::new();
    for selection in share.pick(selections()) {
        for with_content in [true, false] {
            let first = DocumentQuery { limit: 2, with_content, ..DocumentQuery::new(name("notes")) };
            let mut query = DocumentQuery { selection: selection.clone(), ..first };
            loop {
                let page = store.documents(query.clone()).await?;
                query = DocumentQuery { after: page.next.clone(), limit: 3, ..query };
                pages.push(page);
                if query.after.is_none() {
                    break;
                }
            }
        }
    }
    for key in ["a", "ab", "a\u{0}"] {
        let document = store.document(name("pictures"), key.to_owned()).await?;
        pages.push(DocumentPage { documents: document.into_iter().collect(), next: None });
    }
    Ok(pages)
}

fn selections() -> Vec<DocumentSelection> {
    let key_prefix = |prefix: &str| DocumentSelection::KeyPrefix(prefix.to_owned());
    let value = |index, value: &str| DocumentSelection::IndexValue { index, value: value.to_owned() };
    let prefix = |index, prefix: &str| DocumentSelection::IndexPrefix { index, prefix: prefix.to_owned() };
    vec![
        key_prefix(""),
        key_prefix("a"),
        key_prefix("ä"),
        value(0, "a"),
        value(3, "\u{0}"),
        value(1, ""),
        prefix(0, ""),
        prefix(1, "a"),
        prefix(2, ""),
        prefix(4, ""),
    ]
}

async fn pages(store: &dyn Store, filter: &TaskFilter) -> Result<Vec<TaskPage>> {
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = store.tasks(filter.clone(), Page { before, limit: 5 }).await?;
        before = page.next;
        pages.push(page);
        if before.is_none() {
            return Ok(pages);
        }
    }
}

fn claims() -> Vec<Claim> {
    let of = |queues, kinds| Claim { queues, kinds, ..Claim::any(SessionId(0), 1) };
    let by = |mode| {
        let choice = QueueChoice { mode: Some(mode), random: 7, ..QueueChoice::default() };
        Claim { choice, ..Claim::any(SessionId(0), 1) }
    };
    let copies = || KindSelection::Only(vec![name("copy")]);
    let slow = || QueueSelection::Only(vec![(name("slow"), 1)]);
    vec![
        of(QueueSelection::All, KindSelection::All),
        of(QueueSelection::All, copies()),
        of(slow(), KindSelection::All),
        of(slow(), copies()),
        of(QueueSelection::All, KindSelection::matching(Vec::new(), vec!["co".to_owned()])),
        Claim { least: Some(Priority::NORMAL), ..Claim::any(SessionId(0), 1) },
        by(QueueMode::Strict),
        by(QueueMode::Lenient),
        by(QueueMode::Interleaved),
    ]
}

/// An event without its cursor, which differs between stores.
pub(super) type EventContent = (Timestamp, TaskId, Name, Name, Change);

/// More events than any sequence causes. A store that returns as many returns some of them
/// repeatedly.
const TOO_MANY_EVENTS: usize = 100_000;

/// Returns every event after a cursor, in pages of `limit`, and moves the cursor.
pub(super) async fn follow(store: &dyn Store, cursor: &mut EventCursor, limit: usize) -> Result<Vec<EventContent>> {
    let mut events = Vec::new();
    loop {
        let page = store.events(*cursor, limit).await?;
        if page.events.is_empty() || events.len() > TOO_MANY_EVENTS {
            return Ok(events);
        }
        *cursor = page.next;
        events.extend(page.events.into_iter().map(without_cursor));
    }
}

pub(super) fn without_cursor(event: Event) -> EventContent {
    (event.at, event.task, event.kind, event.queue, event.change)
}
