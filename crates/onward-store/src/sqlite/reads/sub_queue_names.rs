//! The names that belong to the number of a lane.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use crate::api::error::{Error, Result};
use crate::api::name::Name;

/// The names of each lane that a read comes across, looked up once. A lane never changes.
#[derive(Debug)]
pub(in crate::sqlite) struct LaneNames<'c> {
    connection: &'c Connection,
    known: HashMap<i64, NamesOfLane>,
    /// Neighbouring rows are often of one lane.
    last: Option<(i64, NamesOfLane)>,
}

/// What a lane is of.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct NamesOfLane {
    pub(in crate::sqlite) kind: Name,
    pub(in crate::sqlite) queue: Name,
    pub(in crate::sqlite) group: Option<Name>,
}

impl<'c> LaneNames<'c> {
    pub(in crate::sqlite) fn new(connection: &'c Connection) -> Self {
        Self { connection, known: HashMap::new(), last: None }
    }

    pub(in crate::sqlite) fn of(&mut self, lane: i64) -> Result<NamesOfLane> {
        if let Some((_, names)) = self.last.as_ref().filter(|(last, _)| *last == lane) {
            return Ok(names.clone());
        }
        let names = self.look_up(lane)?;
        self.last = Some((lane, names.clone()));
        Ok(names)
    }

    fn look_up(&mut self, lane: i64) -> Result<NamesOfLane> {
        if let Some(names) = self.known.get(&lane) {
            return Ok(names.clone());
        }
        let names: Option<(String, String, Option<String>)> = self
            .connection
            .prepare_cached(include_str!("../sql/reads/sub_queue_names.sql"))?
            .query_row([lane], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let (kind, queue, group) =
            names.ok_or_else(|| Error::corrupt("a task is in a lane that does not exist; restore a backup"))?;
        let group = group.map(Name::new).transpose()?;
        let names = NamesOfLane { kind: Name::new(kind)?, queue: Name::new(queue)?, group };
        self.known.insert(lane, names.clone());
        Ok(names)
    }
}
