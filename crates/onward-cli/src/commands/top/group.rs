//! Groups with running tasks, and groups with a limit of their own.

use std::collections::BTreeMap;

use onward_store::rules::limit::limit_of_group;
use onward_store::{Limit, LimitScope, Name};

use super::reading::{LISTED, Reading};

/// A group, and its use of the limit that applies to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Group {
    /// The number of its tasks that are running.
    pub(super) running: u64,
    /// True if more of its tasks may be running. A reading is limited to [`LISTED`] running tasks,
    /// and the store counts running tasks only for groups with a limit of their own.
    pub(super) is_cut: bool,
    /// Its own limit, or the limit on a prefix of its name.
    pub(super) limit: Limit,
    /// The number of starts that its rate allows now, if it has a limit of its own.
    pub(super) tokens: Option<u32>,
}

/// Returns the groups in a reading, the busiest first.
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
