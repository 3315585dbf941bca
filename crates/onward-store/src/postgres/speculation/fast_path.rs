//! The fast path: turns that only append events to histories, as orchestration steps do, take one
//! statement, and nothing is read before it.
//!
//! They are decided over the row cache, before it is known if the cache is still valid. The
//! statement verifies that: it takes the store's lock, compares `last_write` with the number of the
//! writer's own last transaction, and writes only if they are equal. Otherwise it leaves no trace,
//! and the turns are decided in an ordinary transaction. As one statement it is one transaction,
//! even if a pooler distributes statements over connections.

use std::collections::BTreeSet;

use tokio_postgres::Error as DriverError;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::Result;
use crate::api::orchestration::AfterTurn;
use crate::api::store::Hint;
use crate::api::write::Write;
use crate::model::LoadRequest;
use crate::model::Now;
use crate::postgres::commit::outcome::{CommitOutcome, SyncMode};
use crate::postgres::commit::writer_state::{CommitId, WriterState};
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::{classified, is_retryable, leaves_commit_unknown};
use crate::postgres::shared::Shared;
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::decision::SentTasks;
use crate::postgres::working_set::expected_requests::requests_of;

/// Appends turns if no other writer has committed.
///
/// Every comparison depends on the lock (`WHERE is_had`), because its holder is about to change the
/// numbers. The statement does not wait for the lock: its holder commits, and the decision is void
/// then. So no table lock is held while another lock is waited for, and no deadlock can arise.
///
/// The statement's snapshot is older than the lock, but a sequence has no versions. The writer's
/// last transaction has committed. If `last_write` still has its number, nothing was committed
/// since, and the snapshot is current.
const APPEND_TURNS: &str = "WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended('onward {s}', 0)) AS is_had), \
     same AS MATERIALIZED (SELECT true AS it FROM lock WHERE is_had \
       AND (SELECT last_value FROM {s}.last_write WHERE is_had) = $1 \
       AND (SELECT batch FROM {s}.writer WHERE id = $2 AND is_had) = $3 \
       AND (SELECT version FROM {s}.version WHERE is_had) = $4), \
     turns AS (INSERT INTO {s}.turn (task, first, events, chunk) SELECT u.* FROM same, unnest($5, $6, $7, $8) AS u), \
     advanced AS (UPDATE {s}.task t SET instance = u.instance FROM same, unnest($9, $10) AS u (id, instance) WHERE t.id = u.id), \
     marker AS (UPDATE {s}.writer w SET batch = $3 + 1, at = now() FROM same WHERE w.id = $2) \
     SELECT setval('{s}.last_write', $1 + 1), CASE WHEN $11 THEN set_config('synchronous_commit', 'off', true) END FROM same";

/// Turns that are decided, on the condition that no other writer has committed.
struct Decided {
    working_set: WorkingSet,
    applied: Applied,
    change_set: ChangeSet,
    /// The number of the last writing transaction, which the statement compares.
    write: i64,
}

/// Applies calls that only append events to histories that the row cache covers. Returns `None` if
/// that is not possible; then nothing was written.
pub(in crate::postgres) async fn try_fast_path(
    client: &OwnedConnection,
    shared: &Shared,
    calls: &[&[Write]],
    state: &mut WriterState,
    mode: SyncMode,
) -> Option<CommitOutcome> {
    if !calls.iter().copied().flatten().all(only_appends) {
        return None;
    }
    let Ok(Some(decided)) = decide(shared, calls, state) else { return None };
    let Decided { working_set, mut applied, change_set, write } = decided;
    let commit_id = CommitId { number: state.commit_id.number + 1, ..state.commit_id };
    match send(client, shared, &change_set, (write, state.commit_id, mode)).await {
        Ok(true) => {
            state.row_cache.update(&working_set, &applied, None, state.invalidation);
            state.commit_id = commit_id;
            state.write = Some((write + 1, change_set.counters));
            state.items = state.items.take().map(|(version, _)| (version, applied.items()));
            Some(CommitOutcome::Committed { applied, commit_id, mode })
        }
        Ok(false) => None,
        Err(error) => {
            // The statement may have taken effect or not, so nothing that is cached is certain.
            state.forget();
            Some(outcome_of(error, applied, commit_id))
        }
    }
}

/// Classifies an error of the statement as for any commit.
fn outcome_of(error: DriverError, applied: Applied, commit_id: CommitId) -> CommitOutcome {
    if leaves_commit_unknown(&error) {
        return CommitOutcome::Unknown { applied, commit_id, error: classified(error) };
    }
    let again = is_retryable(&error);
    CommitOutcome::Failed { error: classified(error), again }
}

/// Returns true if a write may do nothing but append events. Neither the time nor any other task
/// affects such a write.
fn only_appends(write: &Write) -> bool {
    let Write::Turn(turn) = write else { return false };
    let has_children = !(turn.submits.is_empty() && turn.cancels.is_empty() && turn.withdraws.is_empty());
    turn.next == AfterTurn::Continue && !has_children && turn.tags.is_empty() && turn.publishes.is_empty()
}

/// Decides the calls over the row cache. Returns `None` if the cache does not cover them, or if
/// they change more than histories.
fn decide(shared: &Shared, calls: &[&[Write]], state: &WriterState) -> Result<Option<Decided>> {
    let mut requests = Vec::new();
    calls.iter().copied().flatten().for_each(|write| requests_of(write, &mut requests));
    let requests: BTreeSet<LoadRequest> = requests.into_iter().collect();
    let (Some((write, counters)), Some((_, items))) = (state.write, &state.items) else { return Ok(None) };
    if !requests.iter().all(|request| state.row_cache.covers(request)) {
        return Ok(None);
    }
    let clock = shared.clock();
    let now = Now { wall: clock.now(), steady: clock.steady() };
    let work_before = shared.hints.get().work;
    let working_set = WorkingSet::new(counters, None, shared.options.payload_limit, items.clone())?;
    let mut working_set = working_set.with_work_before(work_before);
    state.row_cache.copy_to(&requests, &mut working_set);
    let mut decision = working_set.decision(now);
    while decision.advance(calls, usize::MAX)? {}
    let Ok(mut applied) = decision.end(&working_set) else { return Ok(None) };
    let change_set = working_set.change_set(&mut applied, &SentTasks::default())?;
    let invalidates = working_set.invalidates(&applied, &state.own_sessions.open_in(&working_set));
    let only_appends_turns = change_set.only_appends() && applied.hint == Hint::default() && !invalidates;
    Ok(only_appends_turns.then_some(Decided { working_set, applied, change_set, write }))
}

/// Sends the statement. Returns false if nothing was written, because another writer has the lock
/// or has committed.
async fn send(
    client: &OwnedConnection,
    shared: &Shared,
    change_set: &ChangeSet,
    (write, last, mode): (i64, CommitId, SyncMode),
) -> std::result::Result<bool, DriverError> {
    let (turns, advanced) = (&change_set.turns, &change_set.advanced);
    let tasks: Vec<i64> = turns.iter().map(|row| row.task).collect();
    let first: Vec<i64> = turns.iter().map(|row| row.first).collect();
    let events: Vec<i64> = turns.iter().map(|row| row.events).collect();
    let chunks: Vec<&[u8]> = turns.iter().map(|row| &row.chunk[..]).collect();
    let ids: Vec<i64> = advanced.iter().map(|row| row.id).collect();
    let instances: Vec<&[u8]> = advanced.iter().map(|row| row.instance.as_slice()).collect();
    let is_synced_later = mode != SyncMode::InCommit;
    let schema = shared.options.migrations.newest().cast_signed();
    let parameters: [(&(dyn ToSql + Sync), Type); 11] = [
        (&write, Type::INT8),
        (&last.writer, Type::INT8),
        (&last.number, Type::INT8),
        (&schema, Type::INT4),
        (&tasks, Type::INT8_ARRAY),
        (&first, Type::INT8_ARRAY),
        (&events, Type::INT8_ARRAY),
        (&chunks, Type::BYTEA_ARRAY),
        (&ids, Type::INT8_ARRAY),
        (&instances, Type::BYTEA_ARRAY),
        (&is_synced_later, Type::BOOL),
    ];
    client.query_typed(&shared.sql.text(APPEND_TURNS), &parameters).await.map(|rows| !rows.is_empty())
}
