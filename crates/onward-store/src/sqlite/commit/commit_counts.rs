//! The sizes of commits, so that a benchmark can compare the store with a program that commits
//! batches of a known size.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::outcome::Outcome;
use crate::api::write::Write;
use crate::sqlite::commit::committer::CommitRequest;

/// Counts since the store was opened.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct CommitSizes {
    /// Commits that had at least one call.
    commits: AtomicU64,
    /// Calls in all commits.
    calls: AtomicU64,
    /// Submitted tasks.
    submitted: AtomicU64,
    /// Claimed tasks.
    claimed: AtomicU64,
    /// Ended attempts.
    ended: AtomicU64,
    /// Commits that submitted at least one task.
    submitting: AtomicU64,
    /// Commits that claimed at least one task.
    claiming: AtomicU64,
    /// Commits that ended at least one attempt.
    ending: AtomicU64,
}

/// The number of commits and of the operations in them, since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitCounts {
    /// Commits.
    pub commits: u64,
    /// Calls of [`apply`](crate::Store::apply) in them.
    pub calls: u64,
    /// Tasks submitted.
    pub submitted: u64,
    /// Tasks claimed.
    pub claimed: u64,
    /// Attempts ended: completed, failed, released or cancelled.
    pub ended: u64,
    /// Commits that submitted any task.
    pub submitting: u64,
    /// Commits that claimed any task.
    pub claiming: u64,
    /// Commits that ended any attempt.
    pub ending: u64,
}

impl CommitSizes {
    /// Adds a commit. A rejected submit or completion counts like an accepted one, because it costs
    /// as much.
    pub(in crate::sqlite) fn record(&self, requests: &[CommitRequest], outcomes: &[Vec<Outcome>]) {
        let mut counts = CommitCounts::default();
        for request in requests {
            request.writes.iter().for_each(|write| counts.add_write(write));
        }
        outcomes.iter().flatten().for_each(|outcome| counts.add_outcome(outcome));
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.calls.fetch_add(requests.len() as u64, Ordering::Relaxed);
        self.submitted.fetch_add(counts.submitted, Ordering::Relaxed);
        self.claimed.fetch_add(counts.claimed, Ordering::Relaxed);
        self.ended.fetch_add(counts.ended, Ordering::Relaxed);
        self.submitting.fetch_add(u64::from(counts.submitted > 0), Ordering::Relaxed);
        self.claiming.fetch_add(u64::from(counts.claimed > 0), Ordering::Relaxed);
        self.ending.fetch_add(u64::from(counts.ended > 0), Ordering::Relaxed);
    }

    /// Returns the counts so far. They are read one by one, so a commit in progress may show in
    /// some of them only.
    pub(in crate::sqlite) fn counts(&self) -> CommitCounts {
        CommitCounts {
            commits: self.commits.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            submitted: self.submitted.load(Ordering::Relaxed),
            claimed: self.claimed.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
            submitting: self.submitting.load(Ordering::Relaxed),
            claiming: self.claiming.load(Ordering::Relaxed),
            ending: self.ending.load(Ordering::Relaxed),
        }
    }
}

impl CommitCounts {
    /// Counts a write by its kind.
    fn add_write(&mut self, write: &Write) {
        match write {
            Write::Submit(_) => self.submitted += 1,
            Write::Complete { .. }
            | Write::Fail { .. }
            | Write::Release { .. }
            | Write::ConfirmCancel { .. }
            | Write::EndWithTurn(_) => {
                self.ended += 1;
            }
            Write::All(writes) => writes.iter().for_each(|write| self.add_write(write)),
            _ => {}
        }
    }

    /// Counts the tasks that a claim returned.
    fn add_outcome(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Claimed(claimed) => self.claimed += claimed.tasks.len() as u64,
            Outcome::All(outcomes) => outcomes.iter().for_each(|outcome| self.add_outcome(outcome)),
            _ => {}
        }
    }
}
