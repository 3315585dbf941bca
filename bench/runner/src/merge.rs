//! Runs several systems in turn, and merges all runs of each into one line.

use bench_protocol::{CommitSizes, Entry as SystemEntry, Line};

use crate::plan::Group;
use crate::programs::Programs;
use crate::record::{Entry, Missing};

/// Runs the rows of a round in turn, `runs` times or as often as a row allows, each with one system
/// after the other. The ceiling repeats the commit sizes that Onward had in the same run. In a row
/// that is compared with another, it repeats those that Onward had in the other row, so that the
/// ceiling's results differ only by what the rows differ in.
pub(crate) fn run_in_turn(programs: &Programs, round: &[Group<'_>], runs: u32) -> Vec<Entry> {
    let mut results: Vec<Results> =
        round.iter().map(|group| group.entries.iter().map(|_| Ok(Vec::new())).collect()).collect();
    for run in 1..=runs {
        let mut compared_with = None;
        for (group, results) in round.iter().zip(&mut results) {
            let runs = group.row.most_runs.map_or(runs, |most| most.min(runs));
            if run <= runs {
                eprintln!("{run}/{runs} {} {}", group.row.name, group.durability);
                let commits = compared_with.filter(|_| group.row.compared_with.is_some());
                compared_with = run_systems(programs, group, results, commits);
            }
        }
    }
    let merged = |(group, results): (&Group<'_>, Results)| {
        group.entries.iter().zip(results).map(|(entry, result)| merge(group, entry, result)).collect::<Vec<_>>()
    };
    round.iter().zip(results).flat_map(merged).collect()
}

/// The lines of each system of a row so far, or the reason why a system failed.
type Results = Vec<Result<Vec<Line>, String>>;

/// Runs a row once with each system. Returns the commit sizes that the ceiling repeated: the given
/// ones, or Onward's.
fn run_systems(
    programs: &Programs,
    group: &Group<'_>,
    results: &mut Results,
    mut commits: Option<CommitSizes>,
) -> Option<CommitSizes> {
    for (entry, result) in group.entries.iter().zip(results) {
        let Ok(lines) = result else { continue };
        eprintln!("    {}: {}", entry.system, entry.settings);
        match run_once(programs, group, entry, commits) {
            Ok(line) => {
                commits = commits.or(line.commits.filter(|_| entry.system == "onward"));
                lines.push(line);
            }
            Err(error) => {
                eprintln!("    {error}");
                *result = Err(error);
            }
        }
    }
    commits
}

fn run_once(
    programs: &Programs,
    group: &Group<'_>,
    entry: &SystemEntry,
    commits: Option<CommitSizes>,
) -> Result<Line, String> {
    if entry.settings.starts_with("same commits") && commits.is_none() {
        return Err("there is no Onward run whose commits it could repeat".to_owned());
    }
    programs.run(group, entry, commits).map_err(|error| format!("{error:#}"))
}

/// Merges the runs of a system. One failed run makes the whole result a failure, because a figure
/// of the other runs would hide it.
fn merge(group: &Group<'_>, entry: &SystemEntry, result: Result<Vec<Line>, String>) -> Entry {
    let missing = |why: String| {
        let (row, durability) = (group.row.name.clone(), group.durability);
        Entry::Missing(Missing {
            row,
            durability,
            system: entry.system.clone(),
            settings: entry.settings.clone(),
            missing: why,
        })
    };
    match result {
        // The line gets the system's name from the entry, because a given program may be a variant
        // that prints another name.
        Ok(lines) => merged(lines).map_or_else(
            || missing("no run".to_owned()),
            |line| Entry::Line(Box::new(Line { system: entry.system.clone(), ..line })),
        ),
        Err(why) => missing(why),
    }
}

/// Returns the median line by figure, with the spread of all runs and the sum of their losses.
/// Percentiles are medians of the runs' percentiles.
fn merged(mut lines: Vec<Line>) -> Option<Line> {
    let figures = lines.iter().map(|line| line.value).collect();
    lines.sort_by(|one, other| one.value.total_cmp(&other.value));
    let median_of = |figure: fn(&Line) -> Option<f64>| {
        let mut figures: Vec<f64> = lines.iter().filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        median(&figures)
    };
    let middle = lines.get(lines.len() / 2)?;
    let extra = middle.extra.iter().map(|(name, figure)| (name.clone(), worst_if_maximum(&lines, name, *figure)));
    Some(Line {
        value: median_of(|line| Some(line.value))?,
        extra: extra.collect(),
        min: lines.first()?.value,
        max: lines.last()?.value,
        p50: median_of(|line| line.p50),
        p99: median_of(|line| line.p99),
        p999: median_of(|line| line.p999),
        cpu_seconds: median_of(|line| line.cpu_seconds),
        peak_mib: median_of(|line| line.peak_mib),
        runs: u32::try_from(lines.len()).ok()?,
        figures,
        lost: lines.iter().map(|line| line.lost).sum(),
        duplicated: lines.iter().map(|line| line.duplicated).sum(),
        ..middle.clone()
    })
}

/// Returns the median of sorted figures, which is the mean of the middle two if their number is
/// even.
fn median(sorted: &[f64]) -> Option<f64> {
    let (before, after) = (sorted.get(sorted.len().saturating_sub(1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*before, *after))
}

/// Returns the largest value of all runs for a figure that is a maximum. Other further figures keep
/// the value of the median run.
fn worst_if_maximum(lines: &[Line], name: &str, figure: f64) -> f64 {
    let maxima = lines.iter().filter(|_| name.ends_with("_max_us")).filter_map(|line| line.extra.get(name));
    maxima.copied().fold(figure, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_two_is_between_them() {
        assert_eq!(median(&[1.0, 4.0]), Some(2.5));
    }

    #[test]
    fn the_median_of_three_is_the_second() {
        assert_eq!(median(&[1.0, 4.0, 5.0]), Some(4.0));
    }
}
