//! The table of results.

use std::fmt::Write as _;

use anyhow::Result;

use crate::case::{Case, Reader};
use crate::measure;
use crate::source::{Counter, Endless, Frames};

const ROUNDS: usize = 5;

const CASES: &[(Reader, &[usize])] = &[
    (Reader::Bare, &[1, 2, 8, 64, 1024]),
    (Reader::FairQueue, &[1, 2, 8, 64, 1024]),
    (Reader::Batches, &[1, 2, 8, 64, 1024]),
    (Reader::SelectAll, &[1, 2, 8, 64, 1024]),
];

/// Returns the table, with a row for each case and source. Ratios are to a bare poll of the same
/// kind of source in the same run.
pub(crate) fn all() -> Result<String> {
    let mut table = String::from(
        "| source | reader/sources | instructions | × bare | ns | × bare | allocations in 100 000 |\n|---|---|---|---|---|---|---|\n",
    );
    for source in [Counter::NAME, Frames::NAME] {
        append(&mut table, source)?;
    }
    Ok(table)
}

fn append(table: &mut String, source: &str) -> Result<()> {
    let cases: Vec<Case> = CASES
        .iter()
        .flat_map(|(reader, sources)| sources.iter().map(|sources| Case { reader: *reader, sources: *sources }))
        .collect();
    let nanoseconds = measure::nanoseconds(source, &cases, ROUNDS)?;
    let instructions = cases.iter().map(|case| measure::instructions(source, *case)).collect::<Result<Vec<_>>>()?;
    for ((case, time), count) in cases.iter().zip(&nanoseconds).zip(&instructions) {
        let (times, counts) = (time / nanoseconds[0], count / instructions[0]);
        let allocations = measure::allocations(source, *case)?;
        writeln!(table, "| {source} | {case} | {count:.1} | {counts:.2} | {time:.1} | {times:.2} | {allocations} |")?;
    }
    Ok(())
}
