//! Everything that can be read of a store.

use std::time::Duration;

use onward_store::{
    Change, Claim, Event, EventCursor, KindSelection, KindStatistics, Name, Page, PauseRecord, QueueChoice, QueueMode,
    QueueRecord, QueueSelection, Result, SessionId, SessionRecord, Store, TaskFilter, TaskId, TaskPage, TaskRecord,
    TaskState, Timestamp,
};

use crate::bench::name;

/// The answers of every read but the events.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    tasks: Vec<Option<TaskRecord>>,
    listings: Vec<(TaskFilter, Vec<TaskPage>)>,
    queues: Vec<QueueRecord>,
    mode: [QueueMode; 1],
    statistics: Vec<KindStatistics>,
    sessions: Vec<SessionRecord>,
    pauses: Vec<PauseRecord>,
    peeked: Vec<Option<TaskRecord>>,
}

impl View {
    /// Reads everything; tasks up to and including number `highest`, and one more.
    pub(super) async fn of(store: &dyn Store, highest: i64, now: Timestamp) -> Result<Self> {
        let mut tasks = Vec::new();
        for id in 1..=highest + 1 {
            tasks.push(store.task(TaskId(id)).await?);
        }
        let mut listings = Vec::new();
        for filter in filters(now) {
            listings.push((filter.clone(), pages(store, &filter).await?));
        }
        let mut peeked = Vec::new();
        for claim in claims() {
            peeked.push(store.peek(claim).await?);
        }
        Ok(Self {
            tasks,
            listings,
            peeked,
            queues: store.queues().await?,
            mode: [store.queue_mode().await?],
            statistics: store.statistics().await?,
            sessions: store.sessions().await?,
            pauses: store.pauses().await?,
        })
    }

    /// The first read whose answers differ, with both answers.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        each(&self.tasks, &other.tasks)
            .or_else(|| each(&self.listings, &other.listings))
            .or_else(|| each(&self.queues, &other.queues))
            .or_else(|| each(&self.mode, &other.mode))
            .or_else(|| each(&self.statistics, &other.statistics))
            .or_else(|| each(&self.sessions, &other.sessions))
            .or_else(|| each(&self.pauses, &other.pauses))
            .or_else(|| each(&self.peeked, &other.peeked))
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
        TaskFilter { key: Some("b".to_owned()), ..any() },
        TaskFilter { states: vec![TaskState::Waiting, TaskState::Cancelled], kind: Some(name("mail")), ..any() },
        TaskFilter { states: vec![TaskState::Completed, TaskState::Scheduled], ..any() },
        TaskFilter { states: vec![TaskState::Blocked], ..any() },
        TaskFilter { parent: Some(TaskId(1)), ..any() },
        TaskFilter { submitted_from: Some(recently), ..any() },
        TaskFilter { submitted_before: Some(recently), finished_from: Some(recently), ..any() },
        TaskFilter { finished_before: Some(recently), queue: Some(name("default")), ..any() },
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
        by(QueueMode::Strict),
        by(QueueMode::Lenient),
        by(QueueMode::Interleaved),
    ]
}

/// An event without its cursor, which each store makes as it likes.
pub(super) type Told = (Timestamp, TaskId, Name, Name, Change);

/// More events than any sequence makes: a store that tells so many tells some again and again.
const TOO_MANY_EVENTS: usize = 100_000;

/// Every event behind a cursor, which is moved on, in pages of `limit`.
pub(super) async fn follow(store: &dyn Store, cursor: &mut EventCursor, limit: usize) -> Result<Vec<Told>> {
    let mut told = Vec::new();
    loop {
        let page = store.events(*cursor, limit).await?;
        if page.events.is_empty() || told.len() > TOO_MANY_EVENTS {
            return Ok(told);
        }
        *cursor = page.next;
        told.extend(page.events.into_iter().map(without_cursor));
    }
}

fn without_cursor(event: Event) -> Told {
    (event.at, event.task, event.kind, event.queue, event.change)
}
