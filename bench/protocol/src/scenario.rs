//! The workload as data: the rows of `bench/scenarios/*.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::grid;
use crate::rates::{Mode, Producer, Queues};
use crate::sockets::Sockets;
use crate::workload::BackoffName;

/// The durability level: the failure that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityLevel {
    /// No failure.
    Memory,
    /// A killed process.
    Normal,
    /// Power loss.
    Full,
}

impl fmt::Display for DurabilityLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Normal => "normal",
            Self::Full => "full",
        })
    }
}

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
}

/// A system that runs a row, with its settings: `onward`, or `taskmill: suite` for settings other
/// than `default`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Entry {
    /// The system's name; its program is in `bench/peers/<name>`.
    pub system: String,
    /// The name of the settings.
    pub settings: String,
}

impl FromStr for Entry {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (system, settings) = text.split_once(':').unwrap_or((text, "default"));
        Ok(Self { system: system.trim().to_owned(), settings: settings.trim().to_owned() })
    }
}

impl TryFrom<String> for Entry {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// The content of the store before the timed part, besides the row's own tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backlog {
    /// Completed tasks in history.
    pub finished: usize,
    /// Due tasks that wait at every moment. They are claimed before newer ones, which take their
    /// place.
    pub waiting: usize,
    /// Tasks not due for an hour.
    pub delayed: usize,
    /// Tasks that a killed process had claimed.
    pub in_flight: usize,
    /// Due tasks of a kind without a handler, in equal parts in all queues of the row.
    pub unserved: usize,
    /// Due tasks of the queue of the least weight that run during the row. Each takes a
    /// millisecond.
    pub runnable: usize,
}

impl Backlog {
    fn reduced(self, factor: usize) -> Self {
        Self {
            finished: self.finished / factor,
            waiting: self.waiting / factor,
            delayed: self.delayed / factor,
            in_flight: self.in_flight / factor,
            unserved: self.unserved / factor,
            runnable: self.runnable / factor,
        }
    }
}

/// An expected fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// This number.
    Number(u64),
    /// The value of the named field of the row: `count`.
    Field(String),
}

/// A row of the benchmarks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name, such as `T/submit_tasks/1000`.
    pub name: String,
    /// The workload, by the name that the programs know.
    pub workload: String,
    /// The unit of the figure, such as `us/op`.
    pub unit: String,
    /// The direction in which the figure is better.
    pub better: Better,
    /// Operations in the timed part.
    pub count: usize,
    /// The operations under `--quick`; the row's count if absent.
    pub quick_count: Option<usize>,
    /// The operations for a system with which the row's count would take many minutes.
    #[serde(default)]
    pub count_of: BTreeMap<String, usize>,
    /// Handlers that may run at once.
    #[serde(default)]
    pub slots: usize,
    /// Turns of orchestrations that may run at once.
    #[serde(default)]
    pub turns: usize,
    /// Activities or steps of an orchestration.
    #[serde(default)]
    pub steps: usize,
    /// The time that an activity sleeps, in milliseconds.
    #[serde(default)]
    pub activity_ms: u64,
    /// True if the row is on a PostgreSQL server. The runner starts one for each run and stops it
    /// afterwards.
    #[serde(default)]
    pub postgres: bool,
    /// The settings of that server, such as `fsync=on`, in addition to those of the durability
    /// level.
    #[serde(default)]
    pub server: Vec<String>,
    /// Tasks that are submitted together; zero if each is submitted alone.
    #[serde(default)]
    pub batch: usize,
    /// Processes that work on one store.
    #[serde(default)]
    pub nodes: usize,
    /// Concurrent submitters, each awaiting its own tasks.
    #[serde(default)]
    pub submitters: usize,
    /// The size of a payload; zero for none.
    #[serde(default)]
    pub payload_bytes: usize,
    /// Tags of each task.
    #[serde(default)]
    pub tags: usize,
    /// Arrivals per second of an open loop.
    #[serde(default)]
    pub rate: u32,
    /// Repetitions of the timed part in one run, after one that does not count. The median counts.
    #[serde(default = "one")]
    pub repetitions: usize,
    /// The most runs of the row, if it takes long.
    pub most_runs: Option<u32>,
    /// A row with which figures are compared. The two run in turn, so that a machine that is fast
    /// for some minutes is fast for both.
    pub compared_with: Option<String>,
    /// The back-off, in the rows that compare back-offs.
    pub backoff: Option<BackoffName>,
    /// Groups over which tasks are spread by Zipf's law; zero for none. The settings determine
    /// their limits.
    #[serde(default)]
    pub groups: usize,
    /// The queues, in the rows of rates.
    pub queues: Option<Queues>,
    /// The way in which a worker chooses among the queues.
    pub mode: Option<Mode>,
    /// The process of the producer of an open loop.
    #[serde(default)]
    pub producer: Producer,
    /// The sockets and their connections, in the rows of sockets.
    pub sockets: Option<Sockets>,
    /// True if a run that names no rows leaves this row out, because it is one of very many.
    #[serde(default)]
    pub only_when_named: bool,
    /// The other content of the store.
    #[serde(default)]
    pub backlog: Backlog,
    /// The facts that every program must have observed.
    #[serde(default)]
    pub expect: BTreeMap<String, Expected>,
    /// The systems that run the row, by durability level. A system that is not listed cannot run
    /// it; a comment beside the list gives the reason.
    #[serde(skip_serializing)]
    pub systems: BTreeMap<DurabilityLevel, Vec<Entry>>,
}

fn one() -> usize {
    1
}

impl Row {
    /// Returns the row under `--quick`: fewer operations, a tenth of the backlog, one repetition.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.count = self.quick_count.unwrap_or(self.count);
        self.backlog = self.backlog.reduced(10);
        self.repetitions = 1;
        self
    }

    /// Returns the row as `system` runs it.
    #[must_use]
    pub fn of_system(mut self, system: &str) -> Self {
        self.count = self.count_of.get(system).map_or(self.count, |count| self.count.min(*count));
        self
    }

    /// Checks the facts that a program observed.
    ///
    /// # Errors
    /// Returns an error if an expected fact is missing or different, because the program then did
    /// not run the workload.
    pub fn verify(&self, observed: &BTreeMap<String, u64>) -> Result<()> {
        for (name, expected) in &self.expect {
            let expected = match expected {
                Expected::Number(number) => *number,
                Expected::Field(field) if field == "count" => self.count as u64,
                Expected::Field(field) => anyhow::bail!("row {}: `{field}` is not a field to compare with", self.name),
            };
            let observed =
                observed.get(name).with_context(|| format!("row {}: `{name}` was not observed", self.name))?;
            anyhow::ensure!(
                *observed == expected,
                "row {}: `{name}` should be {expected} and is {observed}",
                self.name
            );
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct ScenarioFile {
    #[serde(default)]
    defaults: toml::Table,
    row: Vec<toml::Table>,
}

/// Returns all rows of a directory of scenario files, in the order of the file names and within a
/// file.
///
/// # Errors
/// Returns an error if a file cannot be read or has a field that a row does not have.
pub fn load_scenarios(directory: &Path) -> Result<Vec<Row>> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .with_context(|| format!("no scenarios in {}", directory.display()))?
        .map(|file| file.map(|file| file.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        rows.extend(parse_scenarios(&text).with_context(|| format!("{}", file.display()))?);
    }
    Ok(rows)
}

fn parse_scenarios(text: &str) -> Result<Vec<Row>> {
    let file: ScenarioFile = toml::from_str(text)?;
    let with_defaults = |row: toml::Table| {
        let mut whole = file.defaults.clone();
        whole.extend(row);
        grid::expand(whole)
    };
    let rows: Vec<Vec<toml::Table>> = file.row.into_iter().map(with_defaults).collect::<Result<_>>()?;
    rows.into_iter().flatten().map(|row| Ok(Row::deserialize(row)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [defaults]
        unit = "us/op"
        better = "lower"
        systems = { memory = ["onward", "taskmill: suite"] }
        [[row]]
        name = "T/a/1"
        workload = "submit"
        count = 3
        expect = { inserted = "count", duplicates = 0 }
    "#;

    #[test]
    fn a_row_takes_what_it_does_not_say_from_the_defaults() -> Result<()> {
        let rows = parse_scenarios(TEXT)?;
        let settings: Vec<_> =
            rows[0].systems[&DurabilityLevel::Memory].iter().map(|entry| entry.settings.as_str()).collect();
        assert_eq!(settings, ["default", "suite"]);
        Ok(())
    }

    #[test]
    fn the_scenarios_can_be_read_and_no_two_rows_have_one_name() -> Result<()> {
        let rows = load_scenarios(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios")))?;
        let names: std::collections::BTreeSet<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        assert!(names.contains("Q/rate_all_delayed/interleaved/100k"), "{names:?}");
        let of_rates = rows.iter().filter(|row| row.workload == "rates");
        let split = |row: &&Row| row.used_weights().is_ok_and(|weights| row.count.is_multiple_of(weights.len()));
        assert!(of_rates.clone().all(|row| split(&row)), "each queue gets as many");
        assert_eq!(of_rates.filter(|row| row.only_when_named).count(), 1710);
        Ok(())
    }

    #[test]
    fn a_result_with_fewer_facts_than_expected_is_rejected() -> Result<()> {
        let rows = parse_scenarios(TEXT)?;
        let facts = |inserted| BTreeMap::from([("inserted".to_owned(), inserted), ("duplicates".to_owned(), 0)]);
        assert!(rows[0].verify(&facts(2)).is_err());
        rows[0].verify(&facts(3))
    }
}
