//! `onward task output`

use clap::Args;
use onward_store::{OutputStream, Refusal, Store, StoreReads, TaskId, TaskOutput};
use serde_json::{Map, Value};

use super::stored_output::{gap_text, last_lines, parts};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{bytes_field, indented, print_json, print_raw, remark};
use crate::store_file;

/// The number of lines at the end of stderr that are shown with a task.
const STDERR_LINES: usize = 5;

/// Arguments of `onward task output`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Task number
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// Show the standard error instead of the standard output
    #[arg(long)]
    stderr: bool,
}

/// Shows the output that is kept of a task.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let Arguments { task, stderr } = arguments;
    let stream = if stderr { OutputStream::Stderr } else { OutputStream::Stdout };
    store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
    let output = store.task_output(task, stream, 0, usize::MAX).await?;
    if options.json {
        print_json(&output_json(task, stream, output))?;
        return Ok(ExitCode::Done);
    }
    let Some(output) = output else {
        remark(format_args!("task {task} has no output"));
        return Ok(ExitCode::Done);
    };
    for part in parts(&output.pieces, 0) {
        if part.gap > 0 {
            remark(gap_text(stream, part.gap));
        }
        print_raw(&part.bytes)?;
    }
    Ok(ExitCode::Done)
}

fn output_json(task: TaskId, stream: OutputStream, output: Option<TaskOutput>) -> Value {
    let mut object = Map::new();
    object.insert("task".to_owned(), task.0.into());
    object.insert("stream".to_owned(), stream.as_str().into());
    object.insert("attempt".to_owned(), output.as_ref().map(|output| output.attempt).into());
    object.insert("bytes".to_owned(), output.as_ref().map_or(0, |output| output.end).into());
    object.insert("cut".to_owned(), output.as_ref().map_or(0, |output| output.cut).into());
    let pieces = output.into_iter().flat_map(|output| output.pieces);
    let bytes: Vec<u8> = pieces.flat_map(|piece| piece.bytes).collect();
    bytes_field(&mut object, "text", Some(&bytes));
    Value::Object(object)
}

/// A summary of the output of a task.
#[derive(Debug)]
pub(super) struct Summary {
    task: TaskId,
    attempt: u32,
    /// The length of each stream, and how much of it is not kept.
    streams: [(u64, u64); 2],
    stderr_end: String,
}

impl Summary {
    /// Reads the summary. Returns `None` if the task has no output.
    pub(super) async fn read(store: &dyn Store, task: TaskId) -> onward_store::Result<Option<Self>> {
        let mut streams = [(0, 0); 2];
        let mut attempt = None;
        for (stream, length) in OutputStream::ALL.into_iter().zip(&mut streams) {
            if let Some(output) = store.task_output(task, stream, u64::MAX, 0).await? {
                (attempt, *length) = (Some(output.attempt), (output.end, output.cut));
            }
        }
        let Some(attempt) = attempt else { return Ok(None) };
        let stderr_end = last_lines(store, task, OutputStream::Stderr, STDERR_LINES).await?;
        Ok(Some(Self { task, attempt, streams, stderr_end }))
    }

    /// Returns the facts for people, one per line.
    pub(super) fn text(&self) -> String {
        let Self { task, attempt, streams: [(stdout, _), (stderr, _)], stderr_end } = self;
        let output = format!(
            "{:<12} {stdout} bytes of stdout and {stderr} of stderr in attempt {attempt} (`onward task output {task}`)",
            "output"
        );
        match stderr_end.trim_end() {
            "" => output,
            end => format!("{output}\n{:<12} {}", "stderr", indented(end)),
        }
    }

    /// Returns the facts as a JSON object.
    pub(super) fn json(&self) -> Value {
        let [(stdout, stdout_cut), (stderr, stderr_cut)] = self.streams;
        serde_json::json!({
            "attempt": self.attempt,
            "stdout": { "bytes": stdout, "cut": stdout_cut },
            "stderr": { "bytes": stderr, "cut": stderr_cut, "end": self.stderr_end },
        })
    }
}
