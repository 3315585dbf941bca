//! Serving a store.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use onward_server::http::{Listener, Server, Tls};
use onward_store::Store;
use tokio_util::sync::CancellationToken;

use super::announce::announce;
use super::arguments::{Arguments, Settings};
use super::check::check;
use super::demo::Demo;
use super::prepare::{check_protection, open_tls};
use super::reload::reload;
use crate::exit_code::ExitCode;
use crate::location::Location;
use crate::logging;
use crate::options::GlobalOptions;
use crate::output::remark;
use crate::process::{HangUp, HangUps, Interrupts};
use crate::store_file;

/// Serves the store until the program is asked to stop.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { settings, check: checks_only } = arguments;
    logging::set(settings.log.as_ref(), options.verbose);
    if checks_only {
        return check(options, &settings).await;
    }
    let signals = Signals {
        interrupts: Interrupts::listen_without_hang_up().context("cannot listen for signals")?,
        hang_ups: HangUps::listen().context("cannot listen for signals")?,
    };
    settings.options()?.check()?;
    // Wrong settings leave no new store behind.
    settings.tls_files()?;
    let (demo, store) = open(options, settings.demo).await?;
    let tls = open_tls(&settings, store.clock())?;
    check_protection(&settings, Some(&store)).await?;
    // The port comes before the key file, so that a second server on it leaves the file alone.
    let listen = settings.listen;
    let listener = Listener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen}; stop what listens there, or give another port with --listen")
    })?;
    let listener = match &tls {
        Some(tls) => listener.with_tls(Arc::clone(tls)),
        None => listener,
    };
    let mut server_options = settings.options()?;
    server_options.key_file_beside = if demo.is_some() { None } else { file_of(&options.store).map(Path::to_owned) };
    let server = Server::open(store, server_options).await?;
    announce(options, &settings, &server, &listener).await?;
    let stop = CancellationToken::new();
    let webhooks = tokio::spawn(send_webhooks(Arc::clone(&server), stop.clone()));
    let ended = serve(&server, listener, tls.as_ref(), settings, signals, &stop).await;
    stop.cancel();
    webhooks.await.context("the sender of webhooks panicked")?;
    if let Some(demo) = demo {
        demo.stop().await;
    }
    server.close().await?;
    if !ended {
        remark("some requests had not ended");
    }
    Ok(if ended { ExitCode::Done } else { ExitCode::Interrupted })
}

/// Opens the store, or starts the demonstration, which has one in memory.
async fn open(options: &GlobalOptions, is_demo: bool) -> anyhow::Result<(Option<Demo>, Arc<dyn Store>)> {
    if !is_demo {
        return Ok((None, store_file::open_or_create_to_stay(options).await?));
    }
    let (demo, store) = Demo::start().await?;
    Ok((Some(demo), store))
}

/// The signals that a server obeys.
struct Signals {
    interrupts: Interrupts,
    hang_ups: HangUps,
}

/// Serves until a signal to stop, and then until all requests have ended. Returns false if some had
/// not.
async fn serve(
    server: &Arc<Server>,
    listener: Listener,
    tls: Option<&Arc<Tls>>,
    mut settings: Settings,
    signals: Signals,
    stop: &CancellationToken,
) -> bool {
    let Signals { mut interrupts, mut hang_ups } = signals;
    let serving = listener.serve(server, stop.clone(), settings.stop_within);
    tokio::pin!(serving);
    loop {
        tokio::select! {
            ended = &mut serving => return ended,
            () = interrupts.next() => break,
            hang_up = hang_ups.next() => match hang_up {
                HangUp::Reload => reload(server, tls, &mut settings),
                HangUp::TerminalGone => break,
            },
        }
    }
    // The first request to stop lets open requests end, for at most --stop-within. The second ends
    // the wait, and the exit code says that some were cut off.
    remark("stopping: open requests may end; another request to stop ends them");
    stop.cancel();
    tokio::select! {
        ended = serving => ended,
        () = interrupts.next() => false,
    }
}

/// Sends events to webhooks until the server stops.
async fn send_webhooks(server: Arc<Server>, stop: CancellationToken) {
    if let Err(error) = server.send_webhooks(stop).await {
        remark(format_args!("webhooks are not sent any more: {error}; remove the cause and restart the server"));
    }
}

fn file_of(location: &Location) -> Option<&Path> {
    match location {
        Location::File(path) => Some(path),
        Location::Server(_) | Location::Http(_) => None,
    }
}
