//! The frame of a benchmark program: it parses arguments and prints lines.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::Measurement;
use crate::line::{CommitSizes, Line};
use crate::measure::Usage;
use crate::scenario::{DurabilityLevel, Row, load_scenarios};

/// The command line of every program.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// The row to run, such as `T/submit_tasks/1000`.
    #[arg(long)]
    pub row: String,
    /// The failures that an acknowledged write must survive.
    #[arg(long, value_enum)]
    pub durability: DurabilityLevel,
    /// The name of the settings to use.
    #[arg(long, default_value = "default")]
    pub settings: String,
    /// Run fewer operations, with a tenth of the backlog.
    #[arg(long)]
    pub quick: bool,
    /// Print JSON lines instead of text.
    #[arg(long)]
    pub json: bool,
    /// The directory of the scenario files.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios"))]
    pub scenarios: PathBuf,
    /// The directory for database files, created if missing. All systems must use the same disk.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/data"))]
    pub directory: PathBuf,
    /// The commit sizes of another run, for a ceiling: `commits,submits,claims,completions`.
    #[arg(long)]
    pub commits: Option<CommitSizes>,
    /// The URL of the PostgreSQL server of the run, for rows on PostgreSQL. The runner starts and
    /// stops the server.
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,
}

/// A request to run one row.
#[derive(Debug, Clone)]
pub struct Request {
    /// The row, with `--quick` applied.
    pub row: Row,
    /// The failures that an acknowledged write must survive.
    pub durability: DurabilityLevel,
    /// The name of the settings.
    pub settings: String,
    /// The directory of database files.
    pub directory: PathBuf,
    /// The commit sizes to repeat.
    pub commits: Option<CommitSizes>,
    /// True if `--quick` was given.
    pub quick: bool,
    /// The URL of the server of the run, if the row is on PostgreSQL.
    pub postgres: Option<String>,
}

impl Request {
    /// Returns the URL of the run's PostgreSQL server.
    ///
    /// # Errors
    /// Returns an error if there is none, because the runner did not start the program.
    pub fn server(&self) -> Result<&str> {
        let url = self.postgres.as_deref();
        url.with_context(|| format!("row {} needs a PostgreSQL server: give its URL with --postgres", self.row.name))
    }

    /// Returns the request of this process's arguments.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn of_this_process(system: &str) -> Result<Self> {
        Self::new(&Arguments::parse(), system)
    }

    /// Returns the request that the arguments describe.
    ///
    /// # Errors
    /// Returns an error if there is no such row, or if the directory cannot be created.
    pub fn new(arguments: &Arguments, system: &str) -> Result<Self> {
        let rows = load_scenarios(&arguments.scenarios)?;
        let row = rows.into_iter().find(|row| row.name == arguments.row);
        let row = row.with_context(|| format!("no scenario has a row `{}`", arguments.row))?;
        let row = if arguments.quick { row.quick() } else { row };
        std::fs::create_dir_all(&arguments.directory)?;
        Ok(Self {
            row: row.of_system(system),
            durability: arguments.durability,
            settings: arguments.settings.clone(),
            directory: arguments.directory.clone(),
            commits: arguments.commits,
            quick: arguments.quick,
            postgres: arguments.postgres.clone(),
        })
    }
}

/// Runs a program's whole `main`: parses the arguments, runs the row, checks the facts, prints the
/// lines.
///
/// # Errors
/// Returns an error if the row could not be run, or if the observed facts differ from those that
/// the row expects.
pub fn run(system: &str, work: impl FnOnce(&Request) -> Result<Measurement>) -> Result<()> {
    let arguments = Arguments::parse();
    let request = Request::new(&arguments, system)?;
    let measurement = work(&request)?;
    request.row.verify(&measurement.observed)?;
    let line = line_of(system, &request, measurement)?;
    let text = if arguments.json { serde_json::to_string(&line)? } else { format!("{line:#?}") };
    println!("{text}");
    Ok(())
}

fn line_of(system: &str, request: &Request, measurement: Measurement) -> Result<Line> {
    let usage = Usage::read()?;
    let mut latencies = measurement.latencies;
    let mut percentile = |fraction| latencies.as_mut().map(|latencies| latencies.percentile(fraction));
    Ok(Line {
        row: request.row.name.clone(),
        durability: request.durability,
        system: system.to_owned(),
        settings: measurement.settings.unwrap_or_else(|| request.settings.clone()),
        value: measurement.value,
        unit: request.row.unit.clone(),
        better: request.row.better,
        min: measurement.value,
        max: measurement.value,
        figures: Vec::new(),
        p50: percentile(0.5),
        p99: percentile(0.99),
        p999: percentile(0.999),
        runs: 1,
        lost: measurement.lost,
        duplicated: measurement.duplicated,
        cpu_seconds: Some(usage.cpu.as_secs_f64()),
        peak_mib: Some(usage.peak as f64 / 1_048_576.0),
        commits: measurement.commits,
        extra: measurement.extra,
    })
}
