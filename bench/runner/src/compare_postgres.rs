//! Comparisons of the rows on PostgreSQL.

use bench_protocol::{DurabilityLevel, Line};

use crate::compare::{Comparison, by_rounds, find, onward};
use crate::record::Entry;

const DURABILITY: DurabilityLevel = DurabilityLevel::Full;

/// Returns how far a start is above two bare commits, the share of the throughput that remains with
/// limits and backlogs, and the throughput of two nodes together.
pub(crate) fn comparisons(entries: &[Entry]) -> Vec<Comparison> {
    let parts = [above_two_commits(entries), limits(entries), kept(entries), claims(entries)];
    parts.into_iter().flatten().chain(nodes(entries)).collect()
}

fn above_two_commits(entries: &[Entry]) -> Vec<Comparison> {
    const ROW: &str = "P/wake/50";
    let bare = find(entries, ROW, DURABILITY, |line| line.settings == "two commits");
    let lines = entries.iter().filter_map(Entry::line).filter(|line| line.row == ROW && line.settings != "two commits");
    let above = |line: &Line, name: &str, percentile: fn(&Line) -> Option<f64>| {
        let what =
            format!("{ROW}: {name} of {} ({}) above that of two bare commits, in ms", line.system, line.settings);
        Some(Comparison::of(what, (percentile(line)? - percentile(bare?)?) / 1e3))
    };
    let of_line = |line| [above(line, "p50", |line| line.p50), above(line, "p99", |line| line.p99)];
    lines.flat_map(of_line).flatten().collect()
}

fn limits(entries: &[Entry]) -> Vec<Comparison> {
    const ROW: &str = "P/limits/4096";
    let with = |settings: &str| find(entries, ROW, DURABILITY, |line| line.settings == settings);
    let over = |settings: &str, base: &str| {
        let ratio = by_rounds([with(settings)?, with(base)?], |[one, other]| one / other);
        Some(Comparison::of_ratio(format!("{ROW}: {settings} over {base}"), ratio))
    };
    [over("groups", "no groups"), over("limits", "no groups"), over("limits", "groups")].into_iter().flatten().collect()
}

/// Returns the share of the tasks a second that remains with a backlog, for Onward relative to the
/// ceiling.
fn kept(entries: &[Entry]) -> Vec<Comparison> {
    const PLAIN: &str = "P/round_trips";
    let ceiling = |row: &str| find(entries, row, DURABILITY, |line| line.system == "ceiling-postgres");
    let (ours_plain, theirs_plain) = (onward(entries, PLAIN, DURABILITY), ceiling(PLAIN));
    let rows = entries.iter().filter_map(Entry::line).filter(|line| {
        (line.row.starts_with("P/round_trips_") || line.row.starts_with("P-large/")) && line.system == "onward"
    });
    let kept = |line: &Line| {
        let ours = line.value / ours_plain?.value;
        let theirs = ceiling(&line.row)?.value / theirs_plain?.value;
        let what = format!("{}: kept by Onward ({ours:.2}) over kept by the ceiling ({theirs:.2})", line.row);
        Some(Comparison::of(what, ours / theirs))
    };
    rows.filter_map(kept).collect()
}

/// Returns the cost of a claim with the most ready tasks divided by that with the fewest.
fn claims(entries: &[Entry]) -> Vec<Comparison> {
    let of = |settings: &'static str| {
        let lines = entries.iter().filter_map(Entry::line);
        lines.filter(move |line| line.row.starts_with("P/claim/") && line.settings == settings).map(|line| line.value)
    };
    let over = |settings| {
        let (most, least) = (of(settings).reduce(f64::max)?, of(settings).reduce(f64::min)?);
        Some(Comparison::of(format!("P/claim: the dearest over the cheapest, {settings}"), most / least))
    };
    ["one sub-queue", "groups"].into_iter().filter_map(over).collect()
}

fn nodes(entries: &[Entry]) -> Option<Comparison> {
    let (one, two) = (onward(entries, "P/nodes/1", DURABILITY)?, onward(entries, "P/nodes/2", DURABILITY)?);
    Some(Comparison::of("P/nodes: two nodes together over one".to_owned(), two.value / one.value))
}
