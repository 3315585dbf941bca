//! The page of a record.

use std::path::Path;

use anyhow::{Context as _, Result};
use bench_protocol::{DurabilityLevel, Line};

use crate::compare;
use crate::plot::{Bar, bars};
use crate::record::{Entry, Record};
use crate::table;

const HEAD: &str = "# Benchmarks

Generated from a record by `cargo run --release --manifest-path bench/Cargo.toml -p bench-runner -- report FILE`; do not edit.

The systems take turns within each row, each run in a process of its own. Ratios are worth more than times: the machine is what it
is; those below the table with an error (±) are geometric means over the rounds with their standard errors. *Durability* is what an acknowledgement survives: `memory` nothing, `normal` a killed process, `full` power loss. *Onward is* says how
many times as good Onward's figure is as the line's. The `ceiling` is bare SQLite in one thread taking the same steps, with the
commit sizes of the Onward run beside it or with its best batch; it answers nobody and runs nothing. `onward: memory store` is the
specification kept in memory without a database. In brackets: submits / claims / completions in a commit that
has any, and commits for each 1000 tasks. Rows of `us p99` show the 99th percentile of the queue that has the highest, and beside the
settings the longest latency and the tasks accepted each second. In rows of orchestrations, the commits are counted for each 1000 orchestrations,
or steps where the row is about steps; what ended otherwise than completed is counted as lost. Rows of tasks
without `file` in their names are those of taskmill's own benchmarks (with what goes with them); those on a file are ours. What each row does is in `bench/scenarios/`.
";

/// The head of a page that has only rows of sockets.
const HEAD_OF_SOCKETS: &str = "# Benchmarks of the sockets

Generated from a record by `cargo run --release --manifest-path bench/Cargo.toml -p bench-runner -- report FILE`; do not edit.

The systems take turns within each row, each run in a process of its own, both ends of its connections in it. Ratios are worth more than
absolute figures: the machine is what it is. *Onward is* says how many times as good Onward's figure is as the line's. The `ceiling` is a
bare stream of the same kind with the same bytes and buffers of 1 MiB, in blocking threads that decode nothing; it queues nothing, serves one
peer and keeps no heartbeats. `zmq-rs-282` is zmq.rs with the queue of its open pull request 282, made anew from its description. Where the
spread is wide, other programs were at work on the same processors. Beside the settings stands the CPU time of all threads for each message. In rows of
`many` up to 512 messages are received by one call, and sent by one where a system can, which is Onward alone; of the others only omq receives many.
What each row does, and which settings a system has, is in `bench/scenarios/5-sockets.toml`.
";

/// The head of a page that has only rows on PostgreSQL.
const HEAD_OF_POSTGRES: &str = "# Benchmarks on PostgreSQL

Generated from a record by `cargo run --release --manifest-path bench/Cargo.toml -p bench-runner -- report FILE`; do not edit.

The systems take turns within each row, each run in a process of its own with a fresh server of its own, on the same disk and with the same settings: every acknowledgement is
on disk (`fsync = on`, `synchronous_commit = on`). Server and programs share the processors. Ratios are worth more than absolute figures: the machine is what it is. *Onward is* says how
many times as good Onward's figure is as the line's. The `ceiling-postgres` is a bare program on two connections that takes the same steps set-based, in the batch size that was
fastest (in brackets); it answers nobody and runs nothing. CPU seconds are the program's, without the server's. What the systems keep of a task that has ended differs, graphile-worker keeps nothing;
that, what each row does and which settings a system has, is in `bench/scenarios/6-postgres.toml`.
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
    let quick = if machine.quick { " **A quick run: its figures show that it works, not how fast.**" } else { "" };
    format!(
        "Measured on {} at {}: {}, {} cores, Linux {}, {}; median of up to {} runs.{quick}\n",
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
