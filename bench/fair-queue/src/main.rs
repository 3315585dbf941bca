//! Measures the cost of a message in the fair queue and of a bare poll of its source: instructions
//! (counted by valgrind, the same on any day), time, and allocations.
//!
//! `cargo run --release` prints the table. Valgrind runs `run SOURCE CASE MESSAGES`.

mod case;
mod measure;
mod source;
mod table;

use anyhow::{Context as _, Result, bail};

use case::Case;
use source::{Counter, Endless, Frames};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print!("{}", table::all()?),
        ["run", source, case, messages] => {
            let mut read = prepare(source, case.parse()?)?;
            read(messages.parse().context("MESSAGES is a number")?);
        }
        _ => bail!("usage: bench-fair-queue [run SOURCE CASE MESSAGES]"),
    }
    Ok(())
}

fn prepare(source: &str, case: Case) -> Result<Box<dyn FnMut(u64)>> {
    match source {
        Counter::NAME => Ok(case.prepare::<Counter>()),
        Frames::NAME => Ok(case.prepare::<Frames>()),
        _ => bail!("there is no source `{source}`"),
    }
}
