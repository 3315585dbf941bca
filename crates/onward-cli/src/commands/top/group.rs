//! Groups: those of what runs, and those that have a limit of their own.

use std::collections::BTreeMap;

use onward_store::rules::limit::limit_of_group;
use onward_store::{Limit, LimitScope, Name};

use super::reading::{LISTED, Reading};

/// A group, and how far it uses the limit that holds for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Group {
    /// How many of its tasks run.
    pub(super) running: u64,
    /// Whether more may run: only so many running tasks are read, and the store counts those of
    /// groups with a limit of their own alone.
    pub(super) is_cut: bool,
    /// Its own limit, or that of the beginning of its name.
    pub(super) limit: Limit,
    /// How many more its rate lets start now, where it has a limit of its own.
    pub(super) tokens: Option<u32>,
}

/// The groups that a reading knows of, the busiest first.
pub(super) fn groups(reading: &Reading) -> Vec<(&Name, Group)> {
    let mut groups: BTreeMap<&Name, Group> = BTreeMap::new();
    for name in reading.running.iter().filter_map(|task| task.group.as_ref()) {
        let group = groups.entry(name).or_default();
        group.running += 1;
        group.is_cut = reading.running.len() >= LISTED;
    }
    let limits = reading.limits.iter().map(|record| (record.scope.clone(), record.limit)).collect();
    for (name, group) in &mut groups {
        group.limit = limit_of_group(&limits, name).map_or_else(Limit::default, |(_, limit)| *limit);
    }
    for record in &reading.limits {
        if let LimitScope::Group(name) = &record.scope {
            let running = record.running.unwrap_or_default();
            groups.insert(name, Group { running, is_cut: false, limit: record.limit, tokens: record.tokens });
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.running));
    groups
}
