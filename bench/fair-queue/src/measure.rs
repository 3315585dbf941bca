//! Measures one figure of one case.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::case::Case;
use crate::prepare;

/// The number of counted messages, enough for every source to have had many turns.
const COUNTED: u64 = 100_000;

/// Returns the instructions for each message. It is the difference of two runs, so that starting
/// and preparing do not count.
pub(crate) fn instructions(source: &str, case: Case) -> Result<f64> {
    let more = instructions_of(source, case, 2 * COUNTED)? - instructions_of(source, case, COUNTED)?;
    Ok(more / COUNTED as f64)
}

fn instructions_of(source: &str, case: Case, messages: u64) -> Result<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(std::env::current_exe()?).args(["run", source, &case.to_string(), &messages.to_string()]);
    let output = valgrind.output().context("valgrind is needed to count instructions (apt-get install valgrind)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind failed: {said}");
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected :")).context("valgrind counted nothing")?.1;
    Ok(collected.trim().parse()?)
}

/// Returns the allocations of [`COUNTED`] messages, after as many that are not counted.
pub(crate) fn allocations(source: &str, case: Case) -> Result<u64> {
    let mut read = prepare(source, case)?;
    read(COUNTED);
    Ok(allocation_counter::measure(|| read(COUNTED)).count_total)
}

/// Returns the nanoseconds for each message of each case: the median of rounds in which the cases
/// take turns.
pub(crate) fn nanoseconds(source: &str, cases: &[Case], rounds: usize) -> Result<Vec<f64>> {
    const MESSAGES: u64 = 1_000_000;
    let mut readers = cases.iter().map(|case| prepare(source, *case)).collect::<Result<Vec<_>>>()?;
    let mut taken = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for (read, taken) in readers.iter_mut().zip(&mut taken) {
            let started = Instant::now();
            read(MESSAGES);
            taken.push(started.elapsed().as_secs_f64() * 1e9 / MESSAGES as f64);
        }
    }
    Ok(taken.into_iter().map(median).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
