//! `onward queue set`

use std::time::Duration;

use clap::Args;
use onward_store::{ConcurrencyLimit, Name, Outcome, QueueMode, QueueSettings, SetQueue, StoreReads, Write, bounds};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{duration_text, print_json, print_line, remark};
use crate::store_file;
use crate::values::{parse_duration, parse_queue};

/// Arguments of `onward queue set`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The queue; it is created if it is missing
    #[arg(value_name = "QUEUE", value_parser = parse_queue)]
    queue: Name,
    #[command(flatten)]
    settings: Settings,
}

/// The settings to change.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Settings {
    /// Its share among the queues with work, 1 to 1000; the effect depends on the mode (onward
    /// queue mode)
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u32).range(1..=i64::from(bounds::QUEUE_WEIGHT)))]
    weight: Option<u32>,
    /// Largest number of its tasks that run at once, in all processes together: 1 to 1000000, or
    /// none for no limit
    #[arg(long, value_name = "COUNT|none", value_parser = parse_concurrency)]
    concurrency: Option<ConcurrencyLimit>,
    /// Time for which a task waits for the worker that last ran its affinity key before any worker
    /// may claim it: 0 (never) to 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_wait)]
    affinity_wait: Option<Duration>,
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text)?;
    if wait <= bounds::AFFINITY_WAIT_MAXIMUM {
        return Ok(wait);
    }
    Err("the limit is 1h; tasks that must run on one worker need a queue that only this worker serves".to_owned())
}

/// Reads a concurrency limit, or `none`.
pub(crate) fn parse_concurrency(text: &str) -> Result<ConcurrencyLimit, String> {
    if text == "none" {
        return Ok(ConcurrencyLimit::Unlimited);
    }
    let limit = text.parse().ok().filter(|limit| (1..=bounds::QUEUE_CONCURRENCY).contains(limit));
    limit.map(ConcurrencyLimit::AtMost).ok_or_else(|| {
        format!(
            "it must be from 1 to {}, or `none`; to run nothing, pause it (onward queue pause)",
            bounds::QUEUE_CONCURRENCY
        )
    })
}

/// Changes the settings of a queue.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { queue, settings: Settings { weight, concurrency, affinity_wait } } = arguments;
    let store = store_file::open_to_edit(options, true).await?;
    let set = SetQueue { queue: queue.clone(), weight, concurrency, affinity_wait };
    let settings = match apply_one(&*store, Write::SetQueue(set)).await? {
        Outcome::QueueSet(settings) => settings,
        other => return Err(unexpected(other)),
    };
    if options.json {
        print_json(&json!({
            "queue": queue,
            "weight": settings.weight,
            "concurrency": settings.concurrency,
            "affinity_wait": settings.affinity_wait.as_secs_f64(),
        }))?;
        return Ok(ExitCode::Done);
    }
    print_line(format_args!(
        "set queue {queue}: weight {}, concurrency {}{}",
        settings.weight,
        concurrency_text(settings),
        affinity_text(settings)
    ))?;
    if weight.is_some() {
        remark(meaning(store.queue_mode().await?));
    }
    Ok(ExitCode::Done)
}

fn concurrency_text(settings: QueueSettings) -> String {
    settings.concurrency.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

fn affinity_text(settings: QueueSettings) -> String {
    match settings.affinity_wait {
        bounds::AFFINITY_WAIT => String::new(),
        wait => format!(", affinity wait {}", duration_text(wait)),
    }
}

/// Describes the effect of weights in a mode.
pub(super) fn meaning(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::Strict => {
            "the mode is strict: queues of a lower weight wait while one of a higher has work (see onward queue mode)"
        }
        QueueMode::Lenient => "the mode is lenient: each turn is drawn at random, by weight (see onward queue mode)",
        QueueMode::Interleaved => {
            "the mode is interleaved: in each round a queue has as many turns as its weight (see onward queue mode)"
        }
    }
}
