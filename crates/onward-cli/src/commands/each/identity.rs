//! The identity of a run.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use anyhow::Context;
use onward_store::bounds::{EACH_KIND, EACH_QUEUE_PREFIX};
use onward_store::rules::attempt::cut;
use onward_store::{Name, NewTask, OnDuplicate, TaskRecord, UniqueKey};
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use crate::exit_code::wrong_usage;
use crate::input::{Line, Lines};
use crate::output::duration_text;

/// The bytes of a SHA-256 that identify a run or a line. With a million runs, the probability of a
/// collision is below 10⁻¹⁷.
const DIGEST_BYTES: usize = 12;

/// The identity of a run: the same command over the same input in the same store. A run is part of
/// its store, so the digest need not include the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    run: String,
    queue: Name,
    /// The value of the tag that identifies the command.
    command: String,
    /// True if the user named the run. A name does not identify the command, so each line has the
    /// tag. Otherwise only the first line has it.
    is_named: bool,
    /// The time for which finished lines are remembered.
    keep: Duration,
}

/// The time for which a new run remembers finished lines by default.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// The tag that identifies the command of a line.
pub(super) const COMMAND_TAG: &str = "command";

/// The bytes that are kept of a program's name.
const PROGRAM_BYTES: usize = 200;

impl Identity {
    /// Returns the identity of a run that the user named.
    pub(super) fn named(name: &str, arguments: &Arguments) -> anyhow::Result<Self> {
        let queue = Name::new(format!("{EACH_QUEUE_PREFIX}{name}"));
        let queue = queue.map_err(|error| wrong_usage(format!("--name {name:?}: {error}")))?;
        Ok(Self { run: name.to_owned(), queue, command: command_tag(arguments), is_named: true, keep: keep(arguments) })
    }

    /// Returns the identity of an unnamed run, and the number of lines. The identity is a digest of
    /// the directory, the command, the way in which it receives its line, and every line of the
    /// input. The directory counts because relative paths depend on it.
    pub(super) fn of_input(arguments: &Arguments, mut lines: Lines) -> anyhow::Result<(Self, u64)> {
        let directory = std::env::current_dir().context("cannot determine the current directory")?;
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
        Ok((Self { run, queue, command: command_tag(arguments), is_named: false, keep: keep(arguments) }, count))
    }

    /// Returns the name or digest.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Returns the queue of the run.
    pub(super) fn queue(&self) -> &Name {
        &self.queue
    }

    /// Continues the run that a task belongs to, which remembers its lines for as long as it began
    /// to.
    ///
    /// # Errors
    /// Returns an error if the user asks for another time. The lines that the run has finished
    /// would not have it.
    pub(super) fn continue_from(&mut self, task: &TaskRecord, asked: Option<Duration>) -> anyhow::Result<()> {
        let begun = task.keep_key_for;
        if let Some(asked) = asked.filter(|asked| *asked != begun) {
            return Err(wrong_usage(format!(
                "--keep {}: this run remembers its lines for {} since it began, and those that it has finished would \
                 stay so; leave --keep out, or start the run again with --again",
                duration_text(asked),
                duration_text(begun)
            )));
        }
        self.keep = begun;
        Ok(())
    }

    /// Returns the tag of the command of this process, if the user named the run. Otherwise the
    /// identity of the run includes its command, which cannot change.
    pub(super) fn changeable_command(&self) -> Option<&str> {
        self.is_named.then_some(&self.command)
    }

    /// Returns the task of a line. `is_first` is true for the first line of the run.
    pub(super) fn task(&self, line: Line, is_first: bool) -> anyhow::Result<NewTask> {
        let mut task = NewTask::new(EACH_KIND)?;
        let digest = text(Sha256::new_with_prefix(&line.text));
        task.queue = self.queue.clone();
        task.unique = Some(UniqueKey {
            key: format!("{}:{}:{digest}", self.run, line.number),
            on_duplicate: OnDuplicate::Skip,
            keep_for: self.keep,
        });
        if self.is_named || is_first {
            task.tags.set(COMMAND_TAG, self.command.as_str());
        }
        task.payload = line.text;
        Ok(task)
    }
}

fn keep(arguments: &Arguments) -> Duration {
    arguments.keep.unwrap_or(KEEP)
}

/// Returns the number of the line in the key of its task.
pub(super) fn line_number(key: &str) -> Option<&str> {
    let (rest, _digest) = key.rsplit_once(':')?;
    rest.rsplit_once(':').map(|(_run, number)| number)
}

/// Returns the program in the tag of a command.
pub(super) fn program_of(tag: &str) -> &str {
    tag.split_once(' ').map_or(tag, |(_digest, program)| program)
}

/// Returns the tag of a command: a digest that distinguishes it from every other, and its program
/// for people. The arguments are left out, because they may contain secrets and tags are shown.
fn command_tag(arguments: &Arguments) -> String {
    let mut digest = Sha256::new();
    add_command(&mut digest, arguments);
    let program = arguments.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{} {}", text(digest), cut(program, PROGRAM_BYTES))
}

/// Adds the command, and the way in which it receives its line.
fn add_command(digest: &mut Sha256, arguments: &Arguments) {
    add(digest, &[u8::from(arguments.stdin)]);
    arguments.colsep.iter().for_each(|separator| add(digest, separator.as_bytes()));
    if let Some(lines) = arguments.max_args() {
        add(digest, &lines.get().to_le_bytes());
        // The text of an item contains the delimiter.
        add(digest, &[arguments.delimiter().byte()]);
    }
    arguments.command.iter().map(|argument| OsStr::as_bytes(argument)).for_each(|part| add(digest, part));
}

/// Adds a part with its length, so that different lists of parts never yield the same digest input.
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
