//! The task that a claim would take first.

use std::time::Duration;

use crate::api::error::Result;
use crate::api::store::Hint;
use crate::api::task::TaskRecord;
use crate::api::timestamp::Timestamp;
use crate::api::write::Claim;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::commit::transition_log::LogBuffer;
use crate::sqlite::reads::task::task;
use crate::sqlite::reads::why::reserved;
use crate::sqlite::ready::index::MemoryTasks;

/// Returns the task that a claim would take first. It runs the search of a claim in a transaction
/// that writes nothing.
pub(in crate::sqlite) fn peek(
    connection: &Database<'_>,
    cache: &mut Cache,
    claim: &Claim,
    now: Timestamp,
    steady: Duration,
) -> Result<Option<TaskRecord>> {
    let mut transaction = Transaction {
        connection,
        cache,
        now,
        steady: microseconds(steady),
        payload_limit: 0,
        memory_tasks: MemoryTasks::default(),
        process: "",
        log: LogBuffer::default(),
        statistics: rustc_hash::FxHashMap::default(),
        hint: Hint::default(),
        work_before: 0,
        notifications: None,
        completions: Vec::new(),
        unpropagated_ends: std::collections::VecDeque::new(),
        counters_are_read: false,
    };
    let mut candidates = transaction.peek_candidates(claim)?;
    while let Some(candidate) = transaction.next_candidate(&mut candidates)? {
        candidates.pass(candidate);
        let record = task(connection, candidate.sort_key.task)?;
        let Some(record) = record.filter(|record| record.expires_at.is_none_or(|at| at > now)) else { continue };
        // A peek does not sweep, so a reservation may be out of date. It is computed again.
        let reserved = reserved(connection, transaction.cache, &record, now)?;
        if reserved.is_none_or(|(session, _)| session == claim.session) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}
