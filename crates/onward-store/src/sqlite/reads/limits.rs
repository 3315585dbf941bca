//! Limits with their current use.

use std::time::Duration;

use crate::api::error::Result;
use crate::api::limit::{Limit, LimitRecord, LimitScope};
use crate::sqlite::commit::cache::{Cache, scope_number};
use crate::sqlite::commit::connection::Database;
use crate::sqlite::limits::limit_usage::ScopeNumber;

/// Returns the limits with their current use.
pub(in crate::sqlite) fn limits(
    connection: &Database<'_>,
    cache: &mut Cache,
    now: Duration,
) -> Result<Vec<LimitRecord>> {
    let mut scopes: Vec<LimitScope> = cache.limits.configured().keys().cloned().collect();
    scopes.extend(cache.names.queues().filter_map(|(name, number)| {
        cache.queues.settings(number).concurrency.map(|_| LimitScope::Queue(name.clone()))
    }));
    scopes.sort();
    scopes.dedup();
    scopes.into_iter().map(|scope| record(connection, cache, scope, now)).collect()
}

/// Returns one limit. A group without a state has used nothing.
fn record(connection: &Database<'_>, cache: &mut Cache, scope: LimitScope, now: Duration) -> Result<LimitRecord> {
    let mut limit = cache.limits.configured().get(&scope).copied().unwrap_or_default();
    let full = |limit: Limit| limit.rate.map(|rate| rate.burst);
    let (running, tokens) = match &scope {
        LimitScope::Groups(_) => (None, None),
        LimitScope::Group(name) => match cache.names.group(name) {
            Some(group) => {
                let usage = cache.limits.group(connection, group)?.usage;
                (Some(usage.running), limit.rate.map(|rate| usage.bucket.tokens(rate, now)))
            }
            None => (Some(0), full(limit)),
        },
        LimitScope::All | LimitScope::Queue(_) | LimitScope::Kind(_) => {
            let number = scope_number(&cache.names, &scope);
            let usage = number.and_then(|number| cache.limits.usage(number));
            let tokens = limit.rate.and_then(|rate| usage.map(|usage| usage.bucket.tokens(rate, now)));
            let mut running = usage.map_or(0, |usage| usage.running);
            if let Some(ScopeNumber::Queue(queue)) = number {
                limit.concurrency = cache.queues.settings(queue).concurrency;
                running = cache.queues.running(queue).unwrap_or(running);
            }
            (Some(running), tokens.or_else(|| full(limit)))
        }
    };
    Ok(LimitRecord { scope, limit, running: running.map(i64::unsigned_abs), tokens })
}
