//! Names and their numbers: queues, kinds, groups, and the sub-queues made of them.

use rusqlite::params;
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::NewTask;
use crate::bounds;
use crate::rules::orchestration;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::prepared_statements;

/// The first number of a sub-queue with a group. The sub-queues without one are below it, so a
/// range read finds them alone.
pub(in crate::sqlite) const FIRST_GROUPED: i64 = 1 << 32;

/// The first number of a ready list of an affinity key. The bits above the lowest 34 hold the
/// number of the affinity key, the lowest 34 bits that of the sub-queue.
pub(in crate::sqlite) const FIRST_WITH_AFFINITY: i64 = 1 << AFFINITY_SHIFT;

/// The bit where the number of the affinity key begins.
pub(in crate::sqlite) const AFFINITY_SHIFT: u32 = 34;

/// A bit in the list number of a row in `scheduled`: the task has an affinity key, whose list is
/// looked up when the task becomes due.
pub(in crate::sqlite) const HAS_AFFINITY: i64 = 1 << 62;

/// Returns the sub-queue of a ready list.
pub(in crate::sqlite) fn sub_queue_of_list(list: i64) -> i64 {
    list & (FIRST_WITH_AFFINITY - 1)
}

/// A sub-queue: the tasks of one queue, kind and group, which a limit of the group stops together.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct SubQueue {
    /// The queue's number.
    pub(in crate::sqlite) queue: i64,
    /// The kind's number.
    pub(in crate::sqlite) kind: i64,
    /// Zero for none.
    pub(in crate::sqlite) group: i64,
    /// True for a sub-queue of orchestrations, which claims may leave out.
    pub(in crate::sqlite) orchestration: bool,
    /// The number of the sub-queue without a group of this queue and kind. Both have the same value
    /// of `orchestration`.
    ungrouped: i64,
    /// The queue's name.
    pub(in crate::sqlite) queue_name: Name,
    /// The kind's name.
    pub(in crate::sqlite) kind_name: Name,
    /// The group's name.
    pub(in crate::sqlite) group_name: Option<Name>,
}

/// The names of the store, cached. After a write of another process only additions are read,
/// because a name never changes its number. Queues and kinds are few and read again, since a queue
/// can be deleted.
#[derive(Debug, Default, Clone)]
pub(in crate::sqlite) struct Names {
    /// The numbers of queues.
    queues: foldhash::HashMap<Name, i64>,
    /// The numbers of kinds.
    kinds: foldhash::HashMap<Name, i64>,
    /// The numbers of groups.
    groups: foldhash::HashMap<Name, i64>,
    /// The numbers of sub-queues by queue, kind, group and orchestration.
    sub_queues: FxHashMap<(i64, i64, i64, bool), i64>,
    /// The sub-queues by number.
    by_number: FxHashMap<i64, SubQueue>,
    /// Sub-queues without a group.
    ungrouped_sub_queues: Vec<i64>,
    /// The sub-queues of each group.
    sub_queues_of_group: FxHashMap<i64, Vec<i64>>,
    /// The highest numbers, from which the next ones are assigned.
    last: LastNumbers,
    /// The sub-queue that was looked up last.
    last_sub_queue: Option<LastSubQueue>,
}

/// The highest numbers that are in the cache.
#[derive(Debug, Clone, Copy)]
struct LastNumbers {
    /// The highest sub-queue without a group.
    ungrouped: i64,
    /// The highest sub-queue with a group. These have a range of their own.
    grouped: i64,
    /// The highest group.
    group: i64,
}

impl Default for LastNumbers {
    fn default() -> Self {
        Self { ungrouped: 0, grouped: FIRST_GROUPED - 1, group: 0 }
    }
}

/// The sub-queue that was looked up last. It saves three lookups for tasks submitted in a row.
#[derive(Debug, Clone)]
struct LastSubQueue {
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
        let mut names = Self { queues, kinds, last_sub_queue: None, ..known.unwrap_or_default() };
        for (name, number) in numbers(connection, "SELECT name, id FROM task_group WHERE id > ?", names.last.group)? {
            names.add_group(number, name);
        }
        let mut statement = connection.prepare_cached(include_str!("../sql/commit/sub_queues_after.sql"))?;
        let mut rows = statement.query(params![names.last.ungrouped, FIRST_GROUPED, names.last.grouped])?;
        while let Some(row) = rows.next()? {
            let name =
                |column| -> Result<Name> { Name::new(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?) };
            let group = row.get(3)?;
            let sub_queue = SubQueue {
                queue: row.get(1)?,
                kind: row.get(2)?,
                group,
                orchestration: row.get(8)?,
                ungrouped: row.get(4)?,
                queue_name: name(5)?,
                kind_name: name(6)?,
                group_name: if group == 0 { None } else { Some(name(7)?) },
            };
            names.add_sub_queue(row.get(0)?, sub_queue);
        }
        Ok(names)
    }

    /// Returns a queue's number.
    pub(in crate::sqlite) fn queue(&self, name: &str) -> Option<i64> {
        self.queues.get(name).copied()
    }

    /// Returns every queue.
    pub(in crate::sqlite) fn queues(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.queues.iter().map(|(name, number)| (name, *number))
    }

    /// Returns a kind's number.
    pub(in crate::sqlite) fn kind(&self, name: &str) -> Option<i64> {
        self.kinds.get(name).copied()
    }

    /// Returns a sub-queue by its number, or by the number of a ready list.
    pub(in crate::sqlite) fn sub_queue(&self, number: i64) -> Option<&SubQueue> {
        self.by_number.get(&sub_queue_of_list(number))
    }

    /// Returns the sub-queues without a group.
    pub(in crate::sqlite) fn ungrouped_sub_queues(&self) -> impl Iterator<Item = (i64, &SubQueue)> {
        self.ungrouped_sub_queues
            .iter()
            .filter_map(|number| self.sub_queue(*number).map(|sub_queue| (*number, sub_queue)))
    }

    /// Returns the sub-queue without a group of the same queue and kind.
    pub(in crate::sqlite) fn ungrouped_of(&self, sub_queue: i64) -> i64 {
        if sub_queue < FIRST_GROUPED {
            sub_queue
        } else {
            self.sub_queue(sub_queue).map_or(sub_queue, |sub_queue| sub_queue.ungrouped)
        }
    }

    /// Returns the group of a sub-queue, if it has one.
    pub(in crate::sqlite) fn group_of(&self, sub_queue: i64) -> Option<i64> {
        if sub_queue < FIRST_GROUPED {
            None
        } else {
            self.sub_queue(sub_queue).map(|sub_queue| sub_queue.group).filter(|group| *group > 0)
        }
    }

    /// Returns the sub-queues of a group.
    pub(in crate::sqlite) fn sub_queues_of_group(&self, group: i64) -> &[i64] {
        self.sub_queues_of_group.get(&group).map_or(&[], Vec::as_slice)
    }

    /// Returns a group's number.
    pub(in crate::sqlite) fn group(&self, name: &str) -> Option<i64> {
        self.groups.get(name).copied()
    }

    /// Returns every group.
    pub(in crate::sqlite) fn groups(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.groups.iter().map(|(name, number)| (name, *number))
    }

    /// Returns true if there is any group.
    pub(in crate::sqlite) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns true if this many queues, kinds and groups can each be added.
    pub(in crate::sqlite) fn has_room_for(&self, names: usize) -> bool {
        self.queues.len() + names <= bounds::QUEUES
            && self.kinds.len() + names <= bounds::KINDS
            && self.groups.len() + names <= bounds::GROUPS
    }

    /// Returns true if the new names of the tasks that a turn submits can be added.
    pub(in crate::sqlite) fn has_room_for_turn(&self, submits: &[NewTask]) -> bool {
        let fits = |known: &foldhash::HashMap<Name, i64>, name_of: fn(&NewTask) -> Option<&Name>, most| {
            orchestration::has_room(submits, name_of, known.len(), |name| known.contains_key(name), most)
        };
        fits(&self.queues, |task| Some(&task.queue), bounds::QUEUES)
            && fits(&self.kinds, |task| Some(&task.kind), bounds::KINDS)
            && fits(&self.groups, |task| task.group.as_ref(), bounds::GROUPS)
    }

    /// Returns the reason why these names cannot be added, if they cannot.
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

    /// Returns the reason why a group cannot be added, if it cannot.
    pub(in crate::sqlite) fn group_refusal(&self, group: Option<&Name>) -> Option<String> {
        let group = group.filter(|group| self.groups.len() >= bounds::GROUPS && !self.groups.contains_key(*group))?;
        let most = bounds::GROUPS;
        Some(format!(
            "the store has {most} groups and takes no more, so `{group}` cannot be added; let several share one"
        ))
    }

    /// Returns the number of the sub-queue of a queue, a kind and a group, of orchestrations or of
    /// other tasks. Adds new names.
    pub(in crate::sqlite) fn ensure_sub_queue(
        &mut self,
        connection: &Database<'_>,
        queue: &Name,
        kind: &Name,
        group: Option<&Name>,
        orchestration: bool,
    ) -> Result<i64> {
        if let Some(last) = &self.last_sub_queue
            && last.queue == *queue
            && last.kind == *kind
            && last.group.as_ref() == group
            && last.orchestration == orchestration
        {
            return Ok(last.number);
        }
        let mut number = self.ensure_ungrouped(connection, queue, kind, orchestration)?;
        if let Some(group) = group {
            number = self.ensure_grouped(connection, number, group)?;
        }
        let (queue, kind, group) = (queue.clone(), kind.clone(), group.cloned());
        self.last_sub_queue = Some(LastSubQueue { queue, kind, group, orchestration, number });
        Ok(number)
    }

    /// Returns the sub-queue without a group, and adds it if it is missing.
    fn ensure_ungrouped(
        &mut self,
        connection: &Database<'_>,
        queue_name: &Name,
        kind_name: &Name,
        orchestration: bool,
    ) -> Result<i64> {
        let queue = self.ensure_queue(connection, queue_name)?;
        let kind = self.ensure_kind(connection, kind_name)?;
        if let Some(sub_queue) = self.sub_queues.get(&(queue, kind, 0, orchestration)) {
            return Ok(*sub_queue);
        }
        let (queue_name, kind_name) = (queue_name.clone(), kind_name.clone());
        let ungrouped = self.last.ungrouped + 1;
        let sub_queue =
            SubQueue { queue, kind, group: 0, orchestration, ungrouped, queue_name, kind_name, group_name: None };
        self.insert_sub_queue(connection, ungrouped, sub_queue)
    }

    /// Returns the sub-queue of a group that belongs to an ungrouped one, and adds it if it is
    /// missing.
    fn ensure_grouped(&mut self, connection: &Database<'_>, ungrouped: i64, group: &Name) -> Result<i64> {
        let number = self.ensure_group(connection, group)?;
        let Some(sub_queue) = self.by_number.get(&ungrouped) else { return Ok(ungrouped) };
        if let Some(sub_queue) =
            self.sub_queues.get(&(sub_queue.queue, sub_queue.kind, number, sub_queue.orchestration))
        {
            return Ok(*sub_queue);
        }
        let sub_queue = SubQueue { group: number, group_name: Some(group.clone()), ..sub_queue.clone() };
        self.insert_sub_queue(connection, self.last.grouped + 1, sub_queue)
    }

    /// Inserts a sub-queue into its table and the cache.
    fn insert_sub_queue(&mut self, connection: &Database<'_>, number: i64, sub_queue: SubQueue) -> Result<i64> {
        let row = params![number, sub_queue.queue, sub_queue.kind, sub_queue.group, sub_queue.orchestration];
        connection.prepare_cached(prepared_statements::ADD_SUB_QUEUE)?.execute(row)?;
        self.add_sub_queue(number, sub_queue);
        Ok(number)
    }

    /// Returns a group's number, and adds the group if it is missing.
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

    /// Returns a queue's number, and adds the queue if it is missing or restores it if it was
    /// deleted.
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

    /// Returns a kind's number, and adds the kind if it is missing.
    pub(in crate::sqlite) fn ensure_kind(&mut self, connection: &Database<'_>, name: &Name) -> Result<i64> {
        if let Some(number) = self.kinds.get(name) {
            return Ok(*number);
        }
        connection.prepare_cached(prepared_statements::ADD_KIND)?.execute([name.as_str()])?;
        let number = connection.last_insert_rowid();
        self.kinds.insert(name.clone(), number);
        Ok(number)
    }

    /// Deletes a queue's name until it is used again. Its number and sub-queues stay, for its ended
    /// tasks.
    pub(in crate::sqlite) fn delete_queue(&mut self, connection: &Database<'_>, name: &Name) -> Result<()> {
        connection.prepare_cached("UPDATE queue SET deleted = 1 WHERE name = ?")?.execute([name.as_str()])?;
        self.queues.remove(name);
        self.last_sub_queue = None;
        Ok(())
    }

    /// Adds a group to the cache.
    fn add_group(&mut self, number: i64, name: Name) {
        self.groups.insert(name, number);
        self.last.group = self.last.group.max(number);
    }

    /// Adds a sub-queue to the cache, under each of its keys.
    fn add_sub_queue(&mut self, number: i64, sub_queue: SubQueue) {
        self.sub_queues.insert((sub_queue.queue, sub_queue.kind, sub_queue.group, sub_queue.orchestration), number);
        if sub_queue.group == 0 {
            self.ungrouped_sub_queues.push(number);
            self.last.ungrouped = self.last.ungrouped.max(number);
        } else {
            self.sub_queues_of_group.entry(sub_queue.group).or_default().push(number);
            self.last.grouped = self.last.grouped.max(number);
        }
        self.by_number.insert(number, sub_queue);
    }
}

/// Reads the names with numbers above `behind`.
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
