//! `onward events`

use clap::Args;
use onward_store::{Change, Error, Event, EventCursor, Store, StoreReads};

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{duration_text, in_seconds, moment, print_json, print_line, remark};
use crate::store_file;

/// The events that are read at a time, the most that a store returns.
const PAGE: usize = 1000;

/// Arguments of `onward events`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Start after this cursor, taken from an event; default: start with the oldest event
    #[arg(long, value_name = "CURSOR")]
    after: Option<EventCursor>,
    /// Keep running, and show new events as they happen
    #[arg(long)]
    follow: bool,
}

/// Shows events in order. With `--follow`, runs until it is interrupted.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = match arguments.follow {
        true => store_file::open_to_stay(options).await?,
        false => store_file::open_to_read(options).await?,
    };
    // Subscribed before the first read, so that an event right after it is not missed.
    let mut changes = store.changes();
    let mut cursor = arguments.after.unwrap_or(EventCursor::START);
    loop {
        cursor = show_all(options, &*store, cursor).await?;
        if !arguments.follow {
            if !options.json && cursor != EventCursor::START {
                remark(format_args!("later events: --after {cursor}"));
            }
            return Ok(ExitCode::Done);
        }
        changes.changed().await.ok_or_else(Error::closed)?;
    }
}

/// Shows the events after a cursor. Returns the cursor after the last of them.
async fn show_all(options: &GlobalOptions, store: &dyn Store, mut cursor: EventCursor) -> anyhow::Result<EventCursor> {
    loop {
        let page = store.events(cursor, PAGE).await?;
        if let Some(oldest) = page.forgotten_up_to {
            remark(format_args!(
                "the events from {cursor} up to {oldest} were pruned before they were read; the oldest remaining events follow"
            ));
        }
        for event in &page.events {
            show(options, event)?;
        }
        if page.next == cursor {
            return Ok(cursor);
        }
        cursor = page.next;
    }
}

fn show(options: &GlobalOptions, event: &Event) -> std::io::Result<()> {
    if options.json {
        return print_json(&in_seconds(serde_json::to_value(event)?));
    }
    print_line(format_args!(
        "{}  task {} ({}, queue {}) {}",
        moment(event.at),
        event.task,
        event.kind,
        event.queue,
        description(event.change)
    ))
}

fn description(change: Change) -> String {
    match change {
        Change::Submitted => "submitted".to_owned(),
        Change::Started { attempt } => format!("started attempt {attempt}"),
        Change::Completed => "completed".to_owned(),
        Change::Retrying { attempt, after } => {
            format!("failed in attempt {attempt}; the next is due after {}", duration_text(after))
        }
        Change::Failed => "failed".to_owned(),
        Change::Dead => "became a dead letter".to_owned(),
        Change::CancelRequested => "was asked to stop".to_owned(),
        Change::Cancelled => "was cancelled".to_owned(),
        Change::Expired => "expired".to_owned(),
        Change::Released => "was released; the attempt is not counted".to_owned(),
        Change::LeaseLost => "lost its worker and waits again".to_owned(),
        Change::Retried => "was retried after its end".to_owned(),
        Change::PriorityRaised => "got a higher priority".to_owned(),
        Change::Purged => "was purged".to_owned(),
        Change::Blocked => "waits for its children or for external completion".to_owned(),
        Change::Moved => "moved to another queue".to_owned(),
        Change::Published { position } => format!("published event {position} of its history"),
        Change::Batched { batch } => format!("was delivered in batch {batch}"),
        Change::Unblocked => "no longer waits for other tasks".to_owned(),
        _ => "changed".to_owned(),
    }
}
