//! Ratios between lines.

use std::collections::BTreeMap;

use bench_protocol::{Better, DurabilityLevel, Line};

use crate::record::Entry;
use crate::{compare_postgres, compare_tasks, compare_workflows};

/// Returns Onward's own line of a row, with its default settings.
pub(crate) fn onward<'a>(entries: &'a [Entry], row: &str, durability: DurabilityLevel) -> Option<&'a Line> {
    find(entries, row, durability, |line| line.system == "onward" && line.settings == "default")
}

pub(crate) fn find<'a>(
    entries: &'a [Entry],
    row: &str,
    durability: DurabilityLevel,
    wanted: impl Fn(&Line) -> bool,
) -> Option<&'a Line> {
    entries.iter().filter_map(Entry::line).find(|line| line.row == row && line.durability == durability && wanted(line))
}

/// Returns how many times as good `line` is as `other`. Above 1 is better, for either direction of
/// the unit.
pub(crate) fn times_as_good(line: &Line, other: &Line) -> f64 {
    match line.better {
        Better::Lower => other.value / line.value,
        Better::Higher => line.value / other.value,
    }
}

/// Returns a ratio of the figures of lines whose rows run in turn, with its standard error. It is
/// the geometric mean of the ratios of the rounds, because a shared machine is not equally fast in
/// each round. If the lines do not have the same number of runs, it is the ratio of their medians.
pub(crate) fn by_rounds<const N: usize>(lines: [&Line; N], ratio: impl Fn([f64; N]) -> f64) -> Ratio {
    let rounds = lines[0].figures.len();
    if rounds == 0 || lines.iter().any(|line| line.figures.len() != rounds) {
        return Ratio { value: ratio(lines.map(|line| line.value)), error: None };
    }
    let logarithms = (0..rounds).map(|round| ratio(lines.map(|line| line.figures[round])).ln());
    let (mean, error) = mean_and_error(&logarithms.collect::<Vec<_>>());
    let value = mean.exp();
    Ratio { value, error: error.map(|error| value * error) }
}

/// Returns the mean of some numbers, and its standard error if there are several.
fn mean_and_error(numbers: &[f64]) -> (f64, Option<f64>) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
    (mean, (numbers.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}

/// A ratio and its uncertainty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    value: f64,
    /// The standard error, if there are several rounds.
    error: Option<f64>,
}

/// A comparison that no single row shows.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) what: String,
    value: f64,
    error: Option<f64>,
}

impl Comparison {
    pub(crate) fn of(what: String, value: f64) -> Self {
        Self { what, value, error: None }
    }

    pub(crate) fn of_ratio(what: String, Ratio { value, error }: Ratio) -> Self {
        Self { what, value, error }
    }

    /// Returns the figure, with its standard error if it is known.
    pub(crate) fn figure(&self) -> String {
        let error = self.error.map(|error| format!(" ± {error:.2}"));
        format!("{:.2}{}", self.value, error.unwrap_or_default())
    }
}

/// The rows with a backlog.
const BACKLOGS: [&str; 4] = [
    "T/file_round_trips_history/1M",
    "T/file_round_trips_waiting/100k",
    "T/file_round_trips_delayed/100k",
    "T/file_round_trips_backlog/1.2M",
];

/// Returns the comparisons of a record:
///
/// * the rows of tasks on a file;
/// * the share of the throughput that remains with a backlog, for Onward relative to the ceiling,
///   and with limits;
/// * the cost of a sync;
/// * the time of the rate tests beyond two bare commits;
/// * orchestrations and workflows relative to the best of each other system;
/// * the items of one step relative to plain tasks;
/// * the effect of a flood on the latency of other peers.
pub(crate) fn comparisons(entries: &[Entry]) -> Vec<Comparison> {
    const PLAIN: &str = "T/file_round_trips/4096";
    let ceiling = |row: &str, durability| {
        find(entries, row, durability, |line| line.system == "ceiling" && line.settings == "same commits, best rhythm")
    };
    let mut all = compare_tasks::comparisons(entries);
    for durability in [DurabilityLevel::Normal, DurabilityLevel::Full] {
        for row in BACKLOGS {
            let ours = onward(entries, row, durability).zip(onward(entries, PLAIN, durability));
            let theirs = ceiling(row, durability).zip(ceiling(PLAIN, durability));
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                let kept = |(line, plain)| by_rounds([line, plain], |[line, plain]| line / plain);
                let what = format!(
                    "{row}, {durability}: kept by Onward ({:.2}) over kept by the ceiling ({:.2})",
                    kept(ours).value,
                    kept(theirs).value
                );
                let ratio = by_rounds([ours.0, ours.1, theirs.0, theirs.1], |[a, b, c, d]| (a / b) / (c / d));
                all.push(Comparison::of_ratio(what, ratio));
            }
        }
    }
    all.extend(
        [DurabilityLevel::Normal, DurabilityLevel::Full].into_iter().flat_map(|durability| limits(entries, durability)),
    );
    all.extend(above_two_commits(entries));
    all.extend(beside_others(entries));
    if let (Some(full), Some(normal)) =
        (onward(entries, PLAIN, DurabilityLevel::Full), onward(entries, PLAIN, DurabilityLevel::Normal))
    {
        all.push(Comparison::of(format!("{PLAIN}: full over normal"), full.value / normal.value));
    }
    all.extend(flooded(entries));
    all.extend(compare_postgres::comparisons(entries));
    all.extend(compare_workflows::comparisons(entries));
    all
}

/// Returns the effect of one flooding peer on the latency of the others, for each system.
fn flooded(entries: &[Entry]) -> Vec<Comparison> {
    const PACED: &str = "M/push_pull_ipc_paced/7";
    const FLOODED: &str = "M/push_pull_ipc_flooded/7";
    let lines = |row: &'static str| entries.iter().filter_map(Entry::line).filter(move |line| line.row == row);
    let pairs = lines(FLOODED).filter_map(|flooded| {
        let paced = lines(PACED).find(|paced| paced.system == flooded.system && paced.settings == flooded.settings)?;
        Some((flooded, paced))
    });
    pairs
        .map(|(flooded, paced)| {
            let what = format!("{}: p99 of seven peers beside one that floods over p99 without it", flooded.system);
            Comparison::of(what, flooded.value / paced.value)
        })
        .collect()
}

/// Returns the share of the throughput that remains with groups and limits.
fn limits(entries: &[Entry], durability: DurabilityLevel) -> Vec<Comparison> {
    const ROW: &str = "T/file_limits/4096";
    let with =
        |settings: &str| find(entries, ROW, durability, |line| line.system == "onward" && line.settings == settings);
    let over = |settings: &str, base: &str| {
        let ratio = by_rounds([with(settings)?, with(base)?], |[one, other]| one / other);
        Some(Comparison::of_ratio(format!("{ROW}, {durability}: {settings} over {base}"), ratio))
    };
    let pairs = [("groups", "no groups"), ("limits", "no groups"), ("limits", "groups"), ("saturated", "limits")];
    pairs.into_iter().filter_map(|(settings, base)| over(settings, base)).collect()
}

/// Returns how far the 99th percentiles of the rate tests are above two bare commits in the same
/// run.
fn above_two_commits(entries: &[Entry]) -> Vec<Comparison> {
    let lines = entries.iter().filter_map(Entry::line);
    let bare = lines.filter(|line| line.system == "ceiling" && line.settings == "two commits");
    let above = |bare: &Line| {
        let ours = onward(entries, &bare.row, bare.durability)?;
        let what = format!("{}, {}: p99 above two bare commits, in ms", bare.row, bare.durability);
        Some(Comparison::of(what, (ours.value - bare.value) / 1e3))
    };
    bare.filter_map(above).collect()
}

/// Compares Onward with each other system in the rows of orchestrations, of workflows and on
/// PostgreSQL, with the best settings of each.
fn beside_others(entries: &[Entry]) -> Vec<Comparison> {
    let lines: Vec<&Line> = entries.iter().filter_map(Entry::line).collect();
    let settings = ["default", "queued activities"];
    let of_rows = lines.iter().filter(|line| {
        ["D/", "P/", "W/"].iter().any(|section| line.row.starts_with(section))
            && line.system == "onward"
            && settings.contains(&line.settings.as_str())
    });
    let beside = |ours: &&&Line| {
        let ours: &Line = ours;
        let others = lines
            .iter()
            .filter(|line| line.row == ours.row && line.durability == ours.durability && line.system != "onward");
        let mut best: BTreeMap<&str, &Line> = BTreeMap::new();
        for other in others {
            let so_far = best.entry(&other.system).or_insert(other);
            if times_as_good(other, so_far) > 1.0 {
                *so_far = other;
            }
        }
        let name = if ours.settings == "default" { "Onward" } else { "Onward's queued activities" };
        let comparison = |other: &Line| {
            let what = format!("{}, {}: {name} over {} ({})", ours.row, ours.durability, other.system, other.settings);
            Comparison::of(what, times_as_good(ours, other))
        };
        best.into_values().map(comparison).collect::<Vec<_>>()
    };
    of_rows.flat_map(|ours| beside(&ours)).collect()
}

/// Returns the comparisons for a terminal, or an empty text if none can be made.
pub(crate) fn text(entries: &[Entry]) -> String {
    comparisons(entries).iter().map(|comparison| format!("{}  {}\n", comparison.figure(), comparison.what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: f64, figures: &[f64]) -> Line {
        let line = format!(
            r#"{{"row":"T/a","durability":"normal","system":"onward","settings":"default","value":{value},"unit":"tasks/s","better":"higher",
                "min":0,"max":0,"p50":null,"p99":null,"runs":1,"lost":0,"duplicated":0,"figures":{figures:?}}}"#
        );
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn what_was_run_in_turn_is_compared_round_by_round() {
        let lines = [line(100.0, &[100.0, 50.0, 200.0]), line(160.0, &[80.0, 40.0, 160.0])];
        let ratio = by_rounds(lines.each_ref(), |[one, other]| one / other);
        assert_eq!(Comparison::of_ratio(String::new(), ratio).figure(), "1.25 ± 0.00");
    }

    #[test]
    fn what_was_not_run_equally_often_is_compared_by_its_medians() {
        let lines = [line(100.0, &[100.0]), line(160.0, &[80.0, 160.0, 170.0])];
        let ratio = by_rounds(lines.each_ref(), |[one, other]| one / other);
        assert_eq!(Comparison::of_ratio(String::new(), ratio).figure(), "0.62");
    }

    #[test]
    fn a_ratio_says_how_far_it_may_be_off() {
        // The ratios are a half and two: the mean of their logarithms is zero, and its standard
        // error ln 2.
        let lines = [line(100.0, &[50.0, 200.0]), line(100.0, &[100.0, 100.0])];
        let ratio = by_rounds(lines.each_ref(), |[one, other]| one / other);
        assert_eq!(Comparison::of_ratio(String::new(), ratio).figure(), "1.00 ± 0.69");
    }
}
