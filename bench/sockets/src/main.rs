//! `bench-sockets [--rounds N] [--seconds S]`: messages a second over ipc, and round trips, of onward-zmtp beside libzmq and a raw stream.
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
    let (rounds, time) = arguments()?;
    let libzmq = libzmq::Program::compile()?;
    let mut rows = Vec::new();
    for workload in Workload::all() {
        let mut systems = vec![Row::new("onward", workload), Row::new("libzmq", workload)];
        if workload.shape == Shape::Stream {
            systems.push(Row::new("raw", workload));
        }
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
        rows.append(&mut systems);
    }
    Ok(())
}

fn arguments() -> Result<(usize, Duration)> {
    let (mut rounds, mut seconds) = (5, 1.0);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("`{name}` needs a value"))?;
        match name.as_str() {
            "--rounds" => rounds = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            _ => bail!("there is no `{name}`; there are --rounds and --seconds"),
        }
    }
    Ok((rounds, Duration::from_secs_f64(seconds)))
}
