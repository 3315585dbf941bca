//! Decides how many submits, claims and completions each commit contains.

use bench_protocol::CommitSizes;

/// A tolerance, so that sums of fractions do not fall just short of a whole number.
const ROUNDING: f64 = 1e-6;

/// The content of one commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) completions: usize,
    pub(crate) submits: usize,
    pub(crate) claims: usize,
}

/// An endless sequence of commits. On average it has the given sizes and the given number of
/// commits for each 1000 tasks.
///
/// Each step occurs as often as its size demands. With a commit for each 64 tasks and sizes of 64,
/// every commit contains all three steps. With three commits for each 64 tasks the steps take
/// turns, as they do where a task is submitted, claimed and completed in consecutive commits.
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    submits: Step,
    claims: Step,
    completions: Step,
}

impl Cycle {
    pub(crate) fn new(sizes: CommitSizes) -> Self {
        let tasks_per_commit = 1000.0 / sizes.commits;
        let step = |size: f64, commits_later| Step::new(size, tasks_per_commit, commits_later);
        Self {
            submits: step(sizes.submits, 0.0),
            claims: step(sizes.claims, 1.0),
            completions: step(sizes.completions, 2.0),
        }
    }

    /// Returns a sequence of commits with `size` tasks in each step.
    pub(crate) fn of_batch(size: usize) -> Self {
        let size = size as f64;
        Self::new(CommitSizes { commits: 1000.0 / size, submits: size, claims: size, completions: size })
    }

    /// Returns the next commit. It may be empty if the steps do not fill all commits.
    pub(crate) fn next(&mut self) -> Commit {
        Commit { completions: self.completions.next(), submits: self.submits.next(), claims: self.claims.next() }
    }
}

/// A kind of step that is present in a fraction of all commits, evenly spread.
#[derive(Debug, Clone)]
struct Step {
    frequency: f64,
    turn: f64,
    size: f64,
    carried: f64,
}

impl Step {
    fn new(size: f64, tasks_per_commit: f64, commits_later: f64) -> Self {
        let frequency = if size > 0.0 { (tasks_per_commit / size).min(1.0) } else { 0.0 };
        let first = (1.0 - frequency * (1.0 + commits_later)).rem_euclid(1.0) + ROUNDING;
        let turn = if frequency > 0.0 { first } else { 0.0 };
        Self { frequency, turn, size: size.max(tasks_per_commit), carried: ROUNDING }
    }

    fn next(&mut self) -> usize {
        self.turn += self.frequency;
        if self.turn < 1.0 {
            return 0;
        }
        self.turn -= 1.0;
        self.carried += self.size;
        let whole = self.carried.floor();
        self.carried -= whole;
        whole as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_per_batch_holds_all_three_steps() {
        let mut cycle = Cycle::of_batch(64);
        for _ in 0..1000 {
            assert_eq!(cycle.next(), Commit { completions: 64, submits: 64, claims: 64 });
        }
    }

    #[test]
    fn three_commits_per_batch_take_turns() {
        let mut cycle =
            Cycle::new(CommitSizes { commits: 3000.0 / 64.0, submits: 64.0, claims: 64.0, completions: 64.0 });
        for _ in 0..1000 {
            let sizes = [cycle.next(), cycle.next(), cycle.next()]
                .map(|commit| (commit.submits, commit.claims, commit.completions));
            assert_eq!(sizes, [(64, 0, 0), (0, 64, 0), (0, 0, 64)]);
        }
    }

    #[test]
    fn the_sizes_are_kept_on_average() {
        let sizes = CommitSizes { commits: 10.0, submits: 133.3, claims: 400.5, completions: 100.0 };
        let mut cycle = Cycle::new(sizes);
        let commits: Vec<Commit> = (0..10_000).map(|_| cycle.next()).collect();
        let total = |size: fn(&Commit) -> usize| commits.iter().map(size).sum::<usize>() as f64;
        for tasks in [total(|each| each.submits), total(|each| each.claims), total(|each| each.completions)] {
            assert!((tasks - 1e6).abs() < 2e3, "{tasks}");
        }
    }
}
