//! The beginning of a transaction: one round trip takes the store's lock and requests everything
//! that the batch is known to need.
//!
//! The requests are sent right after the lock, without waiting for its reply. Each statement runs
//! as `READ COMMITTED`, so it sees the changes that the previous lock holder committed.

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

/// The contents with which a transaction begins.
#[derive(Debug)]
pub(in crate::postgres) struct TransactionStart {
    /// The time at which the transaction decides everything.
    pub(in crate::postgres) now: Now,
    pub(in crate::postgres) working_set: WorkingSet,
    /// True if the transaction has read changes that may not be on disk yet. Only reads set it:
    /// they wait for the disk before they return.
    pub(in crate::postgres) is_unflushed: bool,
}

impl TransactionStart {
    /// Builds the empty working set over the store's counters and its small state.
    fn of(server_numbers: ServerNumbers, payload_limit: usize, items: SmallState) -> Result<Self> {
        let working_set = WorkingSet::new(server_numbers.counters, server_numbers.latest_day, payload_limit, items)?;
        Ok(Self { now: server_numbers.now, working_set, is_unflushed: false })
    }

    /// Makes the claims of the transaction account for everything that was hinted by now.
    fn with_hints_of(self, shared: &Shared) -> Self {
        let work = shared.hints.get().work;
        Self { working_set: self.working_set.with_work_before(work), ..self }
    }
}

/// The requests that are sent at once when a transaction begins.
pub(super) struct FirstRequests<'b> {
    /// The statements before the lock.
    begin: &'b str,
    requests: BTreeSet<LoadRequest>,
    /// The requests of claims, kept apart if the writes before them can be decided while they load.
    claim_requests: BTreeSet<LoadRequest>,
}

impl<'b> FirstRequests<'b> {
    /// Collects what `calls` are known to read. With `is_step_by_step` the requests of claims are
    /// separated, except those that an earlier write needs as well.
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

/// Returns what calls that are decided step by step are certain to read before their claims.
pub(in crate::postgres) fn requests_before_claims(call: &[Write]) -> BTreeSet<LoadRequest> {
    FirstRequests::of("", &[call], true).requests
}

/// A transaction that has begun.
pub(in crate::postgres) struct Started<'c> {
    pub(in crate::postgres) start: TransactionStart,
    /// The plan's decision, if the calls were decided ahead and the plan held.
    pub(in crate::postgres) decision: Option<Box<Decision>>,
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// The writer's row cache; the commit updates it.
    pub(in crate::postgres) row_cache: RowCache,
    /// True if no other writer has committed since this writer's last transaction.
    pub(in crate::postgres) is_alone: bool,
    /// The writer's own sessions that are open in this store.
    pub(in crate::postgres) own_sessions: BTreeSet<SessionId>,
    /// The load for the claims, still in flight; it was sent last.
    pub(super) claim_load: ClaimLoad<'c>,
}

/// A load for claims in flight, if the batch has claims that are decided after other writes.
pub(super) type ClaimLoad<'c> = Option<MaybeDone<PendingLoad<'c>>>;

/// The server's first replies. Each has its own result, because the first failure in order is the
/// one to report.
struct FirstReplies {
    started: std::result::Result<(), DriverError>,
    /// The store's counters.
    rows: std::result::Result<Vec<Row>, DriverError>,
    /// The small state; `None` if it was not requested.
    items: std::result::Result<Option<Vec<Row>>, DriverError>,
    /// The rows of `RequestSources::requested`.
    loaded: Result<Vec<QueryResult>>,
    /// The numbers of the cached tasks whose rows are unchanged.
    unchanged: Result<HashSet<i64>>,
}

/// The first queries of a transaction that writes.
struct FirstQueries<'c, 's> {
    client: &'c ServerConnection<'c>,
    shared: &'s Shared,
    /// The statements before the lock.
    begin: &'s str,
    /// The writer whose last batch is requested.
    writer: i64,
    /// True if the small state is to be read. A writer that has it cached compares versions
    /// instead, and reads it only after a change.
    with_small_state: bool,
}

impl<'c> FirstQueries<'c, '_> {
    /// Sends everything, and waits for all replies except the claims' load.
    ///
    /// The claims' queries are sent last: the server searches the waiting tasks while the program
    /// decides the writes before the claims. The statements are sent in the order in which they are
    /// polled first.
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

/// The first requests, by the source that serves them.
#[derive(Default)]
struct RequestSources {
    /// Served by the row cache, if no other writer has committed.
    cached: BTreeSet<LoadRequest>,
    /// Served by the row cache if no other writer has changed what runs in this writer's sessions.
    presumed_valid: BTreeSet<LoadRequest>,
    /// Served by the row cache if the row on the server is unchanged.
    validation: RowValidation,
    /// Loaded from the server.
    requested: BTreeSet<LoadRequest>,
    /// Loaded from the server after all other requests.
    claim_requests: BTreeSet<LoadRequest>,
}

impl RequestSources {
    /// Chooses the cheapest source for each request. The choice is speculative: [`Self::settled`]
    /// checks it once the writer has read the store's numbers under the lock.
    fn of(requests: BTreeSet<LoadRequest>, claim_requests: BTreeSet<LoadRequest>, state: &WriterState) -> Self {
        let mut sources = Self::default();
        let row_cache = &state.row_cache;
        let is_cached = |request: &LoadRequest| state.others == 0 && row_cache.covers(request);
        // Once counted, the running tasks stay known as long as no other writer commits.
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
        // A claim's first requests are orders and counts, which a row cannot validate. Only the
        // cache can replace them.
        let (cached, claim_requests): (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) =
            claim_requests.into_iter().partition(is_cached);
        sources.cached.extend(cached);
        sources.claim_requests = claim_requests.into_iter().map(|request| counted_if(counts, request)).collect();
        sources
    }

    /// Splits the requests into those that the row cache serves and those that must be loaded after
    /// all.
    ///
    /// Called under the lock, once the store's numbers show if another writer has committed since.
    /// `transaction` is the number of this transaction.
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
            // If the counts are loaded, the end of a task shows if it makes room for a waiting one.
            // Otherwise every end would have to wake all nodes.
            cached.insert(LoadRequest::RunningCounts);
        }
        (cached, uncached.into_iter().map(|request| counted_if(counts, request)).collect())
    }
}

/// Replaces a request for the running sessions by one for the running counts, which include them.
fn counted_if(counts: bool, request: LoadRequest) -> LoadRequest {
    if counts && request == LoadRequest::RunningSessions { LoadRequest::RunningCounts } else { request }
}

/// Begins a transaction that writes, and reads the store's numbers and the batch's first requests
/// in one round trip.
///
/// A second round trip follows if another writer has changed the small state, or a requested task
/// that the row cache was presumed to have. Returns `None` if the plan does not hold, or if
/// completions must be consumed first. The caller then rolls back.
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
        // The server crashed and lost this writer's last batch, so nothing in the cache is certain.
        state.again();
        unchanged = HashSet::new();
    }
    // `last_write` counts writing transactions: no other writer has committed if it is unchanged.
    let is_alone = state.write.is_some_and(|(write, _)| write == numbers.write);
    if sent_plan.as_ref().is_some_and(|sent_plan| !is_alone || !sent_plan.holds_for(numbers.write, &server_numbers)) {
        return Ok(None);
    }
    let items = match items.map_err(classified)? {
        Some(rows) => small_state_of(&rows)?,
        None => current_small_state(client, shared, state.items.take(), numbers.version, &mut claim_load).await?,
    };
    let counts = items.counts_running();
    let payload_limit = payload_limit(state.completions, shared);
    let (mut start, mut decision) = match sent_plan.map(|sent_plan| *sent_plan) {
        Some(SentPlan { start, decision, .. }) => (start, Some(decision)),
        // The transaction has the lock: everything that was hinted by now is committed.
        None => (TransactionStart::of(server_numbers, payload_limit, items)?.with_hints_of(shared), None),
    };
    take(&mut start.working_set, loaded?)?;
    let own_sessions = state.own_sessions.open_in(&start.working_set);
    let is_valid_in_own_session =
        |request: &LoadRequest| is_valid_in_own_session(request, &state.row_cache, numbers.invalidation, &own_sessions);
    let (cached, mut uncached) =
        sources.settled(&unchanged, (is_alone, numbers.transaction), is_valid_in_own_session, counts);
    if state.completions == CompletionPhase::Consuming && counts {
        // Counting costs less than waking every node to look for work that cannot exist.
        uncached.insert(LoadRequest::RunningCounts);
    }
    let row_cache = fill_from_cache(state, is_alone, &cached, &mut start.working_set);
    // A plan began with an emptier working set, and must record its next misses against this one.
    decision.iter_mut().for_each(|decision| decision.adopt_coverage(&start.working_set));
    if !uncached.is_empty() {
        let loaded = await_in_order(claim_load.as_mut_slice(), loader.load(uncached)).await?;
        take(&mut start.working_set, loaded)?;
    }
    Ok(Some(Started { start, decision, numbers, row_cache, is_alone, own_sessions, claim_load }))
}

/// Returns the limit for results in this transaction.
fn payload_limit(completions: CompletionPhase, shared: &Shared) -> usize {
    match completions {
        // `onward_complete` has already accepted the result against the limit of its own node.
        CompletionPhase::Consuming => bounds::PAYLOAD_BYTES_CEILING,
        CompletionPhase::None | CompletionPhase::Found | CompletionPhase::Consumed => shared.options.payload_limit,
    }
}

/// Returns the cached small state if its version is current, and reads it from the server
/// otherwise.
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

/// Decodes the small state's rows.
fn small_state_of(rows: &[Row]) -> Result<SmallState> {
    SmallState::of(rows.iter().map(item))
}

/// Copies what the row cache serves into the working set, and takes the cache out of the writer's
/// state.
///
/// The state gets it back after the commit. A transaction that fails leaves the writer with an
/// empty cache, which is always correct.
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

/// Begins a transaction that reads, and reads the store's numbers and the first requests in one
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

/// Returns true if the server's log has records that are not on disk: a transaction may have read
/// them.
pub(in crate::postgres) async fn is_unflushed(client: &OwnedConnection) -> Result<bool> {
    let plan = "SELECT CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END";
    let rows = client.query_typed(plan, &[]).await.map_err(classified)?;
    rows.first().ok_or_else(nothing_said)?.try_get(0).map_err(classified)
}
