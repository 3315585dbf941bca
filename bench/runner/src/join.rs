//! Joins several records.

use anyhow::{Context as _, Result, ensure};
use bench_protocol::Line;

use crate::record::{Entry, Record};

/// Joins records of one commit and one machine. A line that several records have becomes one line
/// with the runs of all.
pub(crate) fn join(records: Vec<Record>) -> Result<Record> {
    let mut records = records.into_iter();
    let mut joined = records.next().context("no record was named")?;
    for record in records {
        let (one, other) = (&joined.machine, &record.machine);
        ensure!(one.commit == other.commit, "one record is of {}, another of {}", one.commit, other.commit);
        let [one, other] =
            [one, other].map(|of| (&of.machine, &of.processor, of.cores, &of.kernel, &of.rust, of.quick));
        ensure!(one == other, "the records are of different machines: {one:?} and {other:?}");
        joined.machine.runs = joined.machine.runs.max(record.machine.runs);
        record.entries.into_iter().for_each(|entry| add(&mut joined.entries, entry));
    }
    Ok(joined)
}

fn add(entries: &mut Vec<Entry>, entry: Entry) {
    let Entry::Line(line) = entry else { return insert(entries, entry) };
    let is_same = |other: &Line| {
        (&other.row, other.durability, &other.system, &other.settings)
            == (&line.row, line.durability, &line.system, &line.settings)
    };
    let known = entries.iter_mut().find_map(|entry| match entry {
        Entry::Line(known) if is_same(known) => Some(known),
        _ => None,
    });
    match known {
        Some(known) => extend(known, *line),
        None => insert(entries, Entry::Line(line)),
    }
}

/// Inserts an entry after the others of its row and durability level.
fn insert(entries: &mut Vec<Entry>, entry: Entry) {
    let last = entries.iter().rposition(|other| other.group() == entry.group());
    entries.insert(last.map_or(entries.len(), |last| last + 1), entry);
}

/// Adds the runs of another line. Figures that are not kept for each run (percentiles, CPU time,
/// memory, commits) come from the line with more runs.
fn extend(line: &mut Line, mut other: Line) {
    if other.runs > line.runs {
        std::mem::swap(line, &mut other);
        line.figures.splice(0..0, std::mem::take(&mut other.figures));
    } else {
        line.figures.append(&mut other.figures);
    }
    line.runs += other.runs;
    (line.min, line.max) = (line.min.min(other.min), line.max.max(other.max));
    (line.lost, line.duplicated) = (line.lost + other.lost, line.duplicated + other.duplicated);
    let mut figures = line.figures.clone();
    figures.sort_by(f64::total_cmp);
    line.value = figures.get(figures.len() / 2).copied().unwrap_or(line.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(commit: &str, figures: &[f64]) -> Record {
        let machine = format!(
            r#"{{"machine":"m","date":"2026-01-01","processor":"p","cores":2,"kernel":"k","rust":"r","commit":"{commit}","runs":{},"quick":false}}"#,
            figures.len()
        );
        let [min, max] = [figures[0], figures[figures.len() - 1]];
        let line = format!(
            r#"{{"row":"T/a","durability":"normal","system":"onward","settings":"default","value":{min},"unit":"tasks/s","better":"higher",
                "min":{min},"max":{max},"p50":null,"p99":null,"runs":{},"lost":0,"duplicated":1,"figures":{figures:?}}}"#,
            figures.len()
        );
        Record {
            machine: serde_json::from_str(&machine).unwrap(),
            entries: vec![Entry::Line(serde_json::from_str(&line).unwrap())],
        }
    }

    #[test]
    fn a_system_that_one_record_alone_has_stands_beside_the_others_of_its_row() {
        let mut first = record("a", &[1.0]);
        let mut of_next_row = first.entries[0].clone();
        let mut of_other_system = first.entries[0].clone();
        if let Entry::Line(line) = &mut of_next_row {
            line.row = "T/b".to_owned();
        }
        if let Entry::Line(line) = &mut of_other_system {
            line.system = "ceiling".to_owned();
        }
        first.entries.push(of_next_row);
        let joined = join(vec![first, Record { entries: vec![of_other_system], ..record("a", &[1.0]) }]).unwrap();
        let systems =
            joined.entries.iter().filter_map(Entry::line).map(|line| (line.row.as_str(), line.system.as_str()));
        assert_eq!(systems.collect::<Vec<_>>(), [("T/a", "onward"), ("T/a", "ceiling"), ("T/b", "onward")]);
    }

    #[test]
    fn a_line_has_the_runs_of_all_records_in_their_order() {
        let joined = join(vec![record("a", &[4.0]), record("a", &[1.0, 2.0])]).unwrap();
        let line = joined.entries[0].line().unwrap();
        assert_eq!(line.figures, [4.0, 1.0, 2.0]);
        assert_eq!((line.value, line.min, line.max, line.runs, line.duplicated), (2.0, 1.0, 4.0, 3, 2));
    }

    #[test]
    fn records_of_different_commits_are_not_put_together() {
        let error = join(vec![record("a", &[4.0]), record("b", &[1.0])]).unwrap_err();
        assert!(error.to_string().contains("one record is of a, another of b"), "{error}");
    }
}
