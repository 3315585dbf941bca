//! The destinations of the commands' output.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::arguments::Arguments;
use super::job_log;
use super::record::LineResult;
use super::template::Template;
use crate::exit_code::wrong_usage;
use crate::options::GlobalOptions;
use crate::output::{UsedFiles, pass_on, print_json, print_raw};

/// The destinations that the user selected.
#[derive(Debug)]
pub(super) struct Sinks {
    stdout: Stdout,
    results: Option<Sink>,
    output_directory: Option<PathBuf>,
    failures: Option<Sink>,
    job_log: Option<(Sink, Template)>,
    delimiter: u8,
}

/// A file that the user selected.
#[derive(Debug)]
struct Sink {
    flag: &'static str,
    path: PathBuf,
    file: File,
}

/// The content of stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdout {
    /// The stdout of the commands.
    Output,
    /// Results as lines of JSON.
    Results,
    /// Nothing.
    Nothing,
}

/// Checks that no destination is the store, the input, or another destination. Nothing is opened
/// or changed.
///
/// # Errors
/// Wrong usage, which names both.
pub(super) fn check(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<()> {
    let mut used = UsedFiles::of_store(&options.store);
    match &arguments.input {
        Some(input) => used.add(input, "the input (--input)"),
        None => used.add_stream(io::stdin(), "the input (standard input)"),
    }
    used.add_stream(io::stdout(), "also standard output");
    let results = arguments.results.as_deref().filter(|path| !is_stdout(path));
    let outputs = [
        ("--results", results),
        ("--failures", arguments.failures.as_deref()),
        ("--job-log", arguments.job_log.as_deref()),
    ];
    outputs.into_iter().try_for_each(|(flag, path)| path.map_or(Ok(()), |path| used.add_output(flag, path)))
}

/// Returns true if the user selected standard output as a file.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Sinks {
    /// Opens the destinations. Files are truncated, because a continued run reports its lines from
    /// the first.
    pub(super) fn open(arguments: &Arguments, template: &Template, json: bool) -> anyhow::Result<Self> {
        let results_to_stdout = arguments.results.as_deref().is_some_and(is_stdout);
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
            results: results.map(|path| Sink::create("--results", path)).transpose()?,
            output_directory: arguments.output_dir.clone(),
            failures: arguments.failures.as_deref().map(|path| Sink::create("--failures", path)).transpose()?,
            job_log: arguments.job_log.as_deref().map(|path| open_job_log(path, template)).transpose()?,
            delimiter: arguments.delimiter().byte(),
        })
    }

    /// Writes the result of a line to every destination.
    pub(super) fn write(&mut self, result: &LineResult) -> anyhow::Result<()> {
        match self.stdout {
            Stdout::Output => {
                print_raw(&result.stdout.bytes)?;
                // The report shows the end of a failure's stderr next to the reason.
                if result.is_done() {
                    pass_on(&result.stderr.bytes);
                }
            }
            Stdout::Results => print_json(&result.json())?,
            Stdout::Nothing => {}
        }
        if let Some(results) = &mut self.results {
            let mut line = serde_json::to_vec(&result.json())?;
            line.push(b'\n');
            results.write(&line)?;
        }
        if let Some(directory) = &self.output_directory {
            write_streams(directory, result).with_context(|| stopped_writing("--output-dir", directory))?;
        }
        if let Some((job_log, template)) = &mut self.job_log
            && let Some(row) = job_log::row(template, result)
        {
            job_log.write(&row)?;
        }
        if let Some(failures) = self.failures.as_mut().filter(|_| !result.is_done()) {
            failures.write(&[&result.input[..], &[self.delimiter]].concat())?;
        }
        Ok(())
    }
}

fn open_job_log(path: &Path, template: &Template) -> anyhow::Result<(Sink, Template)> {
    let mut sink = Sink::create("--job-log", path)?;
    sink.write(job_log::HEADER.as_bytes())?;
    Ok((sink, template.clone()))
}

impl Sink {
    fn create(flag: &'static str, path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).map_err(|error| cannot_write(flag, path, &error))?;
        Ok(Self { flag, path: path.to_owned(), file })
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| stopped_writing(self.flag, &self.path))
    }
}

fn write_streams(directory: &Path, result: &LineResult) -> io::Result<()> {
    std::fs::write(directory.join(format!("{:06}.out", result.line)), &result.stdout.bytes)?;
    std::fs::write(directory.join(format!("{:06}.err", result.line)), &result.stderr.bytes)
}

fn stopped_writing(flag: &str, path: &Path) -> String {
    let path = path.display();
    format!(
        "{flag} {path}: the output is incomplete; finished lines are kept, so fix the cause and run the same command again"
    )
}

fn cannot_write(flag: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    wrong_usage(format!("{flag} {}: {error}; name a path that can be written", path.display()))
}
