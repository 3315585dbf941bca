//! The numbers of running tasks by scope. Each start and end updates them, because a claim reads
//! them for each task that it scans.

use std::hash::Hash;

use foldhash::HashMap;

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::task::SessionId;

/// The numbers of running tasks in all and by queue, kind, group and session.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningCounts {
    all: u64,
    queues: HashMap<Name, u64>,
    kinds: HashMap<Name, u64>,
    groups: HashMap<Name, u64>,
    sessions: HashMap<SessionId, u64>,
}

/// Tasks that are counted together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunningKey<'a> {
    pub(crate) session: Option<SessionId>,
    pub(crate) queue: &'a Name,
    pub(crate) kind: &'a Name,
    pub(crate) group: Option<&'a Name>,
}

impl RunningCounts {
    /// Adds `count` running tasks of a key.
    pub(crate) fn add(&mut self, key: RunningKey<'_>, count: u64) {
        self.all += count;
        add_to(&mut self.queues, key.queue, count);
        add_to(&mut self.kinds, key.kind, count);
        key.group.into_iter().for_each(|group| add_to(&mut self.groups, group, count));
        key.session.into_iter().for_each(|session| add_to(&mut self.sessions, &session, count));
    }

    /// Removes one running task of a key.
    pub(in crate::model) fn remove(&mut self, key: RunningKey<'_>) {
        self.all = self.all.saturating_sub(1);
        take_from(&mut self.queues, key.queue, 1);
        take_from(&mut self.kinds, key.kind, 1);
        key.group.into_iter().for_each(|group| take_from(&mut self.groups, group, 1));
        key.session.into_iter().for_each(|session| take_from(&mut self.sessions, &session, 1));
    }

    /// Adds the counts of `others`.
    #[cfg(feature = "postgres")]
    pub(crate) fn add_all(&mut self, others: &Self) {
        // Without `..`, so that a new field must be added here, too.
        let Self { all, queues, kinds, groups, sessions } = others;
        self.all += all;
        queues.iter().for_each(|(queue, count)| add_to(&mut self.queues, queue, *count));
        kinds.iter().for_each(|(kind, count)| add_to(&mut self.kinds, kind, *count));
        groups.iter().for_each(|(group, count)| add_to(&mut self.groups, group, *count));
        sessions.iter().for_each(|(session, count)| add_to(&mut self.sessions, session, *count));
    }

    /// Subtracts the counts of `others`.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_all(&mut self, others: &Self) {
        let Self { all, queues, kinds, groups, sessions } = others;
        self.all = self.all.saturating_sub(*all);
        queues.iter().for_each(|(queue, count)| take_from(&mut self.queues, queue, *count));
        kinds.iter().for_each(|(kind, count)| take_from(&mut self.kinds, kind, *count));
        groups.iter().for_each(|(group, count)| take_from(&mut self.groups, group, *count));
        sessions.iter().for_each(|(session, count)| take_from(&mut self.sessions, session, *count));
    }

    /// Returns the number of running tasks of a scope. Prefixes of groups are not counted.
    pub(in crate::model) fn of(&self, scope: &LimitScope) -> u64 {
        let count = match scope {
            LimitScope::All => Some(&self.all),
            LimitScope::Queue(queue) => self.queues.get(queue),
            LimitScope::Kind(kind) => self.kinds.get(kind),
            LimitScope::Group(group) => self.groups.get(group),
            LimitScope::Groups(_) => None,
        };
        count.copied().unwrap_or_default()
    }

    /// Returns the number of running tasks of a session.
    pub(crate) fn by(&self, session: SessionId) -> u64 {
        self.sessions.get(&session).copied().unwrap_or_default()
    }
}

/// Adds to a count.
fn add_to<K: Hash + Eq + Clone>(counts: &mut HashMap<K, u64>, of: &K, count: u64) {
    match counts.get_mut(of) {
        Some(counted) => *counted += count,
        None => drop(counts.insert(of.clone(), count)),
    }
}

/// Subtracts from a count, and removes it at zero so that the map has no entry for a past name.
fn take_from<K: Hash + Eq>(counts: &mut HashMap<K, u64>, of: &K, fewer: u64) {
    let Some(count) = counts.get_mut(of) else { return };
    *count = count.saturating_sub(fewer);
    if *count == 0 {
        counts.remove(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_counted_no_more_anywhere() -> crate::Result<()> {
        let (queue, kind, group) = (Name::new("queue")?, Name::new("kind")?, Name::new("group")?);
        let key = RunningKey { session: Some(SessionId(1)), queue: &queue, kind: &kind, group: Some(&group) };
        let mut counts = RunningCounts::default();
        counts.add(key, 2);
        counts.remove(key);
        let scopes = [
            LimitScope::All,
            LimitScope::Queue(queue.clone()),
            LimitScope::Kind(kind.clone()),
            LimitScope::Group(group.clone()),
        ];
        assert_eq!(scopes.each_ref().map(|scope| counts.of(scope)), [1; 4]);
        counts.remove(key);
        assert_eq!(scopes.each_ref().map(|scope| counts.of(scope)), [0; 4]);
        assert_eq!(counts.by(SessionId(1)), 0);
        Ok(())
    }
}
