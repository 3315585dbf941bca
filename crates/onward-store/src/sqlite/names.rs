//! Names and their numbers: queues, kinds, and the lanes made of them.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::limits;
use crate::name::Name;

/// A line of tasks that are claimable or not together.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) queue: i64,
    pub(super) kind: i64,
    pub(super) queue_name: Name,
    pub(super) kind_name: Name,
}

/// What is known of the names in the store. Read whole when the store was changed by another process; there are few.
#[derive(Debug, Default, Clone)]
pub(super) struct Names {
    queues: HashMap<Name, i64>,
    kinds: HashMap<Name, i64>,
    lanes: FxHashMap<(i64, i64), i64>,
    by_number: FxHashMap<i64, Lane>,
    last_lane: Option<(Name, Name, i64)>,
}

impl Names {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let queues = numbers(connection, "SELECT name, id FROM queue WHERE deleted = 0")?;
        let kinds = numbers(connection, "SELECT name, id FROM kind")?;
        let mut names = Self { queues, kinds, ..Self::default() };
        let mut statement = connection.prepare_cached(
            "SELECT l.id, l.queue, l.kind, q.name, k.name FROM lane l JOIN queue q ON q.id = l.queue JOIN kind k ON k.id = l.kind",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let lane = Lane {
                queue: row.get(1)?,
                kind: row.get(2)?,
                queue_name: Name::new(row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)?,
                kind_name: Name::new(row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?)?,
            };
            names.add_lane(row.get(0)?, lane);
        }
        Ok(names)
    }

    pub(super) fn queue(&self, name: &str) -> Option<i64> {
        self.queues.get(name).copied()
    }

    pub(super) fn kind(&self, name: &str) -> Option<i64> {
        self.kinds.get(name).copied()
    }

    pub(super) fn lane(&self, number: i64) -> Option<&Lane> {
        self.by_number.get(&number)
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = (i64, &Lane)> {
        self.by_number.iter().map(|(number, lane)| (*number, lane))
    }

    /// Whether so many queues and as many kinds can be added.
    pub(super) fn has_room_for(&self, names: usize) -> bool {
        self.queues.len() + names <= limits::QUEUES && self.kinds.len() + names <= limits::KINDS
    }

    /// Why these names cannot be added, if they cannot.
    pub(super) fn refusal(&self, queue: Option<&Name>, kind: Option<&Name>) -> Option<String> {
        if self.queues.len() < limits::QUEUES && self.kinds.len() < limits::KINDS {
            return None;
        }
        let over = |what: &str, limit: usize, name: &Name| {
            format!(
                "the store has {limit} {what}s and takes no more, so `{name}` cannot be added; use fewer {what}s and put what differs in the payload"
            )
        };
        if let Some(queue) =
            queue.filter(|name| !self.queues.contains_key(*name) && self.queues.len() >= limits::QUEUES)
        {
            return Some(over("queue", limits::QUEUES, queue));
        }
        let kind = kind.filter(|name| !self.kinds.contains_key(*name) && self.kinds.len() >= limits::KINDS)?;
        Some(over("kind", limits::KINDS, kind))
    }

    /// The number of the lane of a queue and a kind, which are added where they are new.
    pub(super) fn ensure_lane(&mut self, connection: &Connection, queue: &Name, kind: &Name) -> Result<i64> {
        if let Some((last_queue, last_kind, lane)) = &self.last_lane
            && last_queue == queue
            && last_kind == kind
        {
            return Ok(*lane);
        }
        let queue_number = self.ensure_queue(connection, queue)?;
        let kind_number = self.ensure_kind(connection, kind)?;
        let lane = match self.lanes.get(&(queue_number, kind_number)) {
            Some(lane) => *lane,
            None => {
                connection
                    .prepare_cached("INSERT INTO lane (queue, kind) VALUES (?, ?)")?
                    .execute(params![queue_number, kind_number])?;
                let number = connection.last_insert_rowid();
                let lane =
                    Lane { queue: queue_number, kind: kind_number, queue_name: queue.clone(), kind_name: kind.clone() };
                self.add_lane(number, lane);
                number
            }
        };
        self.last_lane = Some((queue.clone(), kind.clone(), lane));
        Ok(lane)
    }

    pub(super) fn ensure_queue(&mut self, connection: &Connection, name: &Name) -> Result<i64> {
        if let Some(number) = self.queues.get(name) {
            return Ok(*number);
        }
        connection
            .prepare_cached("INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET deleted = 0")?
            .execute([name.as_str()])?;
        let number = connection
            .prepare_cached("SELECT id FROM queue WHERE name = ?")?
            .query_row([name.as_str()], |row| row.get(0))?;
        self.queues.insert(name.clone(), number);
        Ok(number)
    }

    pub(super) fn ensure_kind(&mut self, connection: &Connection, name: &Name) -> Result<i64> {
        if let Some(number) = self.kinds.get(name) {
            return Ok(*number);
        }
        connection.prepare_cached("INSERT INTO kind (name) VALUES (?)")?.execute([name.as_str()])?;
        let number = connection.last_insert_rowid();
        self.kinds.insert(name.clone(), number);
        Ok(number)
    }

    /// Forgets a queue until it is used again. Its number and lanes stay, for its ended tasks.
    pub(super) fn delete_queue(&mut self, connection: &Connection, name: &Name) -> Result<()> {
        connection.prepare_cached("UPDATE queue SET deleted = 1 WHERE name = ?")?.execute([name.as_str()])?;
        self.queues.remove(name);
        self.last_lane = None;
        Ok(())
    }

    fn add_lane(&mut self, number: i64, lane: Lane) {
        self.lanes.insert((lane.queue, lane.kind), number);
        self.by_number.insert(number, lane);
    }
}

fn numbers(connection: &Connection, sql: &str) -> Result<HashMap<Name, i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut numbers = HashMap::new();
    while let Some(row) = rows.next()? {
        let name = Name::new(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        numbers.insert(name, row.get(1)?);
    }
    Ok(numbers)
}
