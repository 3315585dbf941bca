//! `bench-sockets [--rounds N] [--seconds S] [--only PART] [--system NAME]`: messages a second over ipc, and round trips, of onward-zmtp beside libzmq and a raw stream.
//!
//! `--only` chooses the rows whose names contain a text, `--system` one system.
//!
//! Systems take turns within a round. A line of JSON for each row goes to standard output: the median of the rounds, and the smallest and
//! largest. libzmq is a C program, compiled when this starts; where its header is missing, the rows say so.

mod libzmq;
mod onward;
mod raw;
mod row;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::row::{Row, Shape, Workload};

fn main() -> Result<()> {
    let Arguments { rounds, time, only, system } = arguments()?;
    let libzmq = libzmq::Program::compile()?;
    for workload in Workload::all().into_iter().filter(|workload| workload.name().contains(&only)) {
        let mut systems = vec![Row::new("onward", workload), Row::new("libzmq", workload)];
        if workload.shape == Shape::Stream {
            systems.push(Row::new("raw", workload));
        }
        systems.retain(|row| system.is_empty() || row.system == system);
        for _ in 0..rounds {
            for row in &mut systems {
                let value = match row.system {
                    "onward" => onward::measure(workload, time)?,
                    "libzmq" => libzmq.measure(workload, time)?,
                    _ => raw::measure(workload, time)?,
                };
                row.values.push(value);
            }
        }
        for row in &systems {
            println!("{}", row.json());
        }
    }
    Ok(())
}

struct Arguments {
    rounds: usize,
    time: Duration,
    only: String,
    system: String,
}

fn arguments() -> Result<Arguments> {
    let mut all = Arguments { rounds: 5, time: Duration::from_secs(1), only: String::new(), system: String::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("`{name}` needs a value"))?;
        match name.as_str() {
            "--rounds" => all.rounds = value.parse()?,
            "--seconds" => all.time = Duration::from_secs_f64(value.parse()?),
            "--only" => all.only = value,
            "--system" => all.system = value,
            _ => bail!("there is no `{name}`; there are --rounds, --seconds, --only and --system"),
        }
    }
    Ok(all)
}
