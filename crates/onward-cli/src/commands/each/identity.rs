//! Which run this is.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use anyhow::Context;
use onward_store::bounds::{EACH_KIND, EACH_QUEUE_PREFIX};
use onward_store::rules::attempt::cut;
use onward_store::{Name, NewTask, OnDuplicate, TaskRecord, UniqueKey};
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use crate::exit_code::wrong_usage;
use crate::input::{Line, Lines};

/// How many bytes of a SHA-256 identify a run or a line: the chance that two among a million runs
/// meet is below 10⁻¹⁷.
const DIGEST_BYTES: usize = 12;

/// A run: the same command over the same input in the same store. (A run is part of its store, so
/// the store need not be in the digest.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    run: String,
    queue: Name,
    /// The value of the tag that identifies the command.
    command: String,
    /// True for a run with a name of the user's, which does not identify the command: each line
    /// has the tag then. Else the first line has it.
    is_named: bool,
}

/// The tag that tells the command which the lines of a run are for.
pub(super) const COMMAND_TAG: &str = "command";

/// How much is kept of a program's name.
const PROGRAM_BYTES: usize = 200;

impl Identity {
    /// A run with the name that its user gave it.
    pub(super) fn named(name: &str, arguments: &Arguments) -> anyhow::Result<Self> {
        let queue = Name::new(format!("{EACH_QUEUE_PREFIX}{name}"));
        let queue = queue.map_err(|error| wrong_usage(format!("--name {name:?}: {error}")))?;
        Ok(Self { run: name.to_owned(), queue, command: command_tag(arguments), is_named: true })
    }

    /// A run without a name: the digest of the directory (relative paths mean other files
    /// elsewhere), the command, how it gets its line, and every line of the input. Answers the
    /// number of lines too.
    pub(super) fn of_input(arguments: &Arguments, mut lines: Lines) -> anyhow::Result<(Self, u64)> {
        let directory = std::env::current_dir().context("cannot tell the current directory")?;
        let mut digest = Sha256::new();
        add(&mut digest, directory.as_os_str().as_bytes());
        add_command(&mut digest, arguments);
        let mut count = 0;
        while let Some(line) = lines.next()? {
            digest.update(line.number.to_le_bytes());
            add(&mut digest, &line.text);
            count += 1;
        }
        let run = text(digest);
        let queue = Name::new(format!("{EACH_QUEUE_PREFIX}{run}"))?;
        Ok((Self { run, queue, command: command_tag(arguments), is_named: false }, count))
    }

    /// The name or digest.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// The queue of the run.
    pub(super) fn queue(&self) -> &Name {
        &self.queue
    }

    /// The program of the command that a task of this run is for, if it is another command than
    /// that of this process.
    pub(super) fn other_command<'t>(&self, task: &'t TaskRecord) -> Option<&'t str> {
        let theirs = task.tags.get(COMMAND_TAG).filter(|_| self.is_named)?;
        (self.command != theirs).then(|| program_of(theirs))
    }

    /// The task of a line. `is_first` says that it is the first of the run.
    pub(super) fn task(&self, line: Line, is_first: bool, arguments: &Arguments) -> anyhow::Result<NewTask> {
        let mut task = NewTask::new(EACH_KIND)?;
        let digest = text(Sha256::new_with_prefix(&line.text));
        task.queue = self.queue.clone();
        task.unique = Some(UniqueKey {
            key: format!("{}:{}:{digest}", self.run, line.number),
            on_duplicate: OnDuplicate::Skip,
            keep_for: arguments.keep,
        });
        if self.is_named || is_first {
            task.tags.set(COMMAND_TAG, self.command.as_str());
        }
        task.payload = line.text;
        task.retry = Some(arguments.retry_policy());
        Ok(task)
    }
}

/// The program of the command that a tag tells.
pub(super) fn program_of(tag: &str) -> &str {
    tag.split_once(' ').map_or(tag, |(_digest, program)| program)
}

/// A command as a tag tells it: its digest, which tells it from every other, and its program for
/// people. Arguments may hold secrets, and tags are shown.
fn command_tag(arguments: &Arguments) -> String {
    let mut digest = Sha256::new();
    add_command(&mut digest, arguments);
    let program = arguments.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{} {}", text(digest), cut(program, PROGRAM_BYTES))
}

/// Adds the command, and how it gets its line.
fn add_command(digest: &mut Sha256, arguments: &Arguments) {
    add(digest, &[u8::from(arguments.stdin)]);
    arguments.colsep.iter().for_each(|separator| add(digest, separator.as_bytes()));
    arguments.command.iter().map(|argument| OsStr::as_bytes(argument)).for_each(|part| add(digest, part));
}

/// Adds a part with its length, so that no two lists of parts look alike.
fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
    digest.update(part);
}

fn text(digest: Sha256) -> String {
    let bytes = digest.finalize();
    bytes.iter().take(DIGEST_BYTES).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::input::Delimiter;

    #[derive(Debug, Parser)]
    struct Each {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn run(command: &[&str], input: &'static str) -> String {
        let typed = ["each", "--"].iter().chain(command);
        let arguments = Each::parse_from(typed).arguments;
        let lines = Lines::new(Box::new(input.as_bytes()), Delimiter::LineFeed);
        Identity::of_input(&arguments, lines).unwrap().0.run().to_owned()
    }

    #[test]
    fn the_same_command_and_input_is_the_same_run() {
        assert_eq!(run(&["echo", "{}"], "a\nb\n"), run(&["echo", "{}"], "a\nb"));
    }

    #[test]
    fn another_command_or_input_is_another_run() {
        let runs = [
            run(&["echo", "ab"], "x"),
            run(&["echo", "a", "b"], "x"),
            run(&["echo", "ab"], "x\ny"),
            run(&["echo", "ab"], "\nx"),
        ];
        let different: std::collections::BTreeSet<_> = runs.iter().collect();
        assert_eq!(different.len(), runs.len());
    }
}
