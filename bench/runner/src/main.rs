//! Runs the benchmark programs in turn, prints one table, and writes a record. Also makes the page
//! of a record.
//!
//! The systems alternate (A B A B) within each row, each run in a process of its own, so that other
//! load of the machine affects all of them alike. A system that is missing, does not build or fails
//! has a line in the table with the reason.

mod compare;
mod compare_postgres;
mod compare_tasks;
mod compare_workflows;
mod join;
mod machine;
mod merge;
mod pages;
mod plan;
mod plot;
mod postgres;
mod programs;
mod record;
mod report;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bench_protocol::load_scenarios;
use clap::{Parser, Subcommand};

/// Compares systems on the rows of bench/scenarios.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the page of a record, with its plots.
    Report {
        /// The record: a file of JSON lines. Several records of one commit are joined.
        #[arg(required = true, value_name = "RECORD")]
        records: Vec<PathBuf>,
        /// The page.
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md"))]
        output: PathBuf,
    },
    /// Joins several records of one commit on one machine: each line has the runs of all.
    Join {
        #[arg(required = true, value_name = "RECORD")]
        records: Vec<PathBuf>,
        /// The record to write.
        #[arg(long, value_name = "FILE")]
        json: PathBuf,
    },
    /// Writes the pages of all records that are kept as `bench/record/NAME.json` for
    /// `docs/NAME.md`.
    Pages {
        /// Writes nothing; fails if a page does not match its record.
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    /// Rows to run, such as 'T/file_*'; all if none is given.
    rows: Vec<String>,
    /// Systems to run besides onward; all if none is given.
    #[arg(long, num_args = 1..)]
    peer: Vec<String>,
    /// A program of a system that is not built here, such as 'asynq-fork=PATH'; see
    /// bench/README.md.
    #[arg(long, value_name = "SYSTEM=PATH")]
    program: Vec<programs::Given>,
    /// The number of runs of each system in each row.
    #[arg(long)]
    runs: Option<u32>,
    /// Few operations, small backlogs and one run, to check that everything works.
    #[arg(long)]
    quick: bool,
    /// One row of each workload in one durability level. With `--quick` it checks that everything
    /// works.
    #[arg(long)]
    sample: bool,
    /// The record to write; bench/record/<date>-<machine>.json if absent.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The directory of database files, on the disk that is to be measured.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/data"))]
    directory: PathBuf,
}

/// The default number of runs of a row.
const RUNS: u32 = 7;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Report { records, output }) => report::write(&record::read_all(&records)?, &output),
        Some(Command::Join { records, json }) => record::read_all(&records)?.write(&json),
        Some(Command::Pages { check: true }) => pages::check(&bench()?),
        Some(Command::Pages { check: false }) => pages::write(&bench()?),
        None => run(&arguments.run),
    }
}

fn bench() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?)
}

fn run(arguments: &RunArguments) -> Result<()> {
    let bench = bench()?;
    let rows = load_scenarios(&bench.join("scenarios"))?;
    let mut plan = plan::select(&rows, &arguments.rows, &arguments.peer);
    if arguments.sample {
        plan = plan::sample(plan);
    }
    anyhow::ensure!(!plan.is_empty(), "no row matches {:?}; they look like T/submit_tasks/1000", arguments.rows);
    std::fs::create_dir_all(&arguments.directory)?;
    let programs =
        programs::Programs::build(&bench, &plan, &arguments.program, arguments.directory.clone(), arguments.quick);
    let runs = arguments.runs.unwrap_or(if arguments.quick { 1 } else { RUNS });
    let path = match &arguments.json {
        Some(path) => path.clone(),
        None => record::default_path(&bench)?,
    };
    let mut record = record::Writer::create(&path, &machine::describe(&bench, runs, arguments.quick)?)?;
    for round in plan::rounds(plan) {
        for entry in merge::run_in_turn(&programs, &round, runs) {
            record.add(entry)?;
        }
    }
    println!("{}", table::text(record.entries()));
    println!("{}", compare::text(record.entries()));
    eprintln!("the record is {}", path.display());
    let failed = record.entries().iter().filter(|entry| entry.line().is_none()).count();
    anyhow::ensure!(failed < record.entries().len(), "nothing was measured");
    std::io::Write::flush(&mut std::io::stdout()).context("could not write the table")
}
