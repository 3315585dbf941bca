//! Validation: unverified tasks of the row cache that run in no [own
//! session](crate::postgres::speculation::own_sessions) are compared with their rows. They are
//! valid if no other writer has written the rows and they still have no relations. A valid task is
//! neither read nor sent nor decoded.
//!
//! A row has the number of the transaction that wrote it (`xmin`). A writer knows the numbers of
//! its own transactions, and has applied their changes to its cache. So a row that one of them
//! wrote last is equal to the cached task.
//!
//! A server that crashed may assign transaction numbers again. A writer whose last transaction is
//! lost forgets everything. If that transaction is not lost, neither are the earlier ones, and
//! their numbers stay assigned.

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::types::Type;

use crate::api::error::Result;
use crate::api::task::TaskId;
use crate::model::LoadRequest;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::sql::Sql;

/// Returns the tasks `$1` that still exist, were last written by one of the transactions `$2`, and
/// have no relations. As in the query that loads tasks, each table is tested for being empty once
/// per statement.
const UNCHANGED: &str = "SELECT array_agg(t.id) FROM {s}.task t WHERE t.id = ANY($1) AND t.xmin = ANY($2) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.dependency)) \
       AND (EXISTS (SELECT 1 FROM {s}.dependency w WHERE w.dependent = t.id) OR EXISTS (SELECT 1 FROM {s}.dependency w WHERE w.task = t.id))) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.batch_item)) \
       AND (EXISTS (SELECT 1 FROM {s}.batch_item m WHERE m.task = t.id) OR EXISTS (SELECT 1 FROM {s}.batch_item m WHERE m.batch = t.id))) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.task WHERE parent IS NOT NULL) OR EXISTS (SELECT 1 FROM {s}.history WHERE parent IS NOT NULL)) \
       AND (EXISTS (SELECT 1 FROM {s}.task c WHERE c.parent = t.id) OR EXISTS (SELECT 1 FROM {s}.history c WHERE c.parent = t.id))) \
     AND (t.key IS NULL OR EXISTS (SELECT 1 FROM {s}.unique_key k WHERE k.kind = t.kind AND k.key = t.key AND k.task = t.id AND k.until IS NULL))";

/// The tasks to compare, and the transactions that wrote them.
#[derive(Debug, Default)]
pub(in crate::postgres) struct RowValidation {
    /// The numbers of the tasks.
    tasks: BTreeSet<i64>,
    /// The own transactions that wrote any of them last.
    transactions: BTreeSet<i64>,
}

impl RowValidation {
    /// Accepts a request that can be served by a comparison instead of a load. Returns false if
    /// it cannot.
    pub(in crate::postgres) fn accepts(&mut self, request: &LoadRequest, row_cache: &RowCache) -> bool {
        let LoadRequest::Task(task) = request else { return false };
        let Some(transaction) = row_cache.written_by(*task) else { return false };
        self.transactions.insert(transaction);
        self.tasks.insert(task.0)
    }

    /// Returns the tasks whose rows are unchanged. The first poll sends the query.
    pub(in crate::postgres) async fn unchanged(
        &self,
        client: &ServerConnection<'_>,
        sql: &Sql,
    ) -> Result<HashSet<i64>> {
        if self.tasks.is_empty() {
            return Ok(HashSet::new());
        }
        let tasks: Vec<i64> = self.tasks.iter().copied().collect();
        // `xmin` has the lower half of the transaction number.
        let transactions: Vec<i32> = self.transactions.iter().map(|transaction| low_half(*transaction)).collect();
        let rows = client
            .query_typed(&sql.text(UNCHANGED), &[(&tasks, Type::INT8_ARRAY), (&transactions, Type::INT4_ARRAY)])
            .await
            .map_err(classified)?;
        let found = rows.first().map(|row| row.try_get::<_, Option<Vec<i64>>>(0)).transpose().map_err(classified)?;
        Ok(found.flatten().into_iter().flatten().collect())
    }

    /// Splits the tasks into valid ones and those that must be loaded. `now` is the number of the
    /// running transaction.
    pub(in crate::postgres) fn split(
        self,
        unchanged: &HashSet<i64>,
        now: i64,
    ) -> (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) {
        // The lower halves repeat after 2³² transactions, so older rows are loaded to be safe.
        let are_distinct = self.transactions.first().is_none_or(|oldest| now - oldest < i64::from(i32::MAX));
        let request = |task: i64| LoadRequest::Task(TaskId(task));
        self.tasks.into_iter().map(request).partition(
            |request| matches!(request, LoadRequest::Task(task) if are_distinct && unchanged.contains(&task.0)),
        )
    }
}

/// Returns the lower 32 bits, as `xmin` has them.
fn low_half(transaction: i64) -> i32 {
    let [a, b, c, d, ..] = transaction.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
