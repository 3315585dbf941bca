//! `onward orchestration fork` and `onward orchestration reset`

use std::sync::Arc;

use clap::Args;
use onward::Engine;
use serde_json::json;

use crate::commands::orchestration::selection::OneOrchestration;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, print_line};
use crate::store_file;

/// Arguments of `onward orchestration fork`.
#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    #[command(flatten)]
    orchestration: OneOrchestration,
    /// Number of events with which the new history begins; `onward orchestration history` numbers
    /// them from 0
    #[arg(long, value_name = "COUNT")]
    events: u64,
}

/// Arguments of `onward orchestration reset`.
#[derive(Debug, Args)]
pub(crate) struct ResetArguments {
    #[command(flatten)]
    fork: ForkArguments,
    /// The reason, which is kept as the error of the terminated orchestration
    #[arg(long, value_name = "TEXT", default_value = "reset by the operator")]
    reason: String,
}

/// Starts another orchestration that begins with a part of this one's history.
pub(crate) async fn fork(options: &GlobalOptions, arguments: ForkArguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let ForkArguments { orchestration, events } = arguments;
    let of = orchestration.record(&*store).await?.id;
    let id = Engine::builder().store(Arc::clone(&store)).open().await?.fork(of, events).await?;
    if options.json {
        print_json(&json!({ "id": id, "forked_from": of, "events": events }))?;
    } else {
        let first = counted(events, "event");
        print_line(format_args!("orchestration {id} started with the first {first} of orchestration {of}"))?;
    }
    Ok(ExitCode::Done)
}

/// Forks an orchestration like [`fork`], and lets the fork take over the key and the place of the
/// original, which is terminated.
pub(crate) async fn reset(options: &GlobalOptions, arguments: ResetArguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let ResetArguments { fork: ForkArguments { orchestration, events }, reason } = arguments;
    let of = orchestration.record(&*store).await?.id;
    let id = Engine::builder().store(Arc::clone(&store)).open().await?.reset(of, events, &reason).await?;
    if options.json {
        print_json(&json!({ "id": id, "replaces": of, "events": events }))?;
    } else {
        print_line(format_args!(
            "orchestration {id} replaces orchestration {of}, with the first {} of its history",
            counted(events, "event")
        ))?;
    }
    Ok(ExitCode::Done)
}
