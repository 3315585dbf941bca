//! The power cuts.

use std::collections::BTreeMap;
use std::fs;

use fastrand::Rng;
use onward_store::Durability;
use onward_testkit::soak::{self, Tally};
use tempfile::TempDir;

use super::disk::Disk;
use super::facts::{Acknowledgement, Expected};
use super::judge::{Verdict, judge};
use super::recording::{Operation, Part};
use super::workload::{self, Run};

/// The store's name in the directory of a cut.
const FILE: &str = "onward.db";

/// The first cut after which a check failed, with the files as it left them.
#[derive(Debug)]
struct Finding {
    moment: usize,
    problem: String,
    directory: TempDir,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_in_class_full_loses_nothing_acknowledged() {
    let seed = soak::seed();
    let points = soak::number("ONWARD_POINTS").unwrap_or(200);
    let run = workload::run(Durability::Full, seed).await;
    let (tally, finding) = cut(&run, points, seed).await;
    println!("{tally}");
    if let Some(Finding { moment, problem, directory }) = finding {
        let (count, kept) = (run.operations.len(), directory.keep());
        panic!("ONWARD_SEED={seed}: a cut after {moment} of {count} operations: {problem}; see {}", kept.display());
    }
}

/// The durability level `normal` promises only a store that is whole. A harness that finds no loss
/// here would find none anywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_in_class_normal_loses_something_and_damages_nothing() {
    let run = workload::run(Durability::Normal, 1).await;
    let (tally, _) = cut(&run, 50, 1).await;
    assert!(tally.lost > 0 && tally.recovered == 50, "{tally}");
}

/// Shows that the log restarts within the run. Otherwise nothing would depend on the syncs of the
/// database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_lies_about_syncs_of_the_database_is_found_out() {
    let mut run = workload::run(Durability::Full, 1).await;
    let database = run.operations.iter().find_map(|operation| match operation {
        Operation::Create { part: Part::Database, inode } => Some(*inode),
        _ => None,
    });
    for operation in &mut run.operations {
        if matches!(operation, Operation::Sync { inode } if Some(*inode) == database) {
            *operation = Operation::Write { inode: database.unwrap(), offset: 0, bytes: [].into() };
        }
    }
    let (_, finding) = cut(&run, 50, 1).await;
    assert!(finding.is_some());
}

/// Cuts the power at random moments and at moments of an acknowledgement, equally often.
async fn cut(run: &Run, points: u64, seed: u64) -> (Tally, Option<Finding>) {
    let mut random = Rng::with_seed(seed);
    let mut moments: Vec<usize> = (0..points).map(|point| moment(run, point, &mut random)).collect();
    moments.sort_unstable();
    let mut tally = Tally { seed, ..Tally::default() };
    let mut finding = None;
    let mut disk = Disk::default();
    let mut done = 0;
    for moment in moments {
        run.operations[done..moment].iter().for_each(|operation| disk.perform(operation));
        done = moment;
        let files = disk.after_power_cut(&mut random);
        let verdict = recover(run, &files, moment).await;
        add(&mut tally, run, moment, verdict.as_ref().ok());
        finding = finding.or_else(|| find(moment, verdict, &files));
    }
    (tally, finding)
}

fn moment(run: &Run, point: u64, random: &mut Rng) -> usize {
    if point.is_multiple_of(2) {
        return random.usize(..=run.operations.len());
    }
    run.acknowledgements[random.usize(..run.acknowledgements.len())].given
}

async fn recover(run: &Run, files: &BTreeMap<Part, Vec<u8>>, moment: usize) -> Result<Verdict, String> {
    let directory = put(files);
    let expected = Expected::at(moment, &run.acknowledgements);
    judge(&directory.path().join(FILE), run.clock.clone(), &expected).await
}

/// Writes the files into a directory of their own.
fn put(files: &BTreeMap<Part, Vec<u8>>) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join(FILE);
    for (part, content) in files {
        fs::write(part.beside(&path), content).expect("a file can be written");
    }
    directory
}

fn find(moment: usize, verdict: Result<Verdict, String>, files: &BTreeMap<Part, Vec<u8>>) -> Option<Finding> {
    let problem = match verdict {
        Ok(verdict) if verdict.lost.is_empty() && verdict.duplicated.is_empty() => return None,
        Ok(verdict) => format!("{verdict:?}"),
        Err(problem) => problem,
    };
    Some(Finding { moment, problem, directory: put(files) })
}

fn given(run: &Run, moment: usize) -> impl Iterator<Item = &Acknowledgement> {
    run.acknowledgements.iter().filter(move |acknowledgement| acknowledgement.given <= moment)
}

/// Counts a cut: the changes before it, and their fate. A store that opened and was whole has
/// recovered.
fn add(tally: &mut Tally, run: &Run, moment: usize, verdict: Option<&Verdict>) {
    let asked = run.acknowledgements.iter().filter(|acknowledgement| acknowledgement.asked < moment);
    tally.attempted += changes(asked);
    tally.acknowledged += changes(given(run, moment));
    let Some(verdict) = verdict else { return };
    tally.lost += verdict.lost.len() as u64;
    tally.duplicated += verdict.duplicated.len() as u64;
    tally.recovered += 1;
}

fn changes<'a>(acknowledgements: impl Iterator<Item = &'a Acknowledgement>) -> u64 {
    acknowledgements.map(|acknowledgement| acknowledgement.facts.len() as u64).sum()
}
