//! Comparisons of the rows of tasks on a file.

use bench_protocol::{DurabilityLevel, Line};

use crate::compare::{Comparison, by_rounds, find, onward, times_as_good};
use crate::record::Entry;

/// The seconds of the row of an idle process.
const IDLE_SECONDS: f64 = 60.0;

/// Returns round trips relative to the ceiling with the same commits, a submit relative to a bare
/// one, and the cost of an idle process.
pub(crate) fn comparisons(entries: &[Entry]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for durability in [DurabilityLevel::Normal, DurabilityLevel::Full] {
        all.extend(
            ["T/file_round_trips/64", "T/file_round_trips/4096"]
                .iter()
                .filter_map(|row| round_trips(entries, row, durability)),
        );
        all.extend(submit(entries, durability));
    }
    all.extend(idle(entries));
    all.extend(least_over_taskmill(entries, &WRITES, "work on the store"));
    all.extend(least_over_taskmill(entries, &READS, "read it"));
    all
}

/// taskmill's own benchmarks that submit, run or end tasks, by the prefixes of their rows.
const WRITES: [&str; 8] = [
    "T/submit_tasks/",
    "T/batch_submit/",
    "T/submit_dedup_hit/",
    "T/dispatch_and_complete/",
    "T/concurrency_scaling/",
    "T/mixed_priority_dispatch",
    "T/dispatch_permanent_failure/",
    "T/retryable_dead_letter/",
];

/// taskmill's own benchmarks that only read.
const READS: [&str; 4] = ["T/history_query/", "T/history_by_type/", "T/history_stats/", "T/peek_next/"];

/// Returns the row of these in which Onward's lead over taskmill is smallest.
fn least_over_taskmill(entries: &[Entry], rows: &[&str], what_they_do: &str) -> Option<Comparison> {
    let of_taskmill = entries.iter().filter_map(Entry::line).filter(|line| {
        line.system == "taskmill"
            && line.durability == DurabilityLevel::Memory
            && rows.iter().any(|row| line.row.starts_with(row))
    });
    let ratios = of_taskmill.filter_map(|line| {
        onward(entries, &line.row, DurabilityLevel::Memory).map(|ours| (&line.row, times_as_good(ours, line)))
    });
    let (row, least) = ratios.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let what = format!("{row}, memory: over taskmill, the least of its own benchmarks that {what_they_do}");
    Some(Comparison::of(what, least))
}

fn round_trips(entries: &[Entry], row: &str, durability: DurabilityLevel) -> Option<Comparison> {
    let ceiling = ceiling(entries, row, durability, "same commits")?;
    let ratio = by_rounds([onward(entries, row, durability)?, ceiling], |[ours, bare]| ours / bare);
    Some(Comparison::of_ratio(
        format!("{row}, {durability}: tasks per second over those of the ceiling with the same commits"),
        ratio,
    ))
}

fn submit(entries: &[Entry], durability: DurabilityLevel) -> Option<Comparison> {
    const ROW: &str = "T/file_submit/1";
    let bare = ceiling(entries, ROW, durability, "default")?;
    let ratio = by_rounds([onward(entries, ROW, durability)?, bare], |[ours, bare]| ours / bare);
    Some(Comparison::of_ratio(format!("{ROW}, {durability}: the median submit over a bare insert and commit"), ratio))
}

fn idle(entries: &[Entry]) -> Option<Comparison> {
    const ROW: &str = "T/file_idle/60";
    let seconds = onward(entries, ROW, DurabilityLevel::Normal)?.cpu_seconds?;
    let what = format!("{ROW}: hundredths of one core that the whole process takes, its start and end included");
    Some(Comparison::of(what, seconds / IDLE_SECONDS * 100.0))
}

fn ceiling<'a>(entries: &'a [Entry], row: &str, durability: DurabilityLevel, settings: &str) -> Option<&'a Line> {
    find(entries, row, durability, |line| line.system == "ceiling" && line.settings == settings)
}
