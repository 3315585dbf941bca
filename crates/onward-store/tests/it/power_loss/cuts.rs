//! The power cuts.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};

use fastrand::Rng;
use onward_store::Durability;

use super::disk::Disk;
use super::judge::{Verdict, judge};
use super::recording::Part;
use super::workload::{self, Acknowledgement, Run};

/// A cut, summed over all: changes of tasks before it, and what became of them.
#[derive(Debug, Default)]
struct Summary {
    /// Submits and completions asked for.
    attempted: usize,
    acknowledged: usize,
    lost: usize,
    duplicated: usize,
    /// Stores that opened and were whole.
    recovered: usize,
    seed: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempted, acknowledged, lost, duplicated, recovered, seed } = self;
        write!(
            f,
            "attempted={attempted} acknowledged={acknowledged} lost={lost} duplicated={duplicated} recovered={recovered} seed={seed}"
        )
    }
}

/// What the tests do when something is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Fails,
    Counts,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_in_class_full_loses_nothing_acknowledged() {
    let seed = number("ONWARD_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    let points = number("ONWARD_POINTS").unwrap_or(200);
    let run = workload::run(Durability::Full, seed).await;
    let summary = cut(&run, points, seed, Loss::Fails).await;
    println!("{summary}");
    assert_eq!((summary.lost, summary.duplicated), (0, 0), "{summary}");
}

/// The class promises no more than a store that is whole; and a harness that finds no loss here would find none anywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_in_class_normal_loses_something_and_damages_nothing() {
    let run = workload::run(Durability::Normal, 1).await;
    let summary = cut(&run, 50, 1, Loss::Counts).await;
    assert!(summary.lost > 0, "{summary}");
}

/// Cuts the power at random moments and at moments in which something was acknowledged, as many of the one as of the other.
async fn cut(run: &Run, points: u64, seed: u64, loss: Loss) -> Summary {
    let mut random = Rng::with_seed(seed);
    let mut moments: Vec<usize> = (0..points).map(|point| moment(run, point, &mut random)).collect();
    moments.sort_unstable();
    let mut summary = Summary { seed, ..Summary::default() };
    let mut disk = Disk::default();
    let mut done = 0;
    for moment in moments {
        run.operations[done..moment].iter().for_each(|operation| disk.perform(operation));
        done = moment;
        let verdict = recover(run, &disk.after_power_cut(&mut random), moment, loss, seed).await;
        summary.add(run, moment, &verdict);
    }
    summary
}

fn moment(run: &Run, point: u64, random: &mut Rng) -> usize {
    if point % 2 == 0 {
        return random.usize(..=run.operations.len());
    }
    run.acknowledgements[random.usize(..run.acknowledgements.len())].given
}

/// Puts the files into a directory of their own and opens them. If something is wrong, they stay there to be looked at.
async fn recover(run: &Run, files: &BTreeMap<Part, Vec<u8>>, moment: usize, loss: Loss, seed: u64) -> Verdict {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("onward.db");
    for (part, content) in files {
        fs::write(part.beside(&path), content).expect("a file can be written");
    }
    let acknowledged: Vec<&Acknowledgement> = given(run, moment).collect();
    let problem = match judge(&path, run.clock.clone(), &acknowledged).await {
        Ok(verdict) if loss == Loss::Counts => return verdict,
        Ok(verdict) if verdict.lost.is_empty() && verdict.duplicated.is_empty() => return verdict,
        Ok(verdict) => format!("{verdict:?}"),
        Err(problem) => problem,
    };
    let kept = directory.keep();
    for (part, content) in files {
        fs::write(part.beside(&kept.join("cut.db")), content).expect("a file can be written");
    }
    let count = run.operations.len();
    panic!("ONWARD_SEED={seed}: a cut after {moment} of {count} operations: {problem}; see {}", kept.display());
}

fn given(run: &Run, moment: usize) -> impl Iterator<Item = &Acknowledgement> {
    run.acknowledgements.iter().filter(move |acknowledgement| acknowledgement.given <= moment)
}

impl Summary {
    fn add(&mut self, run: &Run, moment: usize, verdict: &Verdict) {
        let asked = run.acknowledgements.iter().filter(|acknowledgement| acknowledgement.asked < moment);
        self.attempted += asked.map(|acknowledgement| acknowledgement.tasks.len()).sum::<usize>();
        self.acknowledged += given(run, moment).map(|acknowledgement| acknowledgement.tasks.len()).sum::<usize>();
        self.lost += verdict.lost.len();
        self.duplicated += verdict.duplicated.len();
        self.recovered += 1;
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`; it must be a whole number")))
}
