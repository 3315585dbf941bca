//! One transaction: what calls look for, what they decide, what they change.

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
use crate::postgres::connect::error::{classified, driver_error, is_to_be_repeated, leaves_commit_unknown};
use crate::postgres::load::found::take;
use crate::postgres::load::loader::Loader;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::batch_builder::BatchBuilder;
use crate::postgres::speculation::eager_writes::EagerWrites;
use crate::postgres::speculation::fast_path::append;
use crate::postgres::speculation::plan::Plan;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::wake;
use crate::postgres::working_set::applied::Covered;
use crate::postgres::working_set::applied::{Applied, claimed_by};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::decision::{Decision, SentTasks};
use crate::postgres::working_set::small_state::SmallState;

/// For how many transactions a writer that has found that others write expects that they do.
const OTHERS_EXPECTED: u8 = 8;

/// For how many transactions a writer that has found that somebody has interfered with what runs
/// expects that.
const INTERFERENCE_EXPECTED: u8 = 8;

/// For how many transactions a writer one of whose claims has looked into many sub-queues expects that.
const EVERY_SUB_QUEUE_EXPECTED: u8 = 8;

/// How often what writes look for is loaded at the most. Each time brings them further, so that
/// this is reached by a defect alone.
const ROUNDS: usize = 10_000;

/// Applies calls in one transaction, of which the first may be decided already. What comes
/// meanwhile goes to `next`.
pub(in crate::postgres) async fn apply(
    client: &OwnedConnection,
    shared: &Shared,
    calls: &[&[Write]],
    last: &mut WriterState,
    ahead: Option<Box<Plan>>,
    next: &mut BatchBuilder,
) -> CommitOutcome {
    if let Some(fate) = append(client, shared, calls, last, next.mode(shared, false)).await {
        return fate;
    }
    // What a transaction took in that came to nothing is there again.
    last.completions = CompletionPhase::None;
    let mut early = EagerWrites::of(client, &shared.sql, calls);
    let mut decided = decide(client, shared, calls, last, client.begin(), (&mut early, ahead)).await;
    if let Ok(None) = decided {
        drop(early);
        early = EagerWrites::never(client, &shared.sql);
        decided = match client.batch_execute("ROLLBACK").await.map_err(classified) {
            Ok(()) => decide_in_turn(client, shared, calls, last, client.begin(), &mut early).await,
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
async fn fail(client: &OwnedConnection, error: Error, early: &mut EagerWrites<'_>) -> CommitOutcome {
    // What was written before may have failed first, and what came behind it because of that.
    let error = early.written().await.err().map_or(error, classified);
    // A connection on which this fails is not used again.
    let is_over = client.batch_execute("ROLLBACK").await.is_err();
    let again = is_over || driver_error(&error).is_some_and(is_to_be_repeated);
    CommitOutcome::Failed { error, again }
}

/// Writes what was decided, and commits. What the writer keeps is worked out while the server
/// writes, and what comes next is decided as far as it can be.
async fn commit(
    client: &OwnedConnection,
    shared: &Shared,
    last: &mut WriterState,
    decided: Decided,
    mut early: EagerWrites<'_>,
    (calls, next): (&[&[Write]], &mut BatchBuilder),
) -> CommitOutcome {
    let Decided { partial, time, numbers, mut kept, is_alone, own, mut ran } = decided;
    let difference = match partial.difference(&mut ran, &early.written) {
        Ok(difference) => difference,
        Err(error) => return fail(client, error, &mut early).await,
    };
    let marker = CommitId { batch: last.marker.batch + 1, ..last.marker };
    let notify = (ran.hint != Hint::default()).then(|| shared.message(ran.hint));
    let is_large = calls.iter().map(|call| call.len()).sum::<usize>() >= bounds::HELD_UP;
    let mode = next.mode(shared, !is_alone && is_large);
    let was_disturbed = last.write.is_some() && numbers.interference != last.interference;
    let numbers = numbers.after(&difference, partial.interferes(&ran, &own));
    let saving = Saving { difference: &difference, marker, numbers, notify: notify.as_deref(), mode };
    let mut saved = pin!(save_and_commit(client, &shared.sql, &saving, early.into_sent()));
    // All of it is on its way when this is first polled, and who carries it gets a turn.
    let at_once = saved.as_mut().now_or_never();
    tokio::task::yield_now().await;
    kept.follow(&partial, &ran, Some(numbers.transaction), numbers.interference);
    let few_wait = partial.few_wait().unwrap_or(last.few_wait);
    let latest_day = ran.latest_day();
    let (before, opened) = (difference.counters_before.last_session, difference.counters.last_session);
    let own = last.own.with_those_of(&ran, before, opened);
    let items = Some((numbers.version, ran.items()));
    drop(partial);
    let write = Some((numbers.write, difference.counters));
    let after = Box::new(WriterState {
        marker,
        items,
        write,
        kept,
        time: Some(time),
        latest_day,
        others: if is_alone { last.others.saturating_sub(1) } else { OTHERS_EXPECTED },
        own,
        interference: numbers.interference,
        interferences: if was_disturbed { INTERFERENCE_EXPECTED } else { last.interferences.saturating_sub(1) },
        few_wait,
        every_sub_queue: last.every_sub_queue,
        completions: CompletionPhase::None,
    });
    let saved = match at_once {
        Some(saved) => saved,
        None => next.prepare_until(shared, &after, saved).await,
    };
    match saved {
        Ok(()) => {
            *last = *after;
            CommitOutcome::Committed { ran, marker, mode }
        }
        Err(error) if leaves_commit_unknown(&error) => CommitOutcome::Unknown { ran, marker, error: classified(error) },
        Err(error) => {
            let again = is_to_be_repeated(&error);
            let _ = client.batch_execute("ROLLBACK").await;
            CommitOutcome::Failed { error: classified(error), again }
        }
    }
}

#[cold]
fn undecided() -> Error {
    Error::io("what writes look for cannot be loaded; this is a defect of the PostgreSQL store")
}

/// Applies calls within a transaction that others begin and commit, and that sees what was
/// committed before each statement; `begin` stands before the lock. Each call is all or nothing;
/// what is refused, the caller undoes.
pub(super) async fn apply_within(
    client: &ServerConnection<'_>,
    shared: &Shared,
    calls: &[&[Write]],
    begin: &str,
) -> Result<Applied> {
    let mut early = EagerWrites::never(client, &shared.sql);
    // It is large, and may be part of what opens a store.
    let mut last = WriterState::new();
    let decided = Box::pin(decide_in_turn(client, shared, calls, &mut last, begin, &mut early)).await?;
    save(client, shared, decided.ok_or_else(undecided)?, true).await
}

/// The same without a look for completions, and without a word to others; `items` is what may be
/// known of what is no task.
pub(super) async fn apply_completions(
    client: &ServerConnection<'_>,
    shared: &Shared,
    calls: &[&[Write]],
    items: Option<(i64, SmallState)>,
) -> Result<Applied> {
    let mut early = EagerWrites::never(client, &shared.sql);
    let mut last = WriterState { completions: CompletionPhase::Consuming, items, ..WriterState::new() };
    let decided = Box::pin(decide(client, shared, calls, &mut last, "", (&mut early, None))).await?;
    save(client, shared, decided.ok_or_else(undecided)?, false).await
}

/// Writes what was decided, and has others told when it is committed.
async fn save(client: &ServerConnection<'_>, shared: &Shared, decided: Decided, tells: bool) -> Result<Applied> {
    let Decided { partial, numbers, own, mut ran, .. } = decided;
    let difference = partial.difference(&mut ran, &SentTasks::default())?;
    let notify = (tells && ran.hint != Hint::default()).then(|| wake::message(wake::NOBODY, ran.hint));
    let numbers = numbers.after(&difference, partial.interferes(&ran, &own));
    save_within(client, &shared.sql, &difference, numbers, notify.as_deref()).await.map_err(classified)?;
    Ok(ran)
}

/// Calls that are decided.
struct Decided {
    /// What of the store they were decided over.
    partial: WorkingSet,
    /// At what time.
    time: Now,
    numbers: TransactionNumbers,
    /// What the writer knew beside that.
    kept: RowCache,
    /// Whether nobody else has written since it wrote last.
    is_alone: bool,
    /// Which sessions are its own.
    own: BTreeSet<SessionId>,
    ran: Applied,
}

/// Decides calls in a transaction in which nothing has been written yet, behind the completions, if
/// there are any.
async fn decide_in_turn<'c>(
    client: &'c ServerConnection<'c>,
    shared: &'c Shared,
    calls: &[&[Write]],
    last: &mut WriterState,
    begin: &str,
    early: &mut EagerWrites<'c>,
) -> Result<Option<Decided>> {
    let decided = decide(client, shared, calls, last, begin, (early, None)).await?;
    if last.completions == CompletionPhase::None {
        return Ok(decided);
    }
    let ConsumedCompletions { hint, news } = completions::take_in(client, shared, last.items.as_ref()).await?;
    last.forget();
    last.completions = CompletionPhase::Consumed;
    let mut decided = decide(client, shared, calls, last, "", (early, None)).await?;
    if let Some(Decided { ran, .. }) = &mut decided {
        ran.hint.add(hint);
        ran.news.splice(..0, news);
    }
    Ok(decided)
}

/// Loads what calls look for until they are decided. `None` where what they look for cannot be
/// loaded any more, because rows were written already, or where it is not as it was when they were
/// decided ahead, or completions are to be taken in first.
async fn decide<'c>(
    client: &'c ServerConnection<'c>,
    shared: &'c Shared,
    calls: &[&[Write]],
    last: &mut WriterState,
    begin: &str,
    (early, ahead): (&mut EagerWrites<'c>, Option<Box<Plan>>),
) -> Result<Option<Decided>> {
    let claimed = calls.iter().map(|call| claimed_by(call)).fold(0, usize::saturating_add);
    // Keys that are over are looked for by this machine's idea of the time, which is as good.
    let now = shared.clock().now().as_microseconds();
    let mut fetcher = Loader::new(client, &shared.sql, claimed, last.few_wait, now);
    let beginning = FirstRequests::of(begin, calls, early.is_allowed());
    let Some(begun) = begin_to_write(client, shared, &mut fetcher, beginning, last, (early, ahead)).await? else {
        return Ok(None);
    };
    let Started { mut header, mut decision, numbers, kept, is_alone, own, mut for_claims } = begun;
    if last.completions == CompletionPhase::None {
        shared.saw(header.partial.stamp());
    }
    for _ in 0..ROUNDS {
        match step_by_step(&mut header, calls, early, for_claims.take(), decision.take()).await? {
            Ok(ran) => {
                let before = last.every_sub_queue.saturating_sub(1);
                last.every_sub_queue =
                    if fetcher.requested_many_sub_queues() { EVERY_SUB_QUEUE_EXPECTED } else { before };
                let TransactionStart { partial, now: time, .. } = header;
                return Ok(Some(Decided { partial, time, numbers, kept, is_alone, own, ran }));
            }
            Err(requests) if !early.leaves(&requests) => return Ok(None),
            Err(requests) => {
                early.written().await.map_err(classified)?;
                let fetched = fetcher.fetch(requests).await?;
                take(&mut header.partial, fetched)?;
            }
        }
    }
    Err(undecided())
}

/// Decides calls, or what is left of them, and sends rows of what is settled on the way. What
/// claims look at may come meanwhile.
async fn step_by_step(
    header: &mut TransactionStart,
    calls: &[&[Write]],
    early: &mut EagerWrites<'_>,
    mut for_claims: ClaimLoad<'_>,
    decision: Option<Box<Decision>>,
) -> Result<Covered<Applied>> {
    let mut decision = decision.unwrap_or_else(|| Box::new(header.partial.decision(header.now)));
    let writes = if early.is_allowed() { bounds::DECIDED_AT_ONCE } else { usize::MAX };
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

/// The last batch of a writer that the store knows of; 0 for none.
pub(super) async fn batch_of(client: &OwnedConnection, shared: &Shared, marker: CommitId) -> Result<i64> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&marker.writer, Type::INT8)];
    let text = shared.sql.text("SELECT batch FROM {s}.writer WHERE id = $1");
    let rows = client.query_typed(&text, &parameters).await.map_err(classified)?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?.unwrap_or_default())
}
