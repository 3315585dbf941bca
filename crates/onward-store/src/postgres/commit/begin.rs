//! The beginning of a transaction: everything that is known to be needed is asked for at once,
//! behind the lock.

use std::collections::{BTreeSet, HashSet};

use futures_util::future::{MaybeDone, join, join4, maybe_done};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error as DriverError, Row};

use crate::api::error::Result;
use crate::api::task::SessionId;
use crate::api::write::Write;
use crate::bounds;
use crate::model::LoadRequest;
use crate::model::Now;
use crate::postgres::commit::server_numbers::{
    COUNTERS_TO_READ, COUNTERS_TO_WRITE, ServerNumbers, TransactionNumbers, WriterNumbers,
};
use crate::postgres::commit::writer_state::{CompletionPhase, WriterState};
use crate::postgres::connect::connection::{OwnedConnection, ServerConnection};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::load::found::QueryResult;
use crate::postgres::load::found::take;
use crate::postgres::load::loader::{Loader, PendingLoad};
use crate::postgres::load::row::ITEMS;
use crate::postgres::load::row::item;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::eager_writes::EagerWrites;
use crate::postgres::speculation::ordered_polling::beside;
use crate::postgres::speculation::own_sessions::is_as_kept;
use crate::postgres::speculation::plan::{Plan, SentPlan};
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::speculation::validation::RowValidation;
use crate::postgres::sql::BEGIN_TO_READ;
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::decision::Decision;
use crate::postgres::working_set::expected_requests::requests_of;
use crate::postgres::working_set::small_state::SmallState;

/// What a transaction begins with.
#[derive(Debug)]
pub(in crate::postgres) struct TransactionStart {
    pub(in crate::postgres) now: Now,
    pub(in crate::postgres) partial: WorkingSet,
    /// Whether what it shows may not be on disk yet.
    pub(in crate::postgres) is_ahead: bool,
}

impl TransactionStart {
    fn of(said: ServerNumbers, payload_limit: usize, items: SmallState) -> Result<Self> {
        let partial = WorkingSet::new(said.counters, said.latest_day, payload_limit, items)?;
        Ok(Self { now: said.now, partial, is_ahead: false })
    }
}

/// What is sent at once when a transaction begins.
pub(super) struct FirstRequests<'b> {
    /// The statements before the lock.
    begin: &'b str,
    requests: BTreeSet<LoadRequest>,
    /// What claims look at, where other writes can be decided before that is here.
    for_claims: BTreeSet<LoadRequest>,
}

impl<'b> FirstRequests<'b> {
    pub(in crate::postgres) fn of(begin: &'b str, calls: &[&[Write]], is_step_by_step: bool) -> Self {
        let (mut requests, mut for_claims) = (Vec::new(), Vec::new());
        for write in calls.iter().copied().flatten() {
            let is_later = is_step_by_step && matches!(write, Write::Claim(_));
            requests_of(write, if is_later { &mut for_claims } else { &mut requests });
        }
        let requests: BTreeSet<LoadRequest> = requests.into_iter().collect();
        let for_claims = for_claims.into_iter().filter(|request| !requests.contains(request)).collect();
        Self { begin, requests, for_claims }
    }
}

/// What calls that are decided step by step surely look for, but for their claims.
pub(in crate::postgres) fn requests_before_claims(call: &[Write]) -> BTreeSet<LoadRequest> {
    FirstRequests::of("", &[call], true).requests
}

/// A transaction that has begun.
pub(in crate::postgres) struct Started<'c> {
    pub(in crate::postgres) header: TransactionStart,
    /// What was decided ahead.
    pub(in crate::postgres) decision: Option<Box<Decision>>,
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// What the writer knew.
    pub(in crate::postgres) kept: RowCache,
    pub(in crate::postgres) is_alone: bool,
    /// Which sessions are its own.
    pub(in crate::postgres) own: BTreeSet<SessionId>,
    pub(super) for_claims: ClaimLoad<'c>,
}

/// What claims look at and is on its way.
pub(super) type ClaimLoad<'c> = Option<MaybeDone<PendingLoad<'c>>>;

/// What the server answers first, each by itself.
struct FirstReplies {
    begun: std::result::Result<(), DriverError>,
    /// The numbers of the store.
    rows: std::result::Result<Vec<Row>, DriverError>,
    items: std::result::Result<Option<Vec<Row>>, DriverError>,
    fetched: Result<Vec<QueryResult>>,
    unchanged: Result<HashSet<i64>>,
}

/// What is asked first in a transaction that writes.
struct FirstQueries<'c, 's> {
    client: &'c ServerConnection<'c>,
    shared: &'s Shared,
    /// The statements before the lock.
    begin: &'s str,
    /// Whose last batch is asked for.
    writer: i64,
    /// Whether what is no task is to be read: what is known of it shows by its version whether it
    /// is still so.
    with_items: bool,
}

impl<'c> FirstQueries<'c, '_> {
    /// Sends everything and waits for it, but for what claims look at, which comes last.
    async fn first(
        self,
        fetcher: &mut Loader<'c>,
        sorted: &mut RequestSources,
        early: &mut EagerWrites<'c>,
    ) -> (FirstReplies, ClaimLoad<'c>) {
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
        (FirstReplies { begun, rows, items, fetched, unchanged }, for_claims)
    }
}

/// What is wanted first, by how it is come by.
#[derive(Default)]
struct RequestSources {
    /// Nobody need be asked, if nobody else has written.
    cached: BTreeSet<LoadRequest>,
    /// Nobody need be asked, if nobody else has interfered with what this writer runs.
    own: BTreeSet<LoadRequest>,
    compared: RowValidation,
    asked: BTreeSet<LoadRequest>,
    /// Asked last.
    for_claims: BTreeSet<LoadRequest>,
}

impl RequestSources {
    fn of(requests: BTreeSet<LoadRequest>, for_claims: BTreeSet<LoadRequest>, last: &WriterState) -> Self {
        let mut sorted = Self::default();
        let kept = &last.kept;
        let is_cached = |request: &LoadRequest| last.others == 0 && kept.has(request);
        // What is counted once is known from then on, as long as nobody else writes.
        let counts = last.others == 0 || last.items.as_ref().is_some_and(|(_, items)| items.counts_running());
        for request in requests {
            if is_cached(&request) {
                sorted.cached.insert(request);
            } else if last.interferences == 0 && last.own.presume(&request, kept, last.interference) {
                sorted.own.insert(request);
            } else if !sorted.compared.takes(&request, kept) {
                sorted.asked.insert(counted_if(counts, request));
            }
        }
        let (cached, for_claims): (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) =
            for_claims.into_iter().partition(is_cached);
        sorted.cached.extend(cached);
        sorted.for_claims = for_claims.into_iter().map(|request| counted_if(counts, request)).collect();
        sorted
    }

    /// What the writer knows, and what has to be asked for all the same, when it has shown whether
    /// others have written before this transaction.
    fn settled(
        self,
        unchanged: &HashSet<i64>,
        (is_alone, transaction): (bool, i64),
        is_as_kept: impl Fn(&LoadRequest) -> bool,
        counts: bool,
    ) -> (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) {
        let (mut cached, mut uncached) = self.compared.split(unchanged, transaction);
        let presumed = self.cached.into_iter().chain(self.own);
        let (mut as_kept, mut others): (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) =
            presumed.partition(|request| is_alone || is_as_kept(request));
        cached.append(&mut as_kept);
        uncached.append(&mut others);
        if is_alone && counts {
            // If it is here, an end shows by it whether it makes room for anybody.
            cached.insert(LoadRequest::RunningCounts);
        }
        (cached, uncached.into_iter().map(|request| counted_if(counts, request)).collect())
    }
}

/// Who counts what runs knows who runs any, too.
fn counted_if(counts: bool, request: LoadRequest) -> LoadRequest {
    if counts && request == LoadRequest::RunningSessions { LoadRequest::RunningCounts } else { request }
}

/// Begins a transaction that writes, and reads what every one needs and what is wanted first, in
/// one round trip; one more where somebody else has changed what is not a task, or tasks of which
/// the writer knows something that is wanted. `None` where it is not as it was when calls were
/// decided ahead, and where completions are to be taken in first.
pub(super) async fn begin_to_write<'c>(
    client: &'c ServerConnection<'c>,
    shared: &Shared,
    fetcher: &mut Loader<'c>,
    FirstRequests { begin, requests, for_claims }: FirstRequests<'_>,
    last: &mut WriterState,
    (early, ahead): (&mut EagerWrites<'c>, Option<Box<Plan>>),
) -> Result<Option<Started<'c>>> {
    fetcher.named(&requests);
    let reads_every_sub_queue = last.items.as_ref().is_some_and(|(_, items)| items.read_every_sub_queue());
    fetcher.read_every_sub_queue(last.every_sub_queue > 0 || reads_every_sub_queue);
    let mut sorted = RequestSources::of(requests, for_claims, last);
    let presumed = ahead.map(|ahead| ahead.sent_by(early));
    let ask = FirstQueries { client, shared, begin, writer: last.marker.writer, with_items: last.items.is_none() };
    let (FirstReplies { begun, rows, items, fetched, unchanged }, mut for_claims) =
        ask.first(fetcher, &mut sorted, early).await;
    begun.map_err(classified)?;
    let WriterNumbers { said, numbers, batch, has_completions } =
        WriterNumbers::of(shared, &rows.map_err(classified)?)?;
    if matches!(last.completions, CompletionPhase::None | CompletionPhase::Found) {
        last.completions = if has_completions { CompletionPhase::Found } else { CompletionPhase::None };
    }
    if last.completions == CompletionPhase::Found {
        return Ok(None);
    }
    let mut unchanged = unchanged?;
    if batch != last.marker.batch {
        // The server crashed, and lost what this writer had written last.
        last.again();
        unchanged = HashSet::new();
    }
    let is_alone = last.write.is_some_and(|(write, _)| write == numbers.write);
    if presumed.as_ref().is_some_and(|presumed| !is_alone || !presumed.is_of(numbers.write, &said)) {
        return Ok(None);
    }
    let items = match items.map_err(classified)? {
        Some(rows) => items_of(&rows)?,
        None => items_now(client, shared, last.items.take(), numbers.version, &mut for_claims).await?,
    };
    let counts = items.counts_running();
    let payload_limit = match last.completions {
        // Who completed them was told that they can be.
        CompletionPhase::Consuming => bounds::PAYLOAD_BYTES_CEILING,
        CompletionPhase::None | CompletionPhase::Found | CompletionPhase::Consumed => shared.options.payload_limit,
    };
    let (mut header, mut decision) = match presumed.map(|presumed| *presumed) {
        Some(SentPlan { header, decision, .. }) => (header, Some(decision)),
        None => (TransactionStart::of(said, payload_limit, items)?, None),
    };
    take(&mut header.partial, fetched?)?;
    let own = last.own.open_in(&header.partial);
    let is_as_kept = |request: &LoadRequest| is_as_kept(request, &last.kept, numbers.interference, &own);
    let (cached, mut uncached) = sorted.settled(&unchanged, (is_alone, numbers.transaction), is_as_kept, counts);
    if last.completions == CompletionPhase::Consuming && counts {
        // To count costs less than to have everybody look for work that there cannot be.
        uncached.insert(LoadRequest::RunningCounts);
    }
    let kept = fill_from_cache(last, is_alone, &cached, &mut header.partial);
    decision.iter_mut().for_each(|decision| decision.knows(&header.partial));
    if !uncached.is_empty() {
        let fetched = beside(for_claims.as_mut_slice(), fetcher.fetch(uncached)).await?;
        take(&mut header.partial, fetched)?;
    }
    Ok(Some(Started { header, decision, numbers, kept, is_alone, own, for_claims }))
}

/// What is no task: as the writer knows it, or where somebody has changed it, as the store has it.
async fn items_now(
    client: &ServerConnection<'_>,
    shared: &Shared,
    cached: Option<(i64, SmallState)>,
    version: i64,
    for_claims: &mut ClaimLoad<'_>,
) -> Result<SmallState> {
    match cached {
        Some((cached, items)) if cached == version => Ok(items),
        _ => {
            let text = shared.sql.text(ITEMS);
            let rows = beside(for_claims.as_mut_slice(), client.query_typed(&text, &[])).await;
            items_of(&rows.map_err(classified)?)
        }
    }
}

fn items_of(rows: &[Row]) -> Result<SmallState> {
    SmallState::of(rows.iter().map(item))
}

/// Puts what a writer knew where calls look for it; answers what it keeps of that.
fn fill_from_cache(
    last: &mut WriterState,
    is_alone: bool,
    cached: &BTreeSet<LoadRequest>,
    partial: &mut WorkingSet,
) -> RowCache {
    let mut kept = std::mem::take(&mut last.kept);
    if !is_alone {
        kept.interrupted();
    }
    kept.give(cached, partial);
    kept
}

/// Begins a transaction that reads, and reads what every one needs and what is wanted first, in one
/// round trip.
pub(in crate::postgres) async fn begin_to_read(
    client: &OwnedConnection,
    shared: &Shared,
    fetcher: &mut Loader<'_>,
    requests: BTreeSet<LoadRequest>,
) -> Result<TransactionStart> {
    let (numbers, items) = (shared.sql.text(COUNTERS_TO_READ), shared.sql.text(ITEMS));
    let (begun, rows, items, fetched) = join4(
        client.batch_execute(BEGIN_TO_READ),
        client.query_typed(&numbers, &[]),
        client.query_typed(&items, &[]),
        fetcher.fetch(requests),
    )
    .await;
    begun.map_err(classified)?;
    let (rows, items) = (rows.map_err(classified)?, items.map_err(classified)?);
    let items = items_of(&items)?;
    let mut header = TransactionStart::of(ServerNumbers::of(shared, &rows)?, shared.options.payload_limit, items)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    header.is_ahead = row.try_get(7).map_err(classified)?;
    take(&mut header.partial, fetched?)?;
    Ok(header)
}

/// Whether the server has something in its log that is not on disk: what a transaction saw before
/// may be part of it.
pub(in crate::postgres) async fn is_ahead(client: &OwnedConnection) -> Result<bool> {
    let ahead = "SELECT CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END";
    let rows = client.query_typed(ahead, &[]).await.map_err(classified)?;
    rows.first().ok_or_else(nothing_said)?.try_get(0).map_err(classified)
}
