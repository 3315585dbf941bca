//! One transaction: the lock, what calls look for, what they change.

use std::collections::{BTreeSet, HashSet};
use std::pin::{Pin, pin};

use futures_util::FutureExt;
use futures_util::future::{MaybeDone, join, join4, maybe_done};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error as DriverError, Row};

use super::ahead::{Ahead, Presumed};
use super::append::append;
use super::beside::beside;
use super::connection::{Link, LinkTo};
use super::early::Early;
use super::error::{classified, driver_error, is_lost, is_to_be_repeated, nothing_said};
use super::fetch::{Fetched, Fetcher, Reading, take};
use super::migrate;
use super::next::Next;
use super::row::{ITEMS, item};
use super::save::{Saving, save_and_commit, save_within};
use super::sql::BEGIN_TO_READ;
use super::store::Shared;
use super::unchanged::Compared;
use super::wake;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{
    Answered, Counters, Decision, Difference, Items, Kept, Now, Partial, Ran, Want, claimed_by, wanted_by,
};
use crate::store::Hint;
use crate::write::Write;

/// For how many transactions a writer that has found that others write expects that they do.
const OTHERS_EXPECTED: u8 = 8;

/// For how many transactions a writer one of whose claims has looked into many lanes expects that.
const EVERY_LANE_EXPECTED: u8 = 8;

/// How often what writes look for is loaded at the most. Each time brings them further, so that this is reached by a defect alone.
const ROUNDS: usize = 10_000;

/// What a writer has written last, which it reads again before it writes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// A number that no other connection of a writer has, as good as certainly.
    pub(super) writer: i64,
    /// Counted from 1; 0 for none yet.
    pub(super) batch: i64,
}

/// What a writer knows of the store since its last transaction.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) marker: Marker,
    /// Everything that is not a task, and its version.
    pub(super) items: Option<(i64, Items)>,
    /// The number of its transaction among all that write to the store, and the numbers that it gave last; `None` if it has not written yet.
    pub(super) write: Option<(i64, Counters)>,
    /// What it knows of tasks.
    pub(super) kept: Kept,
    /// The time of its transaction, and one queue of the latest day on which a task had ended then.
    pub(super) time: Option<Now>,
    pub(super) latest_day: Option<(i64, String)>,
    /// For how many transactions yet others are expected to write between them.
    others: u8,
    /// Whether no lane had more waiting than was loaded when it was last looked.
    few_wait: bool,
    /// For how many transactions yet claims are expected to look into more lanes than the first ones.
    every_lane: u8,
}

impl Last {
    /// Of a writer that knows nothing yet.
    pub(super) fn new() -> Self {
        let writer = super::store::node().cast_signed();
        Self {
            marker: Marker { writer, batch: 0 },
            items: None,
            write: None,
            kept: Kept::default(),
            time: None,
            latest_day: None,
            others: 0,
            few_wait: false,
            every_lane: 0,
        }
    }

    /// Has it know nothing of the store but its own last batch.
    pub(super) fn forget(&mut self) {
        (self.items, self.write, self.kept) = (None, None, Kept::default());
    }

    /// Whether nobody else is expected to write between two transactions.
    pub(super) fn is_alone(&self) -> bool {
        self.others == 0
    }
}

/// How a transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Its commit waits for the disk.
    Synced,
    /// A sync follows, which others wait for.
    SyncedLater,
    /// Nobody waits.
    NeverSynced,
}

/// What came of a transaction.
pub(super) enum Fate {
    Committed {
        ran: Ran,
        marker: Marker,
        mode: Mode,
    },
    /// It did not happen. `again` if the same may go through now.
    Failed {
        error: Error,
        again: bool,
    },
    /// The connection was lost while it was committed.
    Unknown {
        ran: Ran,
        marker: Marker,
        error: Error,
    },
}

/// What the store says of itself at the beginning of a transaction.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) now: Now,
    pub(super) partial: Partial,
    /// Whether what it shows may not be on disk yet.
    pub(super) is_ahead: bool,
}

/// Applies calls in one transaction, of which the first may be decided already. What comes meanwhile goes to `next`.
pub(super) async fn apply(
    client: &Link,
    shared: &Shared,
    calls: &[&[Write]],
    last: &mut Last,
    ahead: Option<Box<Ahead>>,
    next: &mut Next,
) -> Fate {
    if let Some(fate) = append(client, shared, calls, last, next.mode(shared, false)).await {
        return fate;
    }
    let mut early = Early::of(client, &shared.sql, calls);
    let mut decided = decide(client, shared, calls, last, client.begin(), (&mut early, ahead)).await;
    if let Ok(None) = decided {
        drop(early);
        early = Early::never(client, &shared.sql);
        decided = match client.batch_execute("ROLLBACK").await.map_err(classified) {
            Ok(()) => decide(client, shared, calls, last, client.begin(), (&mut early, None)).await,
            Err(error) => Err(error),
        };
    }
    match decided {
        Ok(Some(decided)) => commit(client, shared, last, decided, early, (calls, next)).await,
        Ok(None) => fail(client, undecided(), &mut early).await,
        Err(error) => fail(client, error, &mut early).await,
    }
}

/// Ends a transaction that came to nothing.
async fn fail(client: &Link, error: Error, early: &mut Early<'_>) -> Fate {
    // What was written before may have failed first, and what came behind it because of that.
    let error = early.written().await.err().map_or(error, classified);
    // A connection on which this fails is not used again.
    let is_over = client.batch_execute("ROLLBACK").await.is_err();
    let again = is_over || driver_error(&error).is_some_and(is_to_be_repeated);
    Fate::Failed { error, again }
}

/// Writes what was decided, and commits. What the writer keeps is worked out while the server writes, and what comes next is decided as far as it can be.
async fn commit(
    client: &Link,
    shared: &Shared,
    last: &mut Last,
    decided: Decided,
    mut early: Early<'_>,
    (calls, next): (&[&[Write]], &mut Next),
) -> Fate {
    let Decided { partial, time, numbers, mut kept, is_alone, mut ran } = decided;
    let difference = match partial.difference(&mut ran, &early.written) {
        Ok(difference) => difference,
        Err(error) => return fail(client, error, &mut early).await,
    };
    let marker = Marker { batch: last.marker.batch + 1, ..last.marker };
    let notify = (ran.hint != Hint::default()).then(|| shared.message(ran.hint));
    let is_large = calls.iter().map(|call| call.len()).sum::<usize>() >= limits::HELD_UP;
    let mode = next.mode(shared, !is_alone && is_large);
    let numbers = numbers.after(&difference);
    let saving = Saving { difference: &difference, marker, numbers, notify: notify.as_deref(), mode };
    let mut saved = pin!(save_and_commit(client, &shared.sql, &saving, early.into_sent()));
    // All of it is on its way when this is first polled, and who carries it gets a turn.
    let at_once = saved.as_mut().now_or_never();
    tokio::task::yield_now().await;
    kept.follow(&partial, &ran, Some(numbers.transaction));
    let few_wait = partial.few_wait().unwrap_or(last.few_wait);
    let latest_day = ran.latest_day();
    let items = Some((numbers.version, ran.items()));
    drop(partial);
    let write = Some((numbers.write, difference.counters));
    let others = if is_alone { last.others.saturating_sub(1) } else { OTHERS_EXPECTED };
    let every_lane = last.every_lane;
    let after = Last { marker, items, write, kept, time: Some(time), latest_day, others, few_wait, every_lane };
    let after = Box::new(after);
    let saved = match at_once {
        Some(saved) => saved,
        None => next.prepare_until(shared, &after, saved).await,
    };
    match saved {
        Ok(()) => {
            *last = *after;
            Fate::Committed { ran, marker, mode }
        }
        Err(error) if is_lost(&error) => Fate::Unknown { ran, marker, error: classified(error) },
        Err(error) => {
            let again = is_to_be_repeated(&error);
            let _ = client.batch_execute("ROLLBACK").await;
            Fate::Failed { error: classified(error), again }
        }
    }
}

#[cold]
fn undecided() -> Error {
    Error::io("what writes look for cannot be loaded; this is a defect of the PostgreSQL store")
}

/// Applies calls within a transaction that others begin and commit, and that sees what was committed before each statement; `begin` stands before
/// the lock. Each call is all or nothing; what is refused, the caller undoes.
pub(super) async fn apply_within(client: &LinkTo<'_>, shared: &Shared, calls: &[&[Write]], begin: &str) -> Result<Ran> {
    let mut early = Early::never(client, &shared.sql);
    // It is large, and may be part of what opens a store.
    let mut last = Last::new();
    let decided = Box::pin(decide(client, shared, calls, &mut last, begin, (&mut early, None))).await?;
    let Decided { partial, numbers, mut ran, .. } = decided.ok_or_else(undecided)?;
    let difference = partial.difference(&mut ran, &early.written)?;
    let notify = (ran.hint != Hint::default()).then(|| wake::message(wake::NOBODY, ran.hint));
    let numbers = numbers.after(&difference);
    save_within(client, &shared.sql, &difference, numbers, notify.as_deref()).await.map_err(classified)?;
    Ok(ran)
}

/// Numbers that transactions that write move on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// The version of what is not a task.
    pub(super) version: i64,
    /// How many transactions have written.
    pub(super) write: i64,
    /// The server's number of this one.
    pub(super) transaction: i64,
}

impl Numbers {
    /// As they are when this has been written.
    fn after(self, difference: &Difference) -> Self {
        let version = self.version + i64::from(difference.changes_items());
        Self { version, write: self.write + 1, ..self }
    }
}

/// Calls that are decided.
struct Decided {
    /// What of the store they were decided over.
    partial: Partial,
    /// At what time.
    time: Now,
    numbers: Numbers,
    /// What the writer knew beside that.
    kept: Kept,
    /// Whether nobody else has written since it wrote last.
    is_alone: bool,
    ran: Ran,
}

/// Loads what calls look for until they are decided. `None` where what they look for cannot be loaded any more, because rows were written already, or where it is
/// not as it was when they were decided ahead.
async fn decide<'c>(
    client: &'c LinkTo<'c>,
    shared: &'c Shared,
    calls: &[&[Write]],
    last: &mut Last,
    begin: &str,
    (early, ahead): (&mut Early<'c>, Option<Box<Ahead>>),
) -> Result<Option<Decided>> {
    let claimed = calls.iter().map(|call| claimed_by(call)).fold(0, usize::saturating_add);
    // Keys that are over are looked for by this machine's idea of the time, which is as good.
    let now = shared.clock().now().as_microseconds();
    let mut fetcher = Fetcher::new(client, &shared.sql, claimed, last.few_wait, now);
    let beginning = Beginning::of(begin, calls, early.is_allowed());
    let Some(begun) = begin_to_write(client, shared, &mut fetcher, beginning, last, (early, ahead)).await? else {
        return Ok(None);
    };
    let Begun { mut header, mut decision, numbers, kept, is_alone, mut for_claims } = begun;
    shared.saw(header.partial.stamp());
    for _ in 0..ROUNDS {
        match step_by_step(&mut header, calls, early, for_claims.take(), decision.take()).await? {
            Ok(ran) => {
                let before = last.every_lane.saturating_sub(1);
                last.every_lane = if fetcher.wanted_many_lanes() { EVERY_LANE_EXPECTED } else { before };
                let Header { partial, now: time, .. } = header;
                return Ok(Some(Decided { partial, time, numbers, kept, is_alone, ran }));
            }
            Err(wants) if !early.leaves(&wants) => return Ok(None),
            Err(wants) => {
                early.written().await.map_err(classified)?;
                let fetched = fetcher.fetch(wants).await?;
                take(&mut header.partial, fetched)?;
            }
        }
    }
    Err(undecided())
}

/// Decides calls, or what is left of them, and sends rows of what is settled on the way. What claims look at may come meanwhile.
async fn step_by_step(
    header: &mut Header,
    calls: &[&[Write]],
    early: &mut Early<'_>,
    mut for_claims: ForClaims<'_>,
    decision: Option<Box<Decision>>,
) -> Result<Answered<Ran>> {
    let mut decision = decision.unwrap_or_else(|| Box::new(header.partial.decision(header.now)));
    let writes = if early.is_allowed() { limits::DECIDED_AT_ONCE } else { usize::MAX };
    loop {
        if let Some(mut reading) = for_claims.take_if(|_| decision.claims_next(calls)) {
            header.partial.note();
            early.beside(&mut reading).await;
            let fetched = Pin::new(&mut reading).take_output().ok_or_else(undecided)?;
            take(&mut header.partial, fetched?)?;
            if !decision.goes_on_over(&mut header.partial) {
                *decision = header.partial.decision(header.now);
            }
        }
        if !decision.advance(calls, writes)? {
            return Ok(decision.end(&header.partial));
        }
        if early.is_allowed()
            && let with_new = decision.is_behind_claims(calls)
            && let Some(rows) = decision.settled(&header.partial, &mut early.written, with_new)?
        {
            early.send(rows).await;
        }
    }
}

/// What is sent at once when a transaction begins.
struct Beginning<'b> {
    /// The statements before the lock.
    begin: &'b str,
    wants: BTreeSet<Want>,
    /// What claims look at, where other writes can be decided before that is here.
    for_claims: BTreeSet<Want>,
}

impl<'b> Beginning<'b> {
    fn of(begin: &'b str, calls: &[&[Write]], is_step_by_step: bool) -> Self {
        let (mut wants, mut for_claims) = (Vec::new(), Vec::new());
        for write in calls.iter().copied().flatten() {
            let is_later = is_step_by_step && matches!(write, Write::Claim(_));
            wanted_by(write, if is_later { &mut for_claims } else { &mut wants });
        }
        let wants: BTreeSet<Want> = wants.into_iter().collect();
        let for_claims = for_claims.into_iter().filter(|want| !wants.contains(want)).collect();
        Self { begin, wants, for_claims }
    }
}

/// What calls that are decided step by step surely look for, but for their claims.
pub(super) fn wanted_before_claims(call: &[Write]) -> BTreeSet<Want> {
    Beginning::of("", &[call], true).wants
}

/// A transaction that has begun.
struct Begun<'c> {
    header: Header,
    /// What was decided ahead.
    decision: Option<Box<Decision>>,
    numbers: Numbers,
    /// What the writer knew.
    kept: Kept,
    is_alone: bool,
    for_claims: ForClaims<'c>,
}

/// What claims look at and is on its way.
type ForClaims<'c> = Option<MaybeDone<Reading<'c>>>;

/// What the server answers first, each by itself.
struct First {
    begun: std::result::Result<(), DriverError>,
    /// The numbers of the store.
    rows: std::result::Result<Vec<Row>, DriverError>,
    items: std::result::Result<Option<Vec<Row>>, DriverError>,
    fetched: Result<Vec<Fetched>>,
    unchanged: Result<HashSet<i64>>,
}

/// What is asked first in a transaction that writes.
struct Ask<'c, 's> {
    client: &'c LinkTo<'c>,
    shared: &'s Shared,
    /// The statements before the lock.
    begin: &'s str,
    /// Whose last batch is asked for.
    writer: i64,
    /// Whether what is no task is to be read: what is known of it shows by its version whether it is still so.
    with_items: bool,
}

impl<'c> Ask<'c, '_> {
    /// Sends everything and waits for it, but for what claims look at, which comes last.
    async fn first(
        self,
        fetcher: &mut Fetcher<'c>,
        sorted: &mut Sorted,
        early: &mut Early<'c>,
    ) -> (First, ForClaims<'c>) {
        let Self { client, shared: Shared { sql, .. }, begin, writer, with_items } = self;
        let (begin, counters, items) = (sql.and_lock(begin), sql.text(COUNTERS_TO_WRITE), sql.text(ITEMS));
        let writer: [(&(dyn ToSql + Sync), Type); 1] = [(&writer, Type::INT8)];
        let items = async { if with_items { client.query_typed(&items, &[]).await.map(Some) } else { Ok(None) } };
        let (begin, counters) = (client.batch_execute(&begin), client.query_typed(&counters, &writer));
        let asked = fetcher.fetch(std::mem::take(&mut sorted.asked));
        let for_claims = std::mem::take(&mut sorted.for_claims);
        let mut for_claims = (!for_claims.is_empty()).then(|| maybe_done(fetcher.fetch_too(for_claims)));
        let first = join4(begin, counters, items, join(asked, sorted.compared.unchanged(client, sql)));
        let asked = beside(for_claims.as_mut_slice(), first);
        let (begun, rows, items, (fetched, unchanged)) = early.beside(asked).await;
        (First { begun, rows, items, fetched, unchanged }, for_claims)
    }
}

/// What is wanted first, by how it is come by.
#[derive(Default)]
struct Sorted {
    /// Nobody need be asked, if nobody else has written.
    known: BTreeSet<Want>,
    compared: Compared,
    asked: BTreeSet<Want>,
    /// Asked last.
    for_claims: BTreeSet<Want>,
}

impl Sorted {
    fn of(wants: BTreeSet<Want>, for_claims: BTreeSet<Want>, last: &Last) -> Self {
        let mut sorted = Self::default();
        let kept = &last.kept;
        let is_known = |want: &Want| last.others == 0 && kept.has(want);
        // What is counted once is known from then on, as long as nobody else writes.
        let counts = last.others == 0 || last.items.as_ref().is_some_and(|(_, items)| items.counts_running());
        for want in wants {
            if is_known(&want) {
                sorted.known.insert(want);
            } else if !sorted.compared.takes(&want, kept) {
                sorted.asked.insert(counted_if(counts, want));
            }
        }
        let (known, for_claims): (BTreeSet<Want>, BTreeSet<Want>) = for_claims.into_iter().partition(is_known);
        sorted.known.extend(known);
        sorted.for_claims = for_claims.into_iter().map(|want| counted_if(counts, want)).collect();
        sorted
    }
}

/// Who counts what runs knows who runs any, too.
fn counted_if(counts: bool, want: Want) -> Want {
    if counts && want == Want::Holders { Want::Running } else { want }
}

/// Begins a transaction that writes, and reads what every one needs and what is wanted first, in one round trip; one more where somebody else has
/// changed what is not a task, or tasks of which the writer knows something that is wanted. `None` where it is not as it was when calls were decided ahead.
async fn begin_to_write<'c>(
    client: &'c LinkTo<'c>,
    shared: &Shared,
    fetcher: &mut Fetcher<'c>,
    Beginning { begin, wants, for_claims }: Beginning<'_>,
    last: &mut Last,
    (early, ahead): (&mut Early<'c>, Option<Box<Ahead>>),
) -> Result<Option<Begun<'c>>> {
    fetcher.named(&wants);
    let looks_into_every_lane = last.items.as_ref().is_some_and(|(_, items)| items.look_into_every_lane());
    fetcher.look_into_every_lane(last.every_lane > 0 || looks_into_every_lane);
    let mut sorted = Sorted::of(wants, for_claims, last);
    let ahead = ahead.map(|ahead| ahead.sent_by(early));
    let ask = Ask { client, shared, begin, writer: last.marker.writer, with_items: last.items.is_none() };
    let (First { begun, rows, items, fetched, unchanged }, mut for_claims) =
        ask.first(fetcher, &mut sorted, early).await;
    begun.map_err(classified)?;
    let rows = rows.map_err(classified)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    // A newer program has changed the tables meanwhile, and keeps there what this one does not know.
    migrate::check(&shared.sql, row.try_get::<_, i32>(9).map_err(classified)?.unsigned_abs())?;
    let number = |at: usize| row.try_get::<_, Option<i64>>(at).map_err(classified);
    let [version, write, transaction] = [number(7)?, number(10)?, number(11)?].map(Option::unwrap_or_default);
    let numbers = Numbers { version, write, transaction };
    let mut unchanged = unchanged?;
    if number(8)?.unwrap_or_default() != last.marker.batch {
        // The server crashed, and lost what this writer had written last.
        *last = Last::new();
        unchanged = HashSet::new();
    }
    let is_alone = last.write.is_some_and(|(write, _)| write == numbers.write);
    let now = time(shared, row)?;
    let given = counters(row)?;
    if ahead.as_ref().is_some_and(|ahead| !is_alone || !ahead.is_of(numbers.write, given, now)) {
        return Ok(None);
    }
    let items = match (items.map_err(classified)?, last.items.take()) {
        (Some(rows), _) => items_of(&rows)?,
        (None, Some((version, items))) if version == numbers.version => items,
        _ => {
            let text = shared.sql.text(ITEMS);
            let rows = beside(for_claims.as_mut_slice(), client.query_typed(&text, &[])).await;
            items_of(&rows.map_err(classified)?)?
        }
    };
    let counts = items.counts_running();
    let (mut header, mut decision) = match ahead {
        Some(presumed) => {
            let Presumed { header, decision, .. } = *presumed;
            (header, Some(decision))
        }
        None => (header(shared, row, (given, now), items)?, None),
    };
    take(&mut header.partial, fetched?)?;
    let mut kept = std::mem::take(&mut last.kept);
    if !is_alone {
        kept.interrupted();
    }
    let (mut known, mut unknown) = sorted.compared.parted(&unchanged, transaction);
    if is_alone { &mut known } else { &mut unknown }.append(&mut sorted.known);
    kept.give(&known, &mut header.partial);
    decision.iter_mut().for_each(|decision| decision.knows(&header.partial));
    if !unknown.is_empty() {
        let unknown = unknown.into_iter().map(|want| counted_if(counts, want)).collect();
        let fetched = beside(for_claims.as_mut_slice(), fetcher.fetch(unknown)).await?;
        take(&mut header.partial, fetched)?;
    }
    Ok(Some(Begun { header, decision, numbers, kept, is_alone, for_claims }))
}

fn items_of(rows: &[Row]) -> Result<Items> {
    Items::of(rows.iter().map(item))
}

/// Begins a transaction that reads, and reads what every one needs and what is wanted first, in one round trip.
pub(super) async fn begin_to_read(
    client: &Link,
    shared: &Shared,
    fetcher: &mut Fetcher<'_>,
    wants: BTreeSet<Want>,
) -> Result<Header> {
    let (numbers, items) = (shared.sql.text(COUNTERS_TO_READ), shared.sql.text(ITEMS));
    let (begun, rows, items, fetched) = join4(
        client.batch_execute(BEGIN_TO_READ),
        client.query_typed(&numbers, &[]),
        client.query_typed(&items, &[]),
        fetcher.fetch(wants),
    )
    .await;
    begun.map_err(classified)?;
    let (rows, items) = (rows.map_err(classified)?, items.map_err(classified)?);
    let items = items_of(&items)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    let mut header = header(shared, row, (counters(row)?, time(shared, row)?), items)?;
    header.is_ahead = row.try_get(7).map_err(classified)?;
    take(&mut header.partial, fetched?)?;
    Ok(header)
}

macro_rules! counters {
    ($day:literal, $queue:literal, $more:literal) => {
        concat!(
            "SELECT (SELECT last_value FROM {s}.last_task), (SELECT last_value FROM {s}.last_session), \
             (SELECT last_value FROM {s}.ends), (SELECT last_value FROM {s}.last_entry), \
             (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ",
            $day,
            ", ",
            $queue,
            ", ",
            $more
        )
    };
}

const COUNTERS_TO_WRITE: &str = counters!(
    "(SELECT day FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT queue FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT last_value FROM {s}.last_item), (SELECT batch FROM {s}.writer WHERE id = $1), (SELECT version FROM {s}.version), \
     (SELECT last_value FROM {s}.last_write), pg_current_xact_id()::text::bigint"
);

const COUNTERS_TO_READ: &str = counters!(
    "NULL::bigint",
    "NULL::text",
    "CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END"
);

/// Whether the server has something in its log that is not on disk: what a transaction saw before may be part of it.
pub(super) async fn is_ahead(client: &Link) -> Result<bool> {
    let ahead = "SELECT CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END";
    let rows = client.query_typed(ahead, &[]).await.map_err(classified)?;
    rows.first().ok_or_else(nothing_said)?.try_get(0).map_err(classified)
}

fn counters(row: &Row) -> Result<Counters> {
    let get = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    Ok(Counters { last_task: get(0)?, last_session: get(1)?, ends: get(2)?, last_entry: get(3)? })
}

/// The time that the store says.
fn time(shared: &Shared, row: &Row) -> Result<Now> {
    Ok(shared.now(row.try_get(4).map_err(classified)?))
}

fn header(shared: &Shared, row: &Row, (counters, now): (Counters, Now), items: Items) -> Result<Header> {
    let latest: (Option<i64>, Option<String>) =
        (row.try_get(5).map_err(classified)?, row.try_get(6).map_err(classified)?);
    let partial = Partial::new(counters, latest.0.zip(latest.1), shared.options.payload_limit, items)?;
    Ok(Header { now, partial, is_ahead: false })
}

/// The last batch of a writer that the store knows of; 0 for none.
pub(super) async fn batch_of(client: &Link, shared: &Shared, marker: Marker) -> Result<i64> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&marker.writer, Type::INT8)];
    let text = shared.sql.text("SELECT batch FROM {s}.writer WHERE id = $1");
    let rows = client.query_typed(&text, &parameters).await.map_err(classified)?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or_default())
}
