//! `onward workflow events`

use clap::Args;
use onward::Engine;
use onward::workflow::PublishedEvent;
use onward_store::EventCursor;

use crate::commands::workflow::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{moment, print_json, print_line, remark};
use crate::store_file;

/// Arguments of `onward workflow events`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Start after this cursor, taken from an event; default: start with the oldest event
    #[arg(long, value_name = "CURSOR")]
    after: Option<EventCursor>,
    /// Keep running, and show new events as they are published
    #[arg(long)]
    follow: bool,
}

/// Shows the events that runs published to the log, in order. With `--follow`, runs until it is
/// interrupted.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = match arguments.follow {
        true => Engine::builder().store(store_file::open_to_stay(options).await?).open().await?,
        false => open_to_read(options).await?,
    };
    let mut events = engine.published_events(arguments.after.unwrap_or(EventCursor::START));
    loop {
        let event = if arguments.follow { events.next().await.map(Some) } else { events.try_next().await };
        match event {
            Ok(Some(event)) => show(options, &event)?,
            Ok(None) => break,
            Err(error) => match error.events_forgotten() {
                Some(oldest) => remark(format_args!("the events up to {oldest} were pruned before they were read")),
                None => return Err(error.into()),
            },
        }
    }
    let cursor = events.cursor();
    if !options.json && cursor != EventCursor::START {
        remark(format_args!("later events: --after {cursor}"));
    }
    Ok(ExitCode::Done)
}

fn show(options: &GlobalOptions, event: &PublishedEvent) -> std::io::Result<()> {
    if options.json {
        return print_json(event);
    }
    let PublishedEvent { at, run, workflow, name, payload, .. } = event;
    print_line(format_args!("{}  {name} of run {run} ({workflow}) {payload}", moment(*at)))
}
