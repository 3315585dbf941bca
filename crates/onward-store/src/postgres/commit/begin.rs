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
use crate::postgres::load::row::SMALL_STATE;
use crate::postgres::load::row::item;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::eager_writes::EagerWrites;
use crate::postgres::speculation::ordered_polling::await_in_order;
use crate::postgres::speculation::own_sessions::is_valid_in_own_session;
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
    pub(in crate::postgres) working_set: WorkingSet,
    /// Whether what it shows may not be on disk yet.
    pub(in crate::postgres) is_unflushed: bool,
}

impl TransactionStart {
    fn of(server_numbers: ServerNumbers, payload_limit: usize, items: SmallState) -> Result<Self> {
        let working_set = WorkingSet::new(server_numbers.counters, server_numbers.latest_day, payload_limit, items)?;
        Ok(Self { now: server_numbers.now, working_set, is_unflushed: false })
    }
}

/// What is sent at once when a transaction begins.
pub(super) struct FirstRequests<'b> {
    /// The statements before the lock.
    begin: &'b str,
    requests: BTreeSet<LoadRequest>,
    /// What claims look at, where other writes can be decided before that is here.
    claim_requests: BTreeSet<LoadRequest>,
}

impl<'b> FirstRequests<'b> {
    pub(in crate::postgres) fn of(begin: &'b str, calls: &[&[Write]], is_step_by_step: bool) -> Self {
        let (mut requests, mut claim_requests) = (Vec::new(), Vec::new());
        for write in calls.iter().copied().flatten() {
            let is_later = is_step_by_step && matches!(write, Write::Claim(_));
            requests_of(write, if is_later { &mut claim_requests } else { &mut requests });
        }
        let requests: BTreeSet<LoadRequest> = requests.into_iter().collect();
        let claim_requests = claim_requests.into_iter().filter(|request| !requests.contains(request)).collect();
        Self { begin, requests, claim_requests }
    }
}

/// What calls that are decided step by step surely look for, but for their claims.
pub(in crate::postgres) fn requests_before_claims(call: &[Write]) -> BTreeSet<LoadRequest> {
    FirstRequests::of("", &[call], true).requests
}

/// A transaction that has begun.
pub(in crate::postgres) struct Started<'c> {
    pub(in crate::postgres) start: TransactionStart,
    /// What was decided ahead.
    pub(in crate::postgres) decision: Option<Box<Decision>>,
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// What the writer knew.
    pub(in crate::postgres) row_cache: RowCache,
    pub(in crate::postgres) is_alone: bool,
    /// Which sessions are its own.
    pub(in crate::postgres) own_sessions: BTreeSet<SessionId>,
    pub(super) claim_load: ClaimLoad<'c>,
}

/// What claims look at and is on its way.
pub(super) type ClaimLoad<'c> = Option<MaybeDone<PendingLoad<'c>>>;

/// What the server answers first, each by itself.
struct FirstReplies {
    started: std::result::Result<(), DriverError>,
    /// The numbers of the store.
    rows: std::result::Result<Vec<Row>, DriverError>,
    items: std::result::Result<Option<Vec<Row>>, DriverError>,
    loaded: Result<Vec<QueryResult>>,
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
    with_small_state: bool,
}

impl<'c> FirstQueries<'c, '_> {
    /// Sends everything and waits for it, but for what claims look at, which comes last.
    async fn first(
        self,
        loader: &mut Loader<'c>,
        sources: &mut RequestSources,
        eager_writes: &mut EagerWrites<'c>,
    ) -> (FirstReplies, ClaimLoad<'c>) {
        let Self { client, shared: Shared { sql, .. }, begin, writer, with_small_state } = self;
        let (begin, counters, items) = (sql.and_lock(begin), sql.text(COUNTERS_TO_WRITE), sql.text(SMALL_STATE));
        let writer: [(&(dyn ToSql + Sync), Type); 1] = [(&writer, Type::INT8)];
        let items = async { if with_small_state { client.query_typed(&items, &[]).await.map(Some) } else { Ok(None) } };
        let (begin, counters) = (client.batch_execute(&begin), client.query_typed(&counters, &writer));
        let requested = loader.load(std::mem::take(&mut sources.requested));
        let claim_requests = std::mem::take(&mut sources.claim_requests);
        let mut claim_load = (!claim_requests.is_empty()).then(|| maybe_done(loader.load_more(claim_requests)));
        let first = join4(begin, counters, items, join(requested, sources.validation.unchanged(client, sql)));
        let requested = await_in_order(claim_load.as_mut_slice(), first);
        let (started, rows, items, (loaded, unchanged)) = eager_writes.await_in_order(requested).await;
        (FirstReplies { started, rows, items, loaded, unchanged }, claim_load)
    }
}

/// What is wanted first, by how it is come by.
#[derive(Default)]
struct RequestSources {
    /// Nobody need be asked, if nobody else has written.
    cached: BTreeSet<LoadRequest>,
    /// Nobody need be asked, if nobody else has interfered with what this writer runs.
    presumed_valid: BTreeSet<LoadRequest>,
    validation: RowValidation,
    requested: BTreeSet<LoadRequest>,
    /// Asked last.
    claim_requests: BTreeSet<LoadRequest>,
}

impl RequestSources {
    fn of(requests: BTreeSet<LoadRequest>, claim_requests: BTreeSet<LoadRequest>, state: &WriterState) -> Self {
        let mut sources = Self::default();
        let row_cache = &state.row_cache;
        let is_cached = |request: &LoadRequest| state.others == 0 && row_cache.covers(request);
        // What is counted once is known from then on, as long as nobody else writes.
        let counts = state.others == 0 || state.items.as_ref().is_some_and(|(_, items)| items.counts_running());
        for request in requests {
            if is_cached(&request) {
                sources.cached.insert(request);
            } else if state.invalidations == 0
                && state.own_sessions.may_be_valid(&request, row_cache, state.invalidation)
            {
                sources.presumed_valid.insert(request);
            } else if !sources.validation.accepts(&request, row_cache) {
                sources.requested.insert(counted_if(counts, request));
            }
        }
        let (cached, claim_requests): (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) =
            claim_requests.into_iter().partition(is_cached);
        sources.cached.extend(cached);
        sources.claim_requests = claim_requests.into_iter().map(|request| counted_if(counts, request)).collect();
        sources
    }

    /// What the writer knows, and what has to be asked for all the same, when it has shown whether
    /// others have written before this transaction.
    fn settled(
        self,
        unchanged: &HashSet<i64>,
        (is_alone, transaction): (bool, i64),
        is_valid_in_own_session: impl Fn(&LoadRequest) -> bool,
        counts: bool,
    ) -> (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) {
        let (mut cached, mut uncached) = self.validation.split(unchanged, transaction);
        let presumed = self.cached.into_iter().chain(self.presumed_valid);
        let (mut still_valid, mut others): (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) =
            presumed.partition(|request| is_alone || is_valid_in_own_session(request));
        cached.append(&mut still_valid);
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
    loader: &mut Loader<'c>,
    FirstRequests { begin, requests, claim_requests }: FirstRequests<'_>,
    state: &mut WriterState,
    (eager_writes, plan): (&mut EagerWrites<'c>, Option<Box<Plan>>),
) -> Result<Option<Started<'c>>> {
    loader.expect(&requests);
    let reads_every_sub_queue = state.items.as_ref().is_some_and(|(_, items)| items.read_every_sub_queue());
    loader.read_every_sub_queue(state.every_sub_queue > 0 || reads_every_sub_queue);
    let mut sources = RequestSources::of(requests, claim_requests, state);
    let sent_plan = plan.map(|plan| plan.send_by(eager_writes));
    let ask =
        FirstQueries { client, shared, begin, writer: state.commit_id.writer, with_small_state: state.items.is_none() };
    let (FirstReplies { started, rows, items, loaded, unchanged }, mut claim_load) =
        ask.first(loader, &mut sources, eager_writes).await;
    started.map_err(classified)?;
    let WriterNumbers { server_numbers, numbers, batch, has_completions } =
        WriterNumbers::of(shared, &rows.map_err(classified)?)?;
    if matches!(state.completions, CompletionPhase::None | CompletionPhase::Found) {
        state.completions = if has_completions { CompletionPhase::Found } else { CompletionPhase::None };
    }
    if state.completions == CompletionPhase::Found {
        return Ok(None);
    }
    let mut unchanged = unchanged?;
    if batch != state.commit_id.number {
        // The server crashed, and lost what this writer had written last.
        state.again();
        unchanged = HashSet::new();
    }
    let is_alone = state.write.is_some_and(|(write, _)| write == numbers.write);
    if sent_plan.as_ref().is_some_and(|sent_plan| !is_alone || !sent_plan.holds_for(numbers.write, &server_numbers)) {
        return Ok(None);
    }
    let items = match items.map_err(classified)? {
        Some(rows) => small_state_of(&rows)?,
        None => current_small_state(client, shared, state.items.take(), numbers.version, &mut claim_load).await?,
    };
    let counts = items.counts_running();
    let payload_limit = match state.completions {
        // Who completed them was told that they can be.
        CompletionPhase::Consuming => bounds::PAYLOAD_BYTES_CEILING,
        CompletionPhase::None | CompletionPhase::Found | CompletionPhase::Consumed => shared.options.payload_limit,
    };
    let (mut start, mut decision) = match sent_plan.map(|sent_plan| *sent_plan) {
        Some(SentPlan { start, decision, .. }) => (start, Some(decision)),
        None => (TransactionStart::of(server_numbers, payload_limit, items)?, None),
    };
    take(&mut start.working_set, loaded?)?;
    let own_sessions = state.own_sessions.open_in(&start.working_set);
    let is_valid_in_own_session =
        |request: &LoadRequest| is_valid_in_own_session(request, &state.row_cache, numbers.invalidation, &own_sessions);
    let (cached, mut uncached) =
        sources.settled(&unchanged, (is_alone, numbers.transaction), is_valid_in_own_session, counts);
    if state.completions == CompletionPhase::Consuming && counts {
        // To count costs less than to have everybody look for work that there cannot be.
        uncached.insert(LoadRequest::RunningCounts);
    }
    let row_cache = fill_from_cache(state, is_alone, &cached, &mut start.working_set);
    decision.iter_mut().for_each(|decision| decision.adopt_coverage(&start.working_set));
    if !uncached.is_empty() {
        let loaded = await_in_order(claim_load.as_mut_slice(), loader.load(uncached)).await?;
        take(&mut start.working_set, loaded)?;
    }
    Ok(Some(Started { start, decision, numbers, row_cache, is_alone, own_sessions, claim_load }))
}

/// What is no task: as the writer knows it, or where somebody has changed it, as the store has it.
async fn current_small_state(
    client: &ServerConnection<'_>,
    shared: &Shared,
    cached: Option<(i64, SmallState)>,
    version: i64,
    claim_load: &mut ClaimLoad<'_>,
) -> Result<SmallState> {
    match cached {
        Some((cached, items)) if cached == version => Ok(items),
        _ => {
            let text = shared.sql.text(SMALL_STATE);
            let rows = await_in_order(claim_load.as_mut_slice(), client.query_typed(&text, &[])).await;
            small_state_of(&rows.map_err(classified)?)
        }
    }
}

fn small_state_of(rows: &[Row]) -> Result<SmallState> {
    SmallState::of(rows.iter().map(item))
}

/// Puts what a writer knew where calls look for it; answers what it keeps of that.
fn fill_from_cache(
    state: &mut WriterState,
    is_alone: bool,
    cached: &BTreeSet<LoadRequest>,
    working_set: &mut WorkingSet,
) -> RowCache {
    let mut row_cache = std::mem::take(&mut state.row_cache);
    if !is_alone {
        row_cache.others_committed();
    }
    row_cache.copy_to(cached, working_set);
    row_cache
}

/// Begins a transaction that reads, and reads what every one needs and what is wanted first, in one
/// round trip.
pub(in crate::postgres) async fn begin_to_read(
    client: &OwnedConnection,
    shared: &Shared,
    loader: &mut Loader<'_>,
    requests: BTreeSet<LoadRequest>,
) -> Result<TransactionStart> {
    let (numbers, items) = (shared.sql.text(COUNTERS_TO_READ), shared.sql.text(SMALL_STATE));
    let (started, rows, items, loaded) = join4(
        client.batch_execute(BEGIN_TO_READ),
        client.query_typed(&numbers, &[]),
        client.query_typed(&items, &[]),
        loader.load(requests),
    )
    .await;
    started.map_err(classified)?;
    let (rows, items) = (rows.map_err(classified)?, items.map_err(classified)?);
    let items = small_state_of(&items)?;
    let mut start = TransactionStart::of(ServerNumbers::of(shared, &rows)?, shared.options.payload_limit, items)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    start.is_unflushed = row.try_get(7).map_err(classified)?;
    take(&mut start.working_set, loaded?)?;
    Ok(start)
}

/// Whether the server has something in its log that is not on disk: what a transaction saw before
/// may be part of it.
pub(in crate::postgres) async fn is_unflushed(client: &OwnedConnection) -> Result<bool> {
    let plan = "SELECT CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END";
    let rows = client.query_typed(plan, &[]).await.map_err(classified)?;
    rows.first().ok_or_else(nothing_said)?.try_get(0).map_err(classified)
}
