//! `onward queue mode`

use clap::{Args, ValueEnum};
use onward_store::{QueueMode, StoreReads, Write};
use serde_json::json;

use crate::apply::apply_one;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward queue mode`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new mode; without it, the mode is shown
    #[arg(value_name = "MODE")]
    mode: Option<Mode>,
}

/// The way in which workers choose among queues.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The queue with the highest weight first; queues of equal weight share one order, by priority
    /// and age
    Strict,
    /// Each turn goes to a queue drawn at random, by weight
    Lenient,
    /// In a round each queue has as many turns as its weight, spread over the round (IWRR)
    Interleaved,
}

impl From<Mode> for QueueMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Strict => Self::Strict,
            Mode::Lenient => Self::Lenient,
            Mode::Interleaved => Self::Interleaved,
        }
    }
}

/// Shows or changes how workers choose among queues.
pub(crate) async fn run(options: &GlobalOptions, Arguments { mode }: Arguments) -> anyhow::Result<ExitCode> {
    let store = match mode {
        Some(_) => store_file::open_or_create(options).await?,
        None => store_file::open_to_read(options).await?,
    };
    if let Some(mode) = mode {
        apply_one(&*store, Write::SetQueueMode(mode.into())).await?;
    }
    let now = store.queue_mode().await?;
    if options.json {
        print_json(&json!({ "mode": now }))?;
    } else if mode.is_some() {
        print_line(format_args!("set queue mode {now}"))?;
    } else {
        print_line(now)?;
    }
    Ok(ExitCode::Done)
}
