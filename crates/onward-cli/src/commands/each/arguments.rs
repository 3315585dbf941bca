//! The arguments of `onward each`.

use std::ffi::OsString;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use onward_store::bounds;
use onward_store::rules::retry::{Backoff, RetryPolicy};

use super::halt::Halt;
use super::record::HEADER_BYTES;
use super::template::{LineInput, Split};
use crate::input::{Delimiter, ITEM_LINES, Lines};
use crate::process::Limits;
use crate::values::{Jobs, Rate, parse_backoff, parse_bytes, parse_duration, parse_positive_duration};

/// The bytes that are kept of each of a command's streams by default.
const CAPTURE_BYTES: &str = "1MiB";

/// The largest value for `--capture`. Both streams have to fit into a result.
const CAPTURE_MAXIMUM: usize = (bounds::PAYLOAD_BYTES_CEILING - HEADER_BYTES) / 2;

fn parse_capture(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    if bytes > CAPTURE_MAXIMUM {
        return Err(format!(
            "the limit is {}MiB, because both streams are kept in the store; have the command write more to its own files",
            CAPTURE_MAXIMUM >> 20
        ));
    }
    Ok(bytes)
}

fn parse_max_args(text: &str) -> Result<NonZeroUsize, String> {
    let lines = text.parse().ok().filter(|lines: &NonZeroUsize| lines.get() <= ITEM_LINES);
    lines.ok_or_else(|| format!("the number of lines of an item is from 1 to {ITEM_LINES}"))
}

/// Arguments of `onward each`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Read lines from this file instead of stdin
    #[arg(long, short, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Lines end with a zero byte, as find -print0 writes them
    #[arg(short = '0', long = "null")]
    null: bool,
    /// The name of the run; default: a digest of the directory, the command and the input
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) name: Option<String>,
    /// Continue a run of this name with another command; finished lines are not repeated
    #[arg(long, requires = "name", conflicts_with = "again")]
    pub(super) changed_command: bool,
    /// Forget the finished lines of this run, and start again
    #[arg(long)]
    pub(super) again: bool,
    /// Retry the lines that failed in an earlier run
    #[arg(long)]
    pub(super) retry_failed: bool,
    /// Time for which finished lines are remembered; default: 30d, or that of the run that is
    /// continued
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    pub(super) keep: Option<Duration>,
    /// Number of commands that run at once: 4, or 50% of the cores
    #[arg(long, short, value_name = "COUNT", default_value = "100%")]
    jobs: Jobs,
    /// Further attempts after a failed one
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    retries: u32,
    /// Time between attempts: 5s, linear:1s:1s:1m, exp:1s:1m or jitter:1s:1m
    #[arg(long, value_name = "BACKOFF", value_parser = parse_backoff, default_value = "jitter:1s:10m")]
    backoff: Backoff,
    /// Stop a command that takes longer; this counts as a failed attempt
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
    /// Time that a stopped command has to end before it is killed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s")]
    grace: Duration,
    /// Start at most this many commands: 10/s, 100/m, 5/h (counted in this process)
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<Rate>,
    /// End early once COUNT lines have failed after all retries: soon,fail=1 lets running commands
    /// end, now,fail=1 stops them
    #[arg(long, value_name = "WHEN,fail=COUNT")]
    pub(super) halt: Option<Halt>,
    /// Print the commands and run none
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Text between the columns of a line; {1}, {2} and so on stand for the columns
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new(), conflicts_with = "stdin")]
    pub(super) colsep: Option<String>,
    /// Give the command this many lines at once, as an item; {1}, {2} and so on stand for the lines
    #[arg(long, short = 'n', short_alias = 'N', value_name = "LINES", value_parser = parse_max_args, conflicts_with = "colsep")]
    max_args: Option<NonZeroUsize>,
    /// Give the line on the command's stdin instead of as an argument
    #[arg(long)]
    pub(super) stdin: bool,
    /// Write one JSON object per line of input to this file, or - for stdout
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,
    /// Write stdout and stderr of each line to files 000001.out and 000001.err in this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) output_dir: Option<PathBuf>,
    /// Write one row per ended line to this file, in the columns of GNU parallel's job log
    #[arg(long, value_name = "FILE")]
    pub(super) job_log: Option<PathBuf>,
    /// Write the lines that failed after all retries to this file
    #[arg(long, value_name = "FILE")]
    pub(super) failures: Option<PathBuf>,
    /// Order in which results are shown
    #[arg(long, value_name = "ORDER", default_value = "input")]
    pub(super) order: Order,
    /// Bytes to keep of each of a command's streams: the beginning of stdout, the end of stderr
    #[arg(long, value_name = "SIZE", value_parser = parse_capture, default_value = CAPTURE_BYTES)]
    pub(super) capture: usize,
    /// List the runs in the store, with the number of waiting lines and of processes for each
    #[arg(long, conflicts_with_all = ["command", "forget"])]
    pub(super) list: bool,
    /// Forget a run with all its lines, including those that wait
    #[arg(long, value_name = "RUN", conflicts_with = "command")]
    pub(super) forget: Option<String>,
    /// The command and its arguments; {} is replaced by the line, which otherwise comes last
    /// (further placeholders are listed below)
    #[arg(last = true, required_unless_present_any = ["list", "forget"], value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// The order in which results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// In the order of the input
    Input,
    /// In the order in which they finish
    Finish,
}

const AFTER_HELP: &str = "\
A line is finished when its result is in the store. After any interruption, run the same command again: it resumes
where it stopped and repeats no finished line. Run it once more after the end, and it shows the results without
running anything. Empty lines are left out.

Without --name the input is read completely before the first command starts: a file is read twice, a pipe is
copied to a temporary file. With --name commands start while the input still arrives.

If a command fails, at most the first 2 KiB of its stdout and the last 5 KiB of its stderr are kept, regardless of
--capture. Cut output is marked in --results, reported on stderr and counted at the end. If a command succeeds, its
stderr is passed on to the stderr of onward each wherever its stdout is passed on.

In the arguments, {} stands for the line, {.} for the line without its extension, {/} for the part after its last
slash, {//} for the part before that slash, {/.} for {/} without its extension, and {#} for the number of the line.
With --colsep, {1} stands for the first column, and so on; without any of these placeholders the columns come last,
one by one. {1.}, {1/}, {1//} and {1/.} are parts of a column.

With -n 3 (or -N 3, --max-args 3) a command gets an item of three lines: {1}, {2} and {3}, or all of them as separate
arguments in place of {}, or at the end without a placeholder. The last item may have fewer. An item counts as one
line elsewhere: in --jobs, --rate, --halt, the results and the summary. Its number is that of its first line.

The environment of the command has ONWARD_ATTEMPT (1 for the first) and ONWARD_TASK_ID.

Examples:
  ls *.png | onward each --jobs 4 -- optipng -quiet {}
  onward each --input pairs.txt -n 2 -- diff {1} {2}
  onward each --input urls.txt --retries 3 --rate 10/s --output-dir pages -- curl -sSf";

impl Arguments {
    /// Returns the delimiter of the lines.
    pub(super) fn delimiter(&self) -> Delimiter {
        if self.null { Delimiter::Zero } else { Delimiter::LineFeed }
    }

    /// Returns the number of commands that run at once.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.count()
    }

    /// Returns the way in which the command receives a line.
    pub(super) fn way(&self) -> LineInput {
        let split = match (&self.colsep, self.max_args) {
            (Some(separator), _) => Split::Columns(separator.clone().into_bytes()),
            (None, Some(_)) => Split::Lines(self.delimiter().byte()),
            (None, None) => Split::Whole,
        };
        LineInput { stdin: self.stdin, split }
    }

    /// Returns the number of lines of an item, if the user set it.
    pub(super) fn max_args(&self) -> Option<NonZeroUsize> {
        self.max_args
    }

    /// Returns the word for a unit of the input: `line`, or `item` for several lines.
    pub(super) fn unit(&self) -> &'static str {
        if self.max_args.is_some() { "item" } else { "line" }
    }

    /// Returns a reader of the items in an input.
    pub(super) fn items(&self, input: Box<dyn Read + Send>) -> Lines {
        Lines::new(input, self.delimiter()).in_items(self.max_args.unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns the retry policy of a line.
    pub(super) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy { attempts: self.retries.saturating_add(1), backoff: self.backoff }
    }

    /// Returns the limits of a command.
    pub(super) fn limits(&self) -> Limits {
        Limits { capture: self.capture, timeout: self.timeout, grace: self.grace }
    }
}
