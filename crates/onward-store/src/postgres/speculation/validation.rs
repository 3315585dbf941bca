//! Tasks that a writer keeps and is not sure of
//! ([`own`](crate::postgres::speculation::own_sessions)), compared with their rows: they are what
//! they were, though others have written, if nobody else has written their rows and they have
//! nothing to do with others. What is compared need be neither read, nor sent, nor taken in.
//!
//! A row says by which transaction it was written (`xmin`). The writer knows the numbers of its
//! own, and follows what each of them changes. So a row that one of them has written last is as the
//! writer has it. That a server that has crashed gives numbers again does no harm: a writer whose
//! own last transaction is lost forgets everything, and if that is there, so are those before it,
//! and their numbers are given.

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::types::Type;

use crate::api::error::Result;
use crate::api::task::TaskId;
use crate::model::LoadRequest;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::sql::Sql;

/// Those with the numbers `$1` that are there still, were written last by one of the transactions
/// `$2`, and have nothing to do with others. Whether there is anything to be found in a table at
/// all is asked once, as where tasks are read.
const UNCHANGED: &str = "SELECT array_agg(t.id) FROM {s}.task t WHERE t.id = ANY($1) AND t.xmin = ANY($2) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.dependency)) \
       AND (EXISTS (SELECT 1 FROM {s}.dependency w WHERE w.dependent = t.id) OR EXISTS (SELECT 1 FROM {s}.dependency w WHERE w.task = t.id))) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.batch_item)) \
       AND (EXISTS (SELECT 1 FROM {s}.batch_item m WHERE m.task = t.id) OR EXISTS (SELECT 1 FROM {s}.batch_item m WHERE m.batch = t.id))) \
     AND NOT ((SELECT EXISTS (SELECT 1 FROM {s}.task WHERE parent IS NOT NULL) OR EXISTS (SELECT 1 FROM {s}.history WHERE parent IS NOT NULL)) \
       AND (EXISTS (SELECT 1 FROM {s}.task c WHERE c.parent = t.id) OR EXISTS (SELECT 1 FROM {s}.history c WHERE c.parent = t.id))) \
     AND (t.key IS NULL OR EXISTS (SELECT 1 FROM {s}.unique_key k WHERE k.kind = t.kind AND k.key = t.key AND k.task = t.id AND k.until IS NULL))";

/// Tasks to be compared, and the transactions that have written them.
#[derive(Debug, Default)]
pub(in crate::postgres) struct RowValidation {
    tasks: BTreeSet<i64>,
    transactions: BTreeSet<i64>,
}

impl RowValidation {
    /// Takes a want out of those that are to be loaded, if it is a task that can be compared
    /// instead.
    pub(in crate::postgres) fn accepts(&mut self, request: &LoadRequest, row_cache: &RowCache) -> bool {
        let LoadRequest::Task(task) = request else { return false };
        let Some(transaction) = row_cache.written_by(*task) else { return false };
        self.transactions.insert(transaction);
        self.tasks.insert(task.0)
    }

    /// Those that are as they are kept. Has asked when it is first polled.
    pub(in crate::postgres) async fn unchanged(
        &self,
        client: &ServerConnection<'_>,
        sql: &Sql,
    ) -> Result<HashSet<i64>> {
        if self.tasks.is_empty() {
            return Ok(HashSet::new());
        }
        let tasks: Vec<i64> = self.tasks.iter().copied().collect();
        // Rows have the lower half of the number.
        let transactions: Vec<i32> = self.transactions.iter().map(|transaction| low_half(*transaction)).collect();
        let rows = client
            .query_typed(&sql.text(UNCHANGED), &[(&tasks, Type::INT8_ARRAY), (&transactions, Type::INT4_ARRAY)])
            .await
            .map_err(classified)?;
        let found = rows.first().map(|row| row.try_get::<_, Option<Vec<i64>>>(0)).transpose().map_err(classified)?;
        Ok(found.flatten().into_iter().flatten().collect())
    }

    /// What need not be loaded, and what has to be all the same. `now` is the transaction under
    /// way.
    pub(in crate::postgres) fn split(
        self,
        unchanged: &HashSet<i64>,
        now: i64,
    ) -> (BTreeSet<LoadRequest>, BTreeSet<LoadRequest>) {
        // After so many the lower halves come again.
        let are_told_apart = self.transactions.first().is_none_or(|oldest| now - oldest < i64::from(i32::MAX));
        let request = |task: i64| LoadRequest::Task(TaskId(task));
        self.tasks.into_iter().map(request).partition(
            |request| matches!(request, LoadRequest::Task(task) if are_told_apart && unchanged.contains(&task.0)),
        )
    }
}

fn low_half(transaction: i64) -> i32 {
    let [a, b, c, d, ..] = transaction.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
