//! Kinds that are skipped for now: the worker gets no task of them.

use std::collections::BTreeMap;
use std::time::Duration;

/// The kinds to skip: those that the worker released as unknown, and those with as many tasks at
/// the worker as it allows.
#[derive(Debug, Default)]
pub(super) struct SkippedKinds {
    unknown: BTreeMap<String, Duration>,
    last: Vec<String>,
}

impl SkippedKinds {
    /// Skips a kind until a time.
    pub(super) fn add_unknown(&mut self, kind: &str, until: Duration) {
        self.unknown.insert(kind.to_owned(), until);
    }

    /// Returns the next time at which a kind is unknown no longer.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.unknown.values().min().copied()
    }

    /// Returns the kinds to skip at a time, if they differ from those of the last call. `full` has
    /// the kinds with as many tasks at the worker as it allows.
    pub(super) fn changed(&mut self, now: Duration, full: impl Iterator<Item = String>) -> Option<Vec<String>> {
        self.unknown.retain(|_, until| *until > now);
        let mut skipped: Vec<String> = self.unknown.keys().cloned().chain(full).collect();
        skipped.sort_unstable();
        skipped.dedup();
        if skipped == self.last {
            return None;
        }
        self.last.clone_from(&skipped);
        Some(skipped)
    }
}
