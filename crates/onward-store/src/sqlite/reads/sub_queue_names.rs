//! The names of a sub-queue's queue, kind and group.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use crate::api::error::{Error, Result};
use crate::api::name::Name;

/// A cache of the names that a read needs. It looks each sub-queue up once, because sub-queues
/// never change.
#[derive(Debug)]
pub(in crate::sqlite) struct SubQueueNames<'c> {
    /// The connection.
    connection: &'c Connection,
    /// The names found so far.
    known: HashMap<i64, NamesOfSubQueue>,
    /// The last lookup, because consecutive rows are often of one sub-queue.
    last: Option<(i64, NamesOfSubQueue)>,
}

/// The names of a sub-queue's queue, kind and group.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct NamesOfSubQueue {
    /// The kind.
    pub(in crate::sqlite) kind: Name,
    /// The queue.
    pub(in crate::sqlite) queue: Name,
    /// The group.
    pub(in crate::sqlite) group: Option<Name>,
}

impl<'c> SubQueueNames<'c> {
    /// Creates an empty cache.
    pub(in crate::sqlite) fn new(connection: &'c Connection) -> Self {
        Self { connection, known: HashMap::new(), last: None }
    }

    /// Returns the names of a sub-queue.
    pub(in crate::sqlite) fn of(&mut self, sub_queue: i64) -> Result<NamesOfSubQueue> {
        if let Some((_, names)) = self.last.as_ref().filter(|(last, _)| *last == sub_queue) {
            return Ok(names.clone());
        }
        let names = self.look_up(sub_queue)?;
        self.last = Some((sub_queue, names.clone()));
        Ok(names)
    }

    /// Returns names from the cache or the tables.
    fn look_up(&mut self, sub_queue: i64) -> Result<NamesOfSubQueue> {
        if let Some(names) = self.known.get(&sub_queue) {
            return Ok(names.clone());
        }
        let names: Option<(String, String, Option<String>)> = self
            .connection
            .prepare_cached(include_str!("../sql/reads/sub_queue_names.sql"))?
            .query_row([sub_queue], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let (kind, queue, group) =
            names.ok_or_else(|| Error::corrupt("a task is in a sub-queue that does not exist; restore a backup"))?;
        let group = group.map(Name::new).transpose()?;
        let names = NamesOfSubQueue { kind: Name::new(kind)?, queue: Name::new(queue)?, group };
        self.known.insert(sub_queue, names.clone());
        Ok(names)
    }
}
