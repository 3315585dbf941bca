//! Where what the commands wrote goes.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::record::LineResult;
use crate::exit_code::wrong_usage;
use crate::output::{print_json, print_raw};

/// The places that were asked for.
#[derive(Debug)]
pub(super) struct Sinks {
    stdout: Stdout,
    results: Option<File>,
    output_directory: Option<PathBuf>,
    failures: Option<File>,
    delimiter: u8,
}

/// What goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdout {
    /// What the commands wrote there.
    Output,
    /// Results as lines of JSON.
    Results,
    /// Nothing.
    Nothing,
}

impl Sinks {
    /// Opens them; files are made anew, since a run that goes on reports its lines from the first.
    pub(super) fn open(arguments: &Arguments, json: bool) -> anyhow::Result<Self> {
        let results_to_stdout = arguments.results.as_deref() == Some(Path::new("-"));
        let stdout = match &arguments.results {
            None if json => Stdout::Results,
            None if arguments.output_dir.is_none() => Stdout::Output,
            Some(_) if results_to_stdout => Stdout::Results,
            None | Some(_) => Stdout::Nothing,
        };
        let results = arguments.results.as_deref().filter(|_| !results_to_stdout);
        if let Some(directory) = &arguments.output_dir {
            std::fs::create_dir_all(directory).map_err(|error| cannot_write("--output-dir", directory, &error))?;
        }
        Ok(Self {
            stdout,
            results: results.map(|path| create("--results", path)).transpose()?,
            output_directory: arguments.output_dir.clone(),
            failures: arguments.failures.as_deref().map(|path| create("--failures", path)).transpose()?,
            delimiter: arguments.delimiter().byte(),
        })
    }

    /// Whether what is written goes to the terminal's stdout, and so must not mix with a progress bar.
    pub(super) fn write(&mut self, result: &LineResult) -> io::Result<()> {
        match self.stdout {
            Stdout::Output => print_raw(&result.stdout.bytes)?,
            Stdout::Results => print_json(&result.json())?,
            Stdout::Nothing => {}
        }
        if let Some(file) = &mut self.results {
            let mut line = serde_json::to_vec(&result.json())?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        if let Some(directory) = &self.output_directory {
            write_streams(directory, result)?;
        }
        if let Some(file) = self.failures.as_mut().filter(|_| !result.is_done()) {
            file.write_all(&[&result.input[..], &[self.delimiter]].concat())?;
        }
        Ok(())
    }
}

fn write_streams(directory: &Path, result: &LineResult) -> io::Result<()> {
    std::fs::write(directory.join(format!("{:06}.out", result.line)), &result.stdout.bytes)?;
    std::fs::write(directory.join(format!("{:06}.err", result.line)), &result.stderr.bytes)
}

fn create(flag: &str, path: &Path) -> anyhow::Result<File> {
    File::create(path).map_err(|error| cannot_write(flag, path, &error))
}

fn cannot_write(flag: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    wrong_usage(format!("{flag} {}: {error}; name a place that can be written", path.display()))
}
