//! One transaction: it loads what the calls read, decides them, and writes what they change.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};

use futures_util::FutureExt;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::{Error, Result};
use crate::api::store::Hint;
use crate::api::task::SessionId;
use crate::api::write::Write;
use crate::bounds;
use crate::model::Now;
use crate::postgres::commit::begin::{ClaimLoad, FirstRequests, Started, TransactionStart, begin_to_write};
use crate::postgres::commit::completions;
use crate::postgres::commit::completions::ConsumedCompletions;
use crate::postgres::commit::outcome::CommitOutcome;
use crate::postgres::commit::server_numbers::TransactionNumbers;
use crate::postgres::commit::write_rows::{Saving, save_and_commit, save_within};
use crate::postgres::commit::writer_state::{CommitId, CompletionPhase, WriterState};
use crate::postgres::connect::connection::{OwnedConnection, ServerConnection};
use crate::postgres::connect::error::{classified, driver_error, is_retryable, leaves_commit_unknown};
use crate::postgres::load::found::take;
use crate::postgres::load::loader::Loader;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::batch_builder::BatchBuilder;
use crate::postgres::speculation::eager_writes::EagerWrites;
use crate::postgres::speculation::fast_path::try_fast_path;
use crate::postgres::speculation::plan::Plan;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::wake;
use crate::postgres::working_set::applied::Covered;
use crate::postgres::working_set::applied::{Applied, claimed_by};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::decision::{Decision, SentTasks};
use crate::postgres::working_set::small_state::SmallState;

/// The number of transactions for which a writer expects further foreign commits after one.
const OTHERS_EXPECTED: u8 = 8;

/// The number of transactions for which a writer expects further invalidations after one.
const INVALIDATION_EXPECTED: u8 = 8;

/// The number of transactions for which a writer expects its claims to search many sub-queues after
/// one did.
const WIDE_SEARCH_TRANSACTIONS: u8 = 8;

/// The most rounds of loading in one transaction. Each round lets the decision get further, so only
/// a defect reaches this.
const ROUNDS: usize = 10_000;

/// Applies calls in one transaction; the plan may have decided the first of them. `builder`
/// collects the next batch in the meantime.
pub(in crate::postgres) async fn apply(
    client: &OwnedConnection,
    shared: &Shared,
    calls: &[&[Write]],
    state: &mut WriterState,
    plan: Option<Box<Plan>>,
    builder: &mut BatchBuilder,
) -> CommitOutcome {
    if let Some(outcome) = try_fast_path(client, shared, calls, state, builder.mode(shared, false)).await {
        return outcome;
    }
    // If an earlier transaction consumed completions and was rolled back, they are pending again.
    state.completions = CompletionPhase::None;
    let mut eager_writes = EagerWrites::of(client, &shared.sql, calls);
    let mut decided = decide(client, shared, calls, state, client.begin(), (&mut eager_writes, plan)).await;
    if let Ok(None) = decided {
        // The speculation did not hold. The calls are decided again in a new transaction, without a
        // plan and without eager writes.
        drop(eager_writes);
        eager_writes = EagerWrites::never(client, &shared.sql);
        decided = match client.batch_execute("ROLLBACK").await.map_err(classified) {
            Ok(()) => decide_in_turn(client, shared, calls, state, client.begin(), &mut eager_writes).await,
            Err(error) => Err(error),
        };
    }
    match decided {
        Ok(Some(decided)) => commit(client, shared, state, decided, eager_writes, (calls, builder)).await,
        Ok(None) => fail(client, undecided(), &mut eager_writes).await,
        Err(error) => fail(client, error, &mut eager_writes).await,
    }
}

/// Rolls back and classifies the error.
async fn fail(client: &OwnedConnection, error: Error, eager_writes: &mut EagerWrites<'_>) -> CommitOutcome {
    // A statement that was sent before may have failed first. Then the later errors only follow
    // from it.
    let error = eager_writes.written().await.err().map_or(error, classified);
    // A failed rollback means a broken connection, which is not used again.
    let is_over = client.batch_execute("ROLLBACK").await.is_err();
    let again = is_over || driver_error(&error).is_some_and(is_retryable);
    CommitOutcome::Failed { error, again }
}

/// Writes the change set and commits. While the server works on that, the program computes the
/// writer's next state and prepares the next batch.
async fn commit(
    client: &OwnedConnection,
    shared: &Shared,
    state: &mut WriterState,
    decided: Decided,
    mut eager_writes: EagerWrites<'_>,
    (calls, builder): (&[&[Write]], &mut BatchBuilder),
) -> CommitOutcome {
    let Decided { working_set, time, numbers, mut row_cache, is_alone, own_sessions, mut applied } = decided;
    let change_set = match working_set.change_set(&mut applied, &eager_writes.written) {
        Ok(change_set) => change_set,
        Err(error) => return fail(client, error, &mut eager_writes).await,
    };
    let commit_id = CommitId { number: state.commit_id.number + 1, ..state.commit_id };
    let notify = (applied.hint != Hint::default()).then(|| shared.message(applied.hint));
    let is_large = calls.iter().map(|call| call.len()).sum::<usize>() >= bounds::HELD_UP;
    let mode = builder.mode(shared, !is_alone && is_large);
    let was_invalidated = state.write.is_some() && numbers.invalidation != state.invalidation;
    let numbers = numbers.after(&change_set, working_set.invalidates(&applied, &own_sessions));
    let saving = Saving { change_set: &change_set, commit_id, numbers, notify: notify.as_deref(), mode };
    let mut saved = pin!(save_and_commit(client, &shared.sql, &saving, eager_writes.into_sent()));
    // The first poll sends everything. Yielding lets the connection's task write it to the socket.
    let at_once = saved.as_mut().now_or_never();
    tokio::task::yield_now().await;
    row_cache.update(&working_set, &applied, Some(numbers.transaction), numbers.invalidation);
    let all_waiting_loaded = working_set.all_waiting_loaded().unwrap_or(state.all_waiting_loaded);
    let latest_day = applied.latest_day();
    let (before, opened) = (change_set.counters_before.last_session, change_set.counters.last_session);
    let own_sessions = state.own_sessions.with_those_of(&applied, before, opened);
    let items = Some((numbers.version, applied.items()));
    drop(working_set);
    let write = Some((numbers.write, change_set.counters));
    // The state is installed only after the commit has succeeded.
    let after = Box::new(WriterState {
        commit_id,
        items,
        write,
        row_cache,
        time: Some(time),
        latest_day,
        others: if is_alone { state.others.saturating_sub(1) } else { OTHERS_EXPECTED },
        own_sessions,
        invalidation: numbers.invalidation,
        invalidations: if was_invalidated { INVALIDATION_EXPECTED } else { state.invalidations.saturating_sub(1) },
        all_waiting_loaded,
        every_sub_queue: state.every_sub_queue,
        completions: CompletionPhase::None,
    });
    let saved = match at_once {
        Some(saved) => saved,
        None => builder.prepare_until(shared, &after, saved).await,
    };
    match saved {
        Ok(()) => {
            *state = *after;
            CommitOutcome::Committed { applied, commit_id, mode }
        }
        Err(error) if leaves_commit_unknown(&error) => {
            CommitOutcome::Unknown { applied, commit_id, error: classified(error) }
        }
        Err(error) => {
            let again = is_retryable(&error);
            let _ = client.batch_execute("ROLLBACK").await;
            CommitOutcome::Failed { error: classified(error), again }
        }
    }
}

/// The error for writes that still miss rows after all rounds of loading.
#[cold]
fn undecided() -> Error {
    Error::io("the rows that a write needs cannot be loaded; this is a defect of the PostgreSQL store")
}

/// Applies calls within a transaction that another component begins and commits, and in which each
/// statement sees what was committed before it.
///
/// `begin` is sent before the lock. Each call is all or nothing, but a refused call is rolled back
/// by the caller.
pub(super) async fn apply_within(
    client: &ServerConnection<'_>,
    shared: &Shared,
    calls: &[&[Write]],
    begin: &str,
) -> Result<Applied> {
    let mut eager_writes = EagerWrites::never(client, &shared.sql);
    // The future is large, and may be part of the future that opens a store.
    let mut state = WriterState::new();
    let decided = Box::pin(decide_in_turn(client, shared, calls, &mut state, begin, &mut eager_writes)).await?;
    save(client, shared, decided.ok_or_else(undecided)?, true).await
}

/// Applies completions like [`apply_within`], without a search for completions and without a
/// notification. `items` is the cached small state and its version.
pub(super) async fn apply_completions(
    client: &ServerConnection<'_>,
    shared: &Shared,
    calls: &[&[Write]],
    items: Option<(i64, SmallState)>,
) -> Result<Applied> {
    let mut eager_writes = EagerWrites::never(client, &shared.sql);
    let mut state = WriterState { completions: CompletionPhase::Consuming, items, ..WriterState::new() };
    let decided = Box::pin(decide(client, shared, calls, &mut state, "", (&mut eager_writes, None))).await?;
    save(client, shared, decided.ok_or_else(undecided)?, false).await
}

/// Writes the change set, and has other processes notified at the commit if `notifies`.
async fn save(client: &ServerConnection<'_>, shared: &Shared, decided: Decided, notifies: bool) -> Result<Applied> {
    let Decided { working_set, numbers, own_sessions, mut applied, .. } = decided;
    let change_set = working_set.change_set(&mut applied, &SentTasks::default())?;
    let notify = (notifies && applied.hint != Hint::default()).then(|| wake::message(wake::NO_NODE, applied.hint));
    let numbers = numbers.after(&change_set, working_set.invalidates(&applied, &own_sessions));
    save_within(client, &shared.sql, &change_set, numbers, notify.as_deref()).await.map_err(classified)?;
    Ok(applied)
}

/// Calls that are decided but not written.
struct Decided {
    /// The working set over which they were decided.
    working_set: WorkingSet,
    /// The time at which they were decided.
    time: Now,
    /// The store's numbers as of the beginning.
    numbers: TransactionNumbers,
    /// The writer's row cache, without the changes of these calls.
    row_cache: RowCache,
    /// True if no other writer has committed since this writer's last transaction.
    is_alone: bool,
    /// The writer's own sessions that are open.
    own_sessions: BTreeSet<SessionId>,
    applied: Applied,
}

/// Decides calls in a transaction in which nothing has been written yet. Pending completions are
/// consumed first.
async fn decide_in_turn<'c>(
    client: &'c ServerConnection<'c>,
    shared: &'c Shared,
    calls: &[&[Write]],
    state: &mut WriterState,
    begin: &str,
    eager_writes: &mut EagerWrites<'c>,
) -> Result<Option<Decided>> {
    let decided = decide(client, shared, calls, state, begin, (eager_writes, None)).await?;
    if state.completions == CompletionPhase::None {
        return Ok(decided);
    }
    let ConsumedCompletions { hint, notifications } =
        completions::take_in(client, shared, state.items.as_ref()).await?;
    // The completions changed the store within this transaction, so the calls are decided from a
    // fresh start.
    state.forget();
    state.completions = CompletionPhase::Consumed;
    let mut decided = decide(client, shared, calls, state, "", (eager_writes, None)).await?;
    if let Some(Decided { applied, .. }) = &mut decided {
        applied.hint.add(hint);
        applied.notifications.splice(..0, notifications);
    }
    Ok(decided)
}

/// Loads what the calls read, until they are decided.
///
/// Returns `None` if the speculation did not hold: a request can no longer be loaded because rows
/// were already written, or a premise of the plan is wrong, or completions must be consumed first.
async fn decide<'c>(
    client: &'c ServerConnection<'c>,
    shared: &'c Shared,
    calls: &[&[Write]],
    state: &mut WriterState,
    begin: &str,
    (eager_writes, plan): (&mut EagerWrites<'c>, Option<Box<Plan>>),
) -> Result<Option<Decided>> {
    let claimed = calls.iter().map(|call| claimed_by(call)).fold(0, usize::saturating_add);
    // Expired keys are searched with this machine's clock; their removal is not urgent.
    let now = shared.clock().now().as_microseconds();
    let mut loader = Loader::new(client, &shared.sql, claimed, state.all_waiting_loaded, now);
    let beginning = FirstRequests::of(begin, calls, eager_writes.is_allowed());
    let Some(started) = begin_to_write(client, shared, &mut loader, beginning, state, (eager_writes, plan)).await?
    else {
        return Ok(None);
    };
    let Started { mut start, mut decision, numbers, row_cache, is_alone, own_sessions, mut claim_load } = started;
    if state.completions == CompletionPhase::None {
        // If another node has committed since the last stamp, the waiting callers of this process
        // must read again.
        shared.record_stamp(start.working_set.stamp());
    }
    for _ in 0..ROUNDS {
        match step_by_step(&mut start, calls, eager_writes, claim_load.take(), decision.take()).await? {
            Ok(applied) => {
                let before = state.every_sub_queue.saturating_sub(1);
                state.every_sub_queue =
                    if loader.requested_many_sub_queues() { WIDE_SEARCH_TRANSACTIONS } else { before };
                let TransactionStart { working_set, now: time, .. } = start;
                return Ok(Some(Decided { working_set, time, numbers, row_cache, is_alone, own_sessions, applied }));
            }
            Err(requests) if !eager_writes.can_still_load(&requests) => return Ok(None),
            Err(requests) => {
                // The error of a row sent before would otherwise show as an error of this load.
                eager_writes.written().await.map_err(classified)?;
                let loaded = loader.load(requests).await?;
                take(&mut start.working_set, loaded)?;
            }
        }
    }
    Err(undecided())
}

/// Decides the calls, or the rest of them, and sends the rows that become final on the way. The
/// claims' load may arrive in the meantime.
async fn step_by_step(
    start: &mut TransactionStart,
    calls: &[&[Write]],
    eager_writes: &mut EagerWrites<'_>,
    mut claim_load: ClaimLoad<'_>,
    decision: Option<Box<Decision>>,
) -> Result<Covered<Applied>> {
    let mut decision = decision.unwrap_or_else(|| Box::new(start.working_set.decision(start.now)));
    let writes = if eager_writes.is_allowed() { bounds::DECIDED_AT_ONCE } else { usize::MAX };
    loop {
        // Only a claim waits for the claims' load. Everything before it is decided and sent first.
        if let Some(mut loading) = claim_load.take_if(|_| decision.claims_next(calls)) {
            start.working_set.record_loads();
            eager_writes.await_in_order(&mut loading).await;
            let loaded = Pin::new(&mut loading).take_output().ok_or_else(undecided)?;
            take(&mut start.working_set, loaded?)?;
            // An earlier write may have read as absent what has arrived. Then the decision begins
            // again.
            if !decision.resume_over(&mut start.working_set) {
                *decision = start.working_set.decision(start.now);
            }
        }
        if !decision.advance(calls, writes)? {
            return Ok(decision.end(&start.working_set));
        }
        if eager_writes.is_allowed()
            && let with_new = decision.is_behind_claims(calls)
            && let Some(rows) = decision.settled(&start.working_set, &mut eager_writes.written, with_new)?
        {
            eager_writes.send(rows).await;
        }
    }
}

/// Returns the number of a writer's last batch in the store; 0 if there is none.
pub(super) async fn batch_of(client: &OwnedConnection, shared: &Shared, commit_id: CommitId) -> Result<i64> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&commit_id.writer, Type::INT8)];
    let text = shared.sql.text("SELECT batch FROM {s}.writer WHERE id = $1");
    let rows = client.query_typed(&text, &parameters).await.map_err(classified)?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or_default())
}
