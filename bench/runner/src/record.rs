//! A record: JSON objects, one a line. The first describes the machine. The others are results, or
//! the reasons why there is none.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bench_protocol::{DurabilityLevel, Line};
use serde::{Deserialize, Serialize};

use crate::join::join;
use crate::machine::{self, Machine};

/// The result of one system in one row and durability level.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    Line(Box<Line>),
    Missing(Missing),
}

/// A system that gave no result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Missing {
    pub(crate) row: String,
    pub(crate) durability: DurabilityLevel,
    pub(crate) system: String,
    pub(crate) settings: String,
    /// The reason.
    pub(crate) missing: String,
}

impl Entry {
    pub(crate) fn line(&self) -> Option<&Line> {
        match self {
            Self::Line(line) => Some(line),
            Self::Missing(_) => None,
        }
    }

    /// Returns the row and the durability level of the entry.
    pub(crate) fn group(&self) -> (&str, DurabilityLevel) {
        match self {
            Self::Line(line) => (&line.row, line.durability),
            Self::Missing(missing) => (&missing.row, missing.durability),
        }
    }
}

/// A whole record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) machine: Machine,
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    pub(crate) fn write(self, path: &Path) -> Result<()> {
        let mut writer = Writer::create(path, &self.machine)?;
        self.entries.into_iter().try_for_each(|entry| writer.add(entry))
    }
}

pub(crate) fn read(path: &Path) -> Result<Record> {
    let text = std::fs::read_to_string(path).with_context(|| format!("no record {}", path.display()))?;
    let mut lines = text.lines();
    let first = lines.next().with_context(|| format!("{} is empty", path.display()))?;
    let machine =
        serde_json::from_str(first).with_context(|| format!("{} does not begin as a record", path.display()))?;
    let entries = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(Record { machine, entries })
}

/// Reads records of the same programs on the same machine as one. Each line has the runs of all of
/// them.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Record> {
    let records = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    join(records)
}

/// Returns the path `record/<date>-<machine>.json`.
pub(crate) fn default_path(bench: &Path) -> Result<PathBuf> {
    let directory = bench.join("record");
    std::fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("{}-{}.json", machine::today(), machine::name())))
}

/// A writer of a record. It writes line by line, so that an interrupted run leaves its results.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    entries: Vec<Entry>,
}

impl Writer {
    pub(crate) fn create(path: &Path, machine: &Machine) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("could not write {}", path.display()))?;
        let mut writer = Self { file, entries: Vec::new() };
        writer.write(machine)?;
        Ok(writer)
    }

    pub(crate) fn add(&mut self, entry: Entry) -> Result<()> {
        self.write(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn write(&mut self, object: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(object)?;
        Ok(writeln!(self.file, "{text}")?)
    }
}
