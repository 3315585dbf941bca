//! `onward orchestration start`

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use onward_store::{
    Name, NewTask, OnDuplicate, Outcome, Priority, Recipient, Signal, Store, StoreReads, Submitted, TaskId, UniqueKey,
    When, Write,
};
use serde_json::{Value, json};

use crate::apply::{apply_one, unexpected};
use crate::commands::submit::{self, DuplicateAction};
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{cleaned, print_json, print_line};
use crate::store_file;
use crate::values::{Tag, parse_duration, parse_json, parse_kind, parse_priority, parse_queue, tags_of};

/// The remedy where another has the key.
const OTHER_KEY: &str = "give another --key, or --on-duplicate to replace it or to follow it";

/// Arguments of `onward orchestration start`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The kind, which selects the code
    #[arg(value_parser = parse_kind)]
    kind: Name,
    /// The payload for the code, as JSON; - for stdin
    #[arg(long, value_name = "JSON", default_value = "null", allow_negative_numbers = true)]
    payload: String,
    /// The word that the user typed where `onward submit` takes its payload.
    #[arg(hide = true, allow_negative_numbers = true)]
    misplaced: Option<String>,
    /// A key that only one active orchestration of this kind can have at a time
    #[arg(long)]
    key: Option<String>,
    /// Action if another orchestration has the key
    #[arg(long, value_name = "ACTION", default_value = "skip", requires = "key")]
    on_duplicate: DuplicateAction,
    /// Time for which the key stays reserved after the orchestration has ended
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0", requires = "key")]
    keep_key: Duration,
    /// Also send this signal to it, or to the one that has the key: NAME=JSON, as in `onward
    /// orchestration signal`; both or neither is done
    #[arg(long, value_name = "NAME=JSON", requires = "key")]
    signal: Option<String>,
    /// The queue of its turns
    #[arg(long, default_value = "default", value_parser = parse_queue)]
    queue: Name,
    /// Priority of its turns: low (32), normal (128), high (192), urgent (255), or 0 to 255; higher
    /// first
    #[arg(long, value_parser = parse_priority, default_value = "normal")]
    priority: Priority,
    /// A tag for finding it; may be given several times
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    tags: Vec<Tag>,
    /// Begin after this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    after: Option<Duration>,
    /// Wait for the end and print the result; exit with 1 if it did not complete
    #[arg(long)]
    wait: bool,
}

impl Arguments {
    fn task(&self) -> anyhow::Result<NewTask> {
        if let Some(typed) = &self.misplaced {
            return Err(refuse_misplaced(typed));
        }
        let on_duplicate = OnDuplicate::from(self.on_duplicate);
        let unique = |key: &String| UniqueKey { key: key.clone(), on_duplicate, keep_for: self.keep_key };
        Ok(NewTask {
            queue: self.queue.clone(),
            payload: read_json("payload", &self.payload)?,
            priority: self.priority,
            when: self.after.map_or(When::Now, When::After),
            unique: self.key.as_ref().map(unique),
            tags: tags_of(&self.tags)?,
            orchestration: true,
            ..NewTask::of(self.kind.clone())
        })
    }

    /// Returns the write that starts the orchestration and sends the signal.
    fn write(&self) -> anyhow::Result<Write> {
        let start = Write::Submit(Box::new(self.task()?));
        let Some((sent, key)) = self.signal.as_ref().zip(self.key.clone()) else { return Ok(start) };
        let (name, payload) = sent.split_once('=').unwrap_or((sent, "null"));
        let name =
            Name::new(name).map_err(|error| wrong_usage(format!("--signal: `{name}` is not a name: {error}")))?;
        let to = Recipient::Key { kind: self.kind.clone(), key };
        let signal = Signal { to, name, payload: read_json("payload of the signal", payload)? };
        Ok(Write::All(vec![start, Write::Signal(Box::new(signal))]))
    }
}

/// Returns the error for a word after the kind. It is most likely the payload, so the error shows
/// how to pass one.
fn refuse_misplaced(typed: &str) -> anyhow::Error {
    let quoted = format!("'{}'", typed.replace('\'', r"'\''"));
    wrong_usage(format!("the kind is the last argument; if {quoted} is the payload, write --payload {quoted}"))
}

/// Reads JSON that the user typed, or from stdin if the user typed `-`.
pub(in crate::commands::orchestration) fn read_json(what: &str, typed: &str) -> anyhow::Result<Bytes> {
    let bytes = submit::read_payload(what, None, Some(typed))?;
    serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).map_err(|error| {
        wrong_usage(format!("the {what} is not JSON: {error}; a text needs quotes of its own, such as '\"parcel 4\"'"))
    })?;
    Ok(bytes)
}

/// Reads JSON like [`read_json`], as a value whose numbers have all their digits.
pub(in crate::commands::orchestration) fn read_value(what: &str, typed: &str) -> anyhow::Result<Value> {
    let bytes = read_json(what, typed)?;
    let text = std::str::from_utf8(&bytes)?;
    parse_json(text).map_err(|error| wrong_usage(format!("the {what}: {error}")))
}

/// Starts an orchestration.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let write = arguments.write()?;
    let store = store_file::open_to_submit(options, arguments.wait).await?;
    let submitted = match apply_one(&*store, write).await? {
        Outcome::Submitted(submitted) => submitted,
        Outcome::All(outcomes) => match outcomes.first() {
            Some(Outcome::Submitted(submitted)) => *submitted,
            _ => return Err(unexpected(Outcome::All(outcomes))),
        },
        other => return Err(unexpected(other)),
    };
    let rejected = matches!(submitted, Submitted::Rejected { .. });
    if arguments.wait && !rejected {
        return submit::wait(options, &*store, submitted.id()).await;
    }
    if options.json {
        print_json(&json!(submitted))?;
    } else {
        print_line(description(&*store, &arguments, submitted).await?)?;
    }
    Ok(if rejected { ExitCode::Failed } else { ExitCode::Done })
}

/// Describes the outcome of a start for people: names the holder of the key and a remedy.
async fn description(store: &dyn Store, arguments: &Arguments, submitted: Submitted) -> anyhow::Result<String> {
    let started = |id: TaskId| format!("orchestration {id} started");
    let Some(key) = arguments.key.as_ref().map(|key| cleaned(key)) else { return Ok(started(submitted.id())) };
    let held = async |id| anyhow::Ok(format!("{} has the key `{key}`", holder(store, id).await?));
    let sent = if arguments.signal.is_some() { "; the signal was sent to it" } else { "" };
    Ok(match submitted {
        Submitted::Inserted { id } => started(id),
        Submitted::Duplicate { id } => {
            format!("{} already, and no other was started{sent}; {OTHER_KEY}", held(id).await?)
        }
        Submitted::PriorityRaised { id } => {
            format!("{} already and is now as urgent as the new one, which was not started{sent}", held(id).await?)
        }
        Submitted::Requeued { id } => format!("{}; the new one starts when it ends{sent}", held(id).await?),
        Submitted::Superseded { id, old } => {
            format!("orchestration {id} started in place of {}{sent}", holder(store, old).await?)
        }
        Submitted::Rejected { id } => format!("rejected: {}; {OTHER_KEY}", held(id).await?),
    })
}

/// Returns the name of the holder of a key: an orchestration, or a plain task of the same kind. It
/// may have ended and keep the key.
async fn holder(store: &dyn Store, id: TaskId) -> anyhow::Result<String> {
    let Some(record) = store.task(id).await? else { return Ok(format!("orchestration {id}, which was removed,")) };
    let what = if record.orchestration { "orchestration" } else { "task" };
    let ended = if record.state.is_ended() { format!(", which is {},", record.state) } else { String::new() };
    Ok(format!("{what} {id}{ended}"))
}
