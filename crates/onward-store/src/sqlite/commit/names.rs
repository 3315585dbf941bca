//! Names and their numbers: queues, kinds, groups, and the lanes made of them.

use rusqlite::params;
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::NewTask;
use crate::bounds;
use crate::rules::orchestration;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::prepared_statements;

/// Lanes with a group have numbers from this one up, so that the others can be told from them and
/// walked without them.
pub(in crate::sqlite) const GROUP_LANES: i64 = 1 << 32;

/// Lines of series have numbers from this one up: the number of the series, and in the lowest 34
/// bits that of the lane.
pub(in crate::sqlite) const SERIES_LINES: i64 = 1 << SERIES_SHIFT;

/// Where the number of the series begins.
pub(in crate::sqlite) const SERIES_SHIFT: u32 = 34;

/// In the place of a line: a task in `scheduled` has a series, which is looked up when it becomes
/// due.
pub(in crate::sqlite) const HAS_SERIES: i64 = 1 << 62;

/// The lane of a line.
pub(in crate::sqlite) fn lane_of_line(line: i64) -> i64 {
    line & (SERIES_LINES - 1)
}

/// A line of tasks that are claimable or not together.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct Lane {
    pub(in crate::sqlite) queue: i64,
    pub(in crate::sqlite) kind: i64,
    /// Zero for none.
    pub(in crate::sqlite) group: i64,
    /// True for one of orchestrations, which claims may leave out.
    pub(in crate::sqlite) orchestration: bool,
    /// The lane without a group of the same queue and kind, of orchestrations or of others as this
    /// one.
    pub(in crate::sqlite) base: i64,
    pub(in crate::sqlite) queue_name: Name,
    pub(in crate::sqlite) kind_name: Name,
    pub(in crate::sqlite) group_name: Option<Name>,
}

/// What is known of the names in the store. Only what was added is read when another process has
/// changed the store: names and lanes never change, and deleted queues are few.
#[derive(Debug, Default, Clone)]
pub(in crate::sqlite) struct Names {
    queues: foldhash::HashMap<Name, i64>,
    kinds: foldhash::HashMap<Name, i64>,
    groups: foldhash::HashMap<Name, i64>,
    lanes: FxHashMap<(i64, i64, i64, bool), i64>,
    by_number: FxHashMap<i64, Lane>,
    /// Lanes without a group.
    base_lanes: Vec<i64>,
    lanes_of_group: FxHashMap<i64, Vec<i64>>,
    last: LastNumbers,
    last_lane: Option<LastLane>,
}

/// The highest numbers that are known.
#[derive(Debug, Clone, Copy)]
struct LastNumbers {
    base_lane: i64,
    group_lane: i64,
    group: i64,
}

impl Default for LastNumbers {
    fn default() -> Self {
        Self { base_lane: 0, group_lane: GROUP_LANES - 1, group: 0 }
    }
}

/// The lane that was asked for last: the next task is often of the same.
#[derive(Debug, Clone)]
struct LastLane {
    queue: Name,
    kind: Name,
    group: Option<Name>,
    orchestration: bool,
    number: i64,
}

impl Names {
    /// Reads the names; `known` are those that were read before.
    pub(in crate::sqlite) fn load(connection: &Database<'_>, known: Option<Self>) -> Result<Self> {
        let queues = numbers(connection, "SELECT name, id FROM queue WHERE deleted = 0 AND id > ?", 0)?;
        let kinds = numbers(connection, "SELECT name, id FROM kind WHERE id > ?", 0)?;
        let mut names = Self { queues, kinds, last_lane: None, ..known.unwrap_or_default() };
        for (name, number) in numbers(connection, "SELECT name, id FROM task_group WHERE id > ?", names.last.group)? {
            names.add_group(number, name);
        }
        let mut statement = connection.prepare_cached(include_str!("../sql/commit/sub_queues_after.sql"))?;
        let mut rows = statement.query(params![names.last.base_lane, GROUP_LANES, names.last.group_lane])?;
        while let Some(row) = rows.next()? {
            let name =
                |column| -> Result<Name> { Name::new(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?) };
            let group = row.get(3)?;
            let lane = Lane {
                queue: row.get(1)?,
                kind: row.get(2)?,
                group,
                orchestration: row.get(8)?,
                base: row.get(4)?,
                queue_name: name(5)?,
                kind_name: name(6)?,
                group_name: if group == 0 { None } else { Some(name(7)?) },
            };
            names.add_lane(row.get(0)?, lane);
        }
        Ok(names)
    }

    pub(in crate::sqlite) fn queue(&self, name: &str) -> Option<i64> {
        self.queues.get(name).copied()
    }

    /// Every queue.
    pub(in crate::sqlite) fn queues(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.queues.iter().map(|(name, number)| (name, *number))
    }

    pub(in crate::sqlite) fn kind(&self, name: &str) -> Option<i64> {
        self.kinds.get(name).copied()
    }

    /// A lane by its number, or by that of a line of a series in it.
    pub(in crate::sqlite) fn lane(&self, number: i64) -> Option<&Lane> {
        self.by_number.get(&lane_of_line(number))
    }

    /// The lanes without a group.
    pub(in crate::sqlite) fn base_lanes(&self) -> impl Iterator<Item = (i64, &Lane)> {
        self.base_lanes.iter().filter_map(|number| self.lane(*number).map(|lane| (*number, lane)))
    }

    /// The lane without a group of the same queue and kind.
    pub(in crate::sqlite) fn base_of(&self, lane: i64) -> i64 {
        if lane < GROUP_LANES { lane } else { self.lane(lane).map_or(lane, |lane| lane.base) }
    }

    /// The group of a lane, if it has one.
    pub(in crate::sqlite) fn group_of(&self, lane: i64) -> Option<i64> {
        if lane < GROUP_LANES { None } else { self.lane(lane).map(|lane| lane.group).filter(|group| *group > 0) }
    }

    /// The lanes of a group.
    pub(in crate::sqlite) fn lanes_of_group(&self, group: i64) -> &[i64] {
        self.lanes_of_group.get(&group).map_or(&[], Vec::as_slice)
    }

    pub(in crate::sqlite) fn group(&self, name: &str) -> Option<i64> {
        self.groups.get(name).copied()
    }

    /// Every group.
    pub(in crate::sqlite) fn groups(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.groups.iter().map(|(name, number)| (name, *number))
    }

    /// Whether there is any group.
    pub(in crate::sqlite) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whether so many queues and as many kinds can be added.
    pub(in crate::sqlite) fn has_room_for(&self, names: usize) -> bool {
        self.queues.len() + names <= bounds::QUEUES
            && self.kinds.len() + names <= bounds::KINDS
            && self.groups.len() + names <= bounds::GROUPS
    }

    /// Whether the names that the tasks of a turn bring can be added.
    pub(in crate::sqlite) fn has_room_for_turn(&self, submits: &[NewTask]) -> bool {
        let fits = |known: &foldhash::HashMap<Name, i64>, name_of: fn(&NewTask) -> Option<&Name>, most| {
            orchestration::has_room(submits, name_of, known.len(), |name| known.contains_key(name), most)
        };
        fits(&self.queues, |task| Some(&task.queue), bounds::QUEUES)
            && fits(&self.kinds, |task| Some(&task.kind), bounds::KINDS)
            && fits(&self.groups, |task| task.group.as_ref(), bounds::GROUPS)
    }

    /// Why these names cannot be added, if they cannot.
    pub(in crate::sqlite) fn refusal(&self, queue: Option<&Name>, kind: Option<&Name>) -> Option<String> {
        if self.queues.len() < bounds::QUEUES && self.kinds.len() < bounds::KINDS {
            return None;
        }
        let over = |what: &str, limit: usize, name: &Name| {
            format!(
                "the store has {limit} {what}s and takes no more, so `{name}` cannot be added; use fewer {what}s and put what differs in the payload"
            )
        };
        if let Some(queue) =
            queue.filter(|name| !self.queues.contains_key(*name) && self.queues.len() >= bounds::QUEUES)
        {
            return Some(over("queue", bounds::QUEUES, queue));
        }
        let kind = kind.filter(|name| !self.kinds.contains_key(*name) && self.kinds.len() >= bounds::KINDS)?;
        Some(over("kind", bounds::KINDS, kind))
    }

    /// Why a group cannot be added, if it cannot.
    pub(in crate::sqlite) fn group_refusal(&self, group: Option<&Name>) -> Option<String> {
        let group = group.filter(|group| self.groups.len() >= bounds::GROUPS && !self.groups.contains_key(*group))?;
        let most = bounds::GROUPS;
        Some(format!(
            "the store has {most} groups and takes no more, so `{group}` cannot be added; let several share one"
        ))
    }

    /// The number of the lane of a queue, a kind and a group, which are added where they are new:
    /// that of orchestrations, or of other tasks.
    pub(in crate::sqlite) fn ensure_lane(
        &mut self,
        connection: &Database<'_>,
        queue: &Name,
        kind: &Name,
        group: Option<&Name>,
        orchestration: bool,
    ) -> Result<i64> {
        if let Some(last) = &self.last_lane
            && last.queue == *queue
            && last.kind == *kind
            && last.group.as_ref() == group
            && last.orchestration == orchestration
        {
            return Ok(last.number);
        }
        let mut number = self.ensure_base_lane(connection, queue, kind, orchestration)?;
        if let Some(group) = group {
            number = self.ensure_group_lane(connection, number, group)?;
        }
        let (queue, kind, group) = (queue.clone(), kind.clone(), group.cloned());
        self.last_lane = Some(LastLane { queue, kind, group, orchestration, number });
        Ok(number)
    }

    fn ensure_base_lane(
        &mut self,
        connection: &Database<'_>,
        queue_name: &Name,
        kind_name: &Name,
        orchestration: bool,
    ) -> Result<i64> {
        let queue = self.ensure_queue(connection, queue_name)?;
        let kind = self.ensure_kind(connection, kind_name)?;
        if let Some(lane) = self.lanes.get(&(queue, kind, 0, orchestration)) {
            return Ok(*lane);
        }
        let (queue_name, kind_name) = (queue_name.clone(), kind_name.clone());
        let base = self.last.base_lane + 1;
        let lane = Lane { queue, kind, group: 0, orchestration, base, queue_name, kind_name, group_name: None };
        self.insert_lane(connection, base, lane)
    }

    fn ensure_group_lane(&mut self, connection: &Database<'_>, base: i64, group: &Name) -> Result<i64> {
        let number = self.ensure_group(connection, group)?;
        let Some(lane) = self.by_number.get(&base) else { return Ok(base) };
        if let Some(lane) = self.lanes.get(&(lane.queue, lane.kind, number, lane.orchestration)) {
            return Ok(*lane);
        }
        let lane = Lane { group: number, group_name: Some(group.clone()), ..lane.clone() };
        self.insert_lane(connection, self.last.group_lane + 1, lane)
    }

    fn insert_lane(&mut self, connection: &Database<'_>, number: i64, lane: Lane) -> Result<i64> {
        let row = params![number, lane.queue, lane.kind, lane.group, lane.orchestration];
        connection.prepare_cached(prepared_statements::ADD_LANE)?.execute(row)?;
        self.add_lane(number, lane);
        Ok(number)
    }

    pub(in crate::sqlite) fn ensure_group(&mut self, connection: &Database<'_>, name: &Name) -> Result<i64> {
        if let Some(number) = self.groups.get(name) {
            return Ok(*number);
        }
        let number = self.last.group + 1;
        connection
            .prepare_cached("INSERT INTO task_group (id, name) VALUES (?, ?)")?
            .execute(params![number, name.as_str()])?;
        self.add_group(number, name.clone());
        Ok(number)
    }

    pub(in crate::sqlite) fn ensure_queue(&mut self, connection: &Database<'_>, name: &Name) -> Result<i64> {
        if let Some(number) = self.queues.get(name) {
            return Ok(*number);
        }
        connection.prepare_cached(prepared_statements::ADD_QUEUE)?.execute([name.as_str()])?;
        let number = connection
            .prepare_cached(prepared_statements::QUEUE_NUMBER)?
            .query_row([name.as_str()], |row| row.get(0))?;
        self.queues.insert(name.clone(), number);
        Ok(number)
    }

    pub(in crate::sqlite) fn ensure_kind(&mut self, connection: &Database<'_>, name: &Name) -> Result<i64> {
        if let Some(number) = self.kinds.get(name) {
            return Ok(*number);
        }
        connection.prepare_cached(prepared_statements::ADD_KIND)?.execute([name.as_str()])?;
        let number = connection.last_insert_rowid();
        self.kinds.insert(name.clone(), number);
        Ok(number)
    }

    /// Forgets a queue until it is used again. Its number and lanes stay, for its ended tasks.
    pub(in crate::sqlite) fn delete_queue(&mut self, connection: &Database<'_>, name: &Name) -> Result<()> {
        connection.prepare_cached("UPDATE queue SET deleted = 1 WHERE name = ?")?.execute([name.as_str()])?;
        self.queues.remove(name);
        self.last_lane = None;
        Ok(())
    }

    fn add_group(&mut self, number: i64, name: Name) {
        self.groups.insert(name, number);
        self.last.group = self.last.group.max(number);
    }

    fn add_lane(&mut self, number: i64, lane: Lane) {
        self.lanes.insert((lane.queue, lane.kind, lane.group, lane.orchestration), number);
        if lane.group == 0 {
            self.base_lanes.push(number);
            self.last.base_lane = self.last.base_lane.max(number);
        } else {
            self.lanes_of_group.entry(lane.group).or_default().push(number);
            self.last.group_lane = self.last.group_lane.max(number);
        }
        self.by_number.insert(number, lane);
    }
}

fn numbers(connection: &Database<'_>, sql: &'static str, behind: i64) -> Result<foldhash::HashMap<Name, i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([behind])?;
    let mut numbers = foldhash::HashMap::default();
    while let Some(row) = rows.next()? {
        let name = Name::new(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        numbers.insert(name, row.get(1)?);
    }
    Ok(numbers)
}
