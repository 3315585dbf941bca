//! `onward task follow`

use std::time::Duration;

use clap::Args;
use onward_store::{OutputStream, Refusal, Store, StoreReads, TaskId, TaskRecord, TaskState};
use serde_json::json;

use super::stored_output::{Part, READ_BYTES, gap_text, offset_of_last_lines, part_json, parts};
use crate::apply::{StuckReport, next_change};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{pass_on, print_json, print_raw, remark};
use crate::store_file;

/// The time after which output of a running task is looked for without a notification. Workers save
/// output about once a second.
const LOOK: Duration = Duration::from_secs(1);

/// Arguments of `onward task follow`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Task number
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// Start with the last N lines of each stream; default: with the first that is kept
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
}

/// Shows the output of a task until the task has ended.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_stay(options).await?;
    let mut follower = Follower { options, store: &*store, task: arguments.task, claim: None, attempt: 0, at: [0; 2] };
    if let Some(lines) = arguments.tail {
        follower.skip_to_last(lines).await?;
    }
    let record = follower.follow().await?;
    follower.show_end(&record)?;
    Ok(ExitCode::Done.or_failed(record.state != TaskState::Completed))
}

/// A reader of both streams of a task.
struct Follower<'a> {
    options: &'a GlobalOptions,
    store: &'a dyn Store,
    task: TaskId,
    /// The claim whose output was shown last.
    claim: Option<u32>,
    /// The number of its attempt.
    attempt: u32,
    /// The offset up to which each stream was shown.
    at: [u64; 2],
}

impl Follower<'_> {
    async fn skip_to_last(&mut self, lines: usize) -> anyhow::Result<()> {
        for (stream, at) in OutputStream::ALL.into_iter().zip(&mut self.at) {
            if let Some(output) = self.store.task_output(self.task, stream, 0, usize::MAX).await? {
                (self.claim, self.attempt) = (Some(output.claim), output.attempt);
                *at = offset_of_last_lines(&output, lines);
            }
        }
        Ok(())
    }

    /// Shows output as it comes, until the task has ended. Returns its record.
    async fn follow(&mut self) -> anyhow::Result<TaskRecord> {
        // Subscribed before the first read, so that a change right after it is not missed.
        let mut changes = self.store.changes();
        let mut stuck = StuckReport::new();
        loop {
            // Read before the output: all output of an ended task is there.
            let record = self.store.task(self.task).await?.ok_or(Refusal::TaskNotFound(self.task))?;
            for stream in OutputStream::ALL {
                while self.show_some(stream).await? {}
            }
            if record.state.is_ended() {
                return Ok(record);
            }
            let change = next_change(self.store, &mut changes, &record);
            tokio::select! {
                changed = change => changed?,
                () = tokio::time::sleep(LOOK), if record.state == TaskState::Running => {}
                () = stuck.due() => stuck.print(self.store, self.task).await?,
            }
        }
    }

    /// Shows output of a stream. Returns true if there may be more.
    async fn show_some(&mut self, stream: OutputStream) -> anyhow::Result<bool> {
        let at = self.at[position(stream)];
        let Some(output) = self.store.task_output(self.task, stream, at, READ_BYTES).await? else { return Ok(false) };
        if self.claim != Some(output.claim) {
            return Ok(self.begin(output.claim, output.attempt));
        }
        for part in parts(&output.pieces, at) {
            self.show(stream, &part)?;
            self.at[position(stream)] = part.at + part.bytes.len() as u64;
        }
        Ok(!output.pieces.is_empty() && self.at[position(stream)] < output.end)
    }

    /// Continues with the output of another attempt, from its beginning. Returns true.
    fn begin(&mut self, claim: u32, attempt: u32) -> bool {
        if self.claim.is_some() && !self.options.json {
            remark(format_args!("the output of attempt {attempt} follows"));
        }
        (self.claim, self.attempt, self.at) = (Some(claim), attempt, [0; 2]);
        true
    }

    fn show(&self, stream: OutputStream, part: &Part) -> anyhow::Result<()> {
        if self.options.json {
            return Ok(print_json(&part_json(self.task, self.attempt, stream, part))?);
        }
        if part.gap > 0 {
            remark(gap_text(stream, part.gap));
        }
        match stream {
            OutputStream::Stdout => print_raw(&part.bytes)?,
            OutputStream::Stderr => pass_on(&part.bytes),
        }
        Ok(())
    }

    fn show_end(&self, record: &TaskRecord) -> anyhow::Result<()> {
        let state = record.state.as_str();
        if self.options.json {
            print_json(&json!({ "task": self.task.0, "state": state }))?;
        } else if record.state != TaskState::Completed {
            remark(format_args!("task {} {state}; `onward task show {}` shows why", self.task, self.task));
        }
        Ok(())
    }
}

fn position(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}
