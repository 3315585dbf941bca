//! The page of a record.

use std::path::Path;

use anyhow::{Context as _, Result};
use bench_protocol::{DurabilityLevel, Line};

use crate::compare;
use crate::plot::{Bar, bars};
use crate::record::{Entry, Record};
use crate::table;

const HEAD: &str = "# Benchmarks

Generated from a record by `bench-runner report` (see `bench/README.md`); do not edit.

The systems take turns within each row, each run in a separate process. The machine is shared, so ratios say more than
times. Ratios with an error (±) below the table are geometric means over the rounds, with their standard errors.
*Durability* is the failure that an acknowledged write survives: `memory` none, `normal` a killed process, `full`
power loss. *Onward is* shows how many times as good Onward's figure is as that of the line.

The `ceiling` is bare SQLite in one thread that takes the same steps, with the commit sizes of the Onward run beside
it or with its best batch. It replies to no caller and runs no tasks. `onward: memory store` is the specification in
memory, without a database.

Brackets hold the submits / claims / completions in a commit that has any, and the commits for each 1000 tasks. Rows
of `us p99` show the 99th percentile of the queue that has the highest, and beside the settings the longest latency
and the tasks accepted each second. Rows of orchestrations count commits for each 1000 orchestrations, or steps where
the row measures steps. An orchestration that does not complete counts as lost.

Rows of tasks without `file` in their names are those of taskmill's own benchmarks, with some that belong to them;
those on a file are ours. `bench/scenarios/` defines each row.
";

/// The head of a page that has only rows of sockets.
const HEAD_OF_SOCKETS: &str = "# Benchmarks of the sockets

Generated from a record by `bench-runner report` (see `bench/README.md`); do not edit.

The systems take turns within each row, each run in a separate process with both ends of its connections. The machine
is shared, so ratios say more than absolute figures. A wide spread means that other programs used the same processors.
*Onward is* shows how many times as good Onward's figure is as that of the line.

The `ceiling` is a bare stream of the same kind with the same bytes and buffers of 1 MiB, in blocking threads that
decode nothing. It has no queue, serves one peer and sends no heartbeats. `zmq-rs-282` is zmq.rs with the queue of its
open pull request 282, written again from its description.

The settings column also shows the CPU time of all threads for each message. In rows of `many`, one call receives up
to 512 messages. One call also sends as many if the system can, which only Onward does; of the others only omq
receives many. `bench/scenarios/5-sockets.toml` defines each row and the settings of each system.
";

/// The head of a page that has only rows on PostgreSQL.
const HEAD_OF_POSTGRES: &str = "# Benchmarks on PostgreSQL

Generated from a record by `bench-runner report` (see `bench/README.md`); do not edit.

The systems take turns within each row, each run in a separate process with a new server, on the same disk and with
the same settings. Every acknowledgement is on disk (`fsync = on`, `synchronous_commit = on`). Server and programs
share the processors. The machine is shared, so ratios say more than absolute figures. *Onward is* shows how many
times as good Onward's figure is as that of the line.

The `ceiling-postgres` is a bare program on two connections that takes the same steps set-based, in the batch size
that was fastest (in brackets). It replies to no caller and runs no tasks. CPU seconds are the program's, without the
server's. The systems keep different data of an ended task, and graphile-worker keeps none.
`bench/scenarios/6-postgres.toml` defines that data, each row and the settings of each system.
";

/// The head of a page that has only rows of workflows.
const HEAD_OF_WORKFLOWS: &str = "# Benchmarks of workflows

Generated from a record by `bench-runner report` (see `bench/README.md`); do not edit.

The systems take turns within each row, each run in a separate process. The machine is shared, so ratios say more than
times. *Durability* is the failure that an acknowledged write survives: `memory` none, `normal` a killed process, `full`
power loss. *Onward is* shows how many times as good Onward's figure is as that of the line.

The `ceiling` is bare SQLite in one thread that writes the rows of the same steps, with the commit sizes of the Onward
run beside it. `ceiling-postgres` is a chain of commits on one connection. They reply to no caller and run no handler.
`onward: memory store` is the specification in memory, without a database.

Brackets hold the submits / claims / completions in a commit that has any, and the commits for each 1000 steps. *Calls a
step* are the calls of the store that wrote something. A run that does not complete with the right result counts as
lost. `bench/scenarios/5-workflows.toml` defines each row and the settings of each system.
";

/// Writes the page, and its plots beside it.
pub(crate) fn write(record: &Record, output: &Path) -> Result<()> {
    let directory = output.parent().context("the page needs a directory")?;
    std::fs::create_dir_all(directory)?;
    for (name, text) in files(record, output)? {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the names and the contents of the page and its plots.
pub(crate) fn files(record: &Record, page: &Path) -> Result<Vec<(String, String)>> {
    let name = page.file_name().and_then(|name| name.to_str()).context("the page needs a name")?;
    let stem = page.file_stem().and_then(|stem| stem.to_str()).context("the page needs a name")?;
    let mut files = plots(stem, &record.entries);
    let text = text(record, &files);
    files.push((name.to_owned(), text));
    Ok(files)
}

fn text(record: &Record, plots: &[(String, String)]) -> String {
    let are_all = |section: &str| record.entries.iter().all(|entry| entry.group().0.starts_with(section));
    let head = match () {
        () if are_all("M/") => HEAD_OF_SOCKETS,
        () if are_all("P") => HEAD_OF_POSTGRES,
        () if are_all("W/") => HEAD_OF_WORKFLOWS,
        () => HEAD,
    };
    let mut page = format!("{head}\n{}\n", provenance(record));
    plots.iter().for_each(|(name, _)| page += &format!("![{name}]({name})\n\n"));
    page += &table::markdown(&record.entries);
    let comparisons = compare::comparisons(&record.entries);
    if !comparisons.is_empty() {
        page += "\n| figure | of what |\n|---|---|\n";
        comparisons.iter().for_each(|each| page += &format!("| {} | {} |\n", each.figure(), each.what));
    }
    page
}

fn provenance(record: &Record) -> String {
    let machine = &record.machine;
    let quick = if machine.quick { "\n**A quick run: its figures show that it works, not how fast.**" } else { "" };
    format!(
        "Measured on {} at {}: {}, {} cores, Linux {},\n{}; median of up to {} runs.{quick}\n",
        machine.date, machine.commit, machine.processor, machine.cores, machine.kernel, machine.rust, machine.runs
    )
}

/// Returns the plots, named after the page. Leaves out plots without measurements.
fn plots(page: &str, entries: &[Entry]) -> Vec<(String, String)> {
    let (ratios, throughput) = (memory_ratios(entries), file_round_trips(entries));
    let ratios = (!ratios.is_empty())
        .then(|| bars("How many times as fast as taskmill 0.7.1, in memory", &ratios, Some(1.0)))
        .map(|svg| (format!("{page}-memory.svg"), svg));
    let throughput = (!throughput.is_empty())
        .then(|| bars("Tasks per second on a file", &throughput, None))
        .map(|svg| (format!("{page}-file.svg"), svg));
    ratios.into_iter().chain(throughput).collect()
}

fn memory_ratios(entries: &[Entry]) -> Vec<Bar> {
    let lines = entries.iter().filter_map(Entry::line);
    let taskmill = lines.filter(|line| line.system == "taskmill" && line.durability == DurabilityLevel::Memory);
    let bar = |line: &Line| {
        let onward = compare::onward(entries, &line.row, line.durability)?;
        let label = format!("{} ({})", line.row, line.settings);
        Some(Bar { label, value: compare::times_as_good(onward, line), series: 0 })
    };
    taskmill.filter_map(bar).collect()
}

fn file_round_trips(entries: &[Entry]) -> Vec<Bar> {
    let lines = entries.iter().filter_map(Entry::line).filter(|line| line.row.starts_with("T/file_round_trips"));
    let series = |line: &Line| match (line.system.as_str(), line.settings.as_str()) {
        ("onward", _) => 0,
        ("ceiling", settings) if settings.starts_with("same commits") => 1,
        ("ceiling", _) => 2,
        _ => 3,
    };
    lines
        .map(|line| Bar {
            label: format!("{} {} {}: {}", line.row, line.durability, line.system, line.settings),
            value: line.value,
            series: series(line),
        })
        .collect()
}
