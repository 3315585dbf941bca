//! Selects the rows, durability levels and systems, and groups those that run in turn.

use std::collections::BTreeSet;

use bench_protocol::{DurabilityLevel, Entry, Row};

/// A row in one durability level, with the systems that run it in turn.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) row: &'a Row,
    pub(crate) durability: DurabilityLevel,
    pub(crate) entries: Vec<&'a Entry>,
}

/// Returns the groups that run in turn: a row and those that are compared with it, in one
/// durability level. Each round is at the position of its first group.
pub(crate) fn rounds(groups: Vec<Group<'_>>) -> Vec<Vec<Group<'_>>> {
    let mut rounds: Vec<Vec<Group<'_>>> = Vec::new();
    for group in groups {
        match rounds.iter_mut().find(|round| round[0].family() == group.family()) {
            Some(round) => round.push(group),
            None => rounds.push(vec![group]),
        }
    }
    rounds
}

impl Group<'_> {
    fn family(&self) -> (&str, DurabilityLevel) {
        (self.row.compared_with.as_deref().unwrap_or(&self.row.name), self.durability)
    }
}

/// Returns the groups of the rows that match one of `patterns`, with onward and the `peers`. No
/// patterns select all rows except those that must be named; no peers select all.
pub(crate) fn select<'a>(rows: &'a [Row], patterns: &[String], peers: &[String]) -> Vec<Group<'a>> {
    let row_wanted = |row: &Row| match patterns {
        [] => !row.only_when_named,
        patterns => patterns.iter().any(|pattern| matches(pattern, &row.name)),
    };
    let system_wanted =
        |system: &str| peers.is_empty() || system == "onward" || peers.iter().any(|peer| peer == system);
    let mut groups = Vec::new();
    for row in rows.iter().filter(|row| row_wanted(row)) {
        for (durability, entries) in &row.systems {
            let entries = entries.iter().filter(|entry| system_wanted(&entry.system)).collect();
            groups.push(Group { row, durability: *durability, entries });
        }
    }
    groups
}

/// Keeps one row of each workload, in its first durability level, which is enough to check that
/// everything works.
pub(crate) fn sample(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let mut seen = BTreeSet::new();
    groups.into_iter().filter(|group| seen.insert((group.row.workload.as_str(), group.row.postgres))).collect()
}

/// Returns whether `text` matches `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        let name = "T/file_round_trips/64";
        assert!(["T/*", "*", "T/file_*/64", name].iter().all(|pattern| matches(pattern, name)));
        assert!(!["T/", "M/*", "T/file_*/6", ""].iter().any(|pattern| matches(pattern, name)));
    }

    #[test]
    fn a_sample_has_each_workload_once() {
        let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let rows = bench_protocol::load_scenarios(&scenarios).unwrap();
        let all = select(&rows, &[], &[]);
        let workloads: BTreeSet<_> = all.iter().map(|group| (group.row.workload.clone(), group.row.postgres)).collect();
        assert_eq!(sample(all).len(), workloads.len());
    }

    #[test]
    fn rows_that_are_compared_are_run_in_turn() {
        let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let rows = bench_protocol::load_scenarios(&scenarios).unwrap();
        let rounds = rounds(select(&rows, &["T/file_round_trips*".to_owned()], &[]));
        let names = |round: &Vec<Group<'_>>| round.iter().map(|group| group.row.name.clone()).collect::<Vec<_>>();
        let with_others: Vec<_> = rounds.iter().map(names).filter(|names| names.len() > 1).collect();
        let backlogs = ["history/1M", "waiting/100k", "delayed/100k", "backlog/1.2M"]
            .map(|backlog| format!("T/file_round_trips_{backlog}"));
        let expected = [&["T/file_round_trips/4096".to_owned()][..], &backlogs].concat();
        assert_eq!(with_others, [expected.clone(), expected]);
    }
}
