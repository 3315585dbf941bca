//! Serving a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use onward_server::http::{Listener, Server, ServerOptions, check_address};
use onward_store::Store;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;
use super::demo::Demo;
use crate::exit_code::ExitCode;
use crate::location::Location;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::process::Interrupts;
use crate::store_file;

/// Serves the store until the program is asked to stop.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { listen, host, base_path, demo, stop_within } = arguments;
    check_address(listen)?;
    let mut interrupts = Interrupts::listen().context("cannot listen for signals")?;
    let (demo, store) = open(options, demo).await?;
    // The port comes before the key file, so that a second server on it leaves the file alone.
    let listener = Listener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen}; stop what listens there, or give another port with --listen")
    })?;
    let mut settings = ServerOptions::default();
    settings.hosts = host;
    settings.base_path.clone_from(&base_path);
    settings.key_file_beside = if demo.is_some() { None } else { file_of(&options.store).map(Path::to_owned) };
    let server = Server::open(store, settings).await?;
    announce(options, &server, &listener, &base_path).await?;

    let stop = CancellationToken::new();
    let serving = listener.serve(&server, stop.clone(), stop_within);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = interrupts.next() => {
            remark("stopping: open requests may end; another request to stop ends them");
            stop.cancel();
            tokio::select! {
                ended = serving => ended,
                () = interrupts.next() => false,
            }
        }
    };
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

fn file_of(location: &Location) -> Option<&Path> {
    match location {
        Location::File(path) => Some(path),
        Location::Server(_) | Location::Http(_) => None,
    }
}

/// Prints the address, the link of the first admin and the key file.
async fn announce(
    options: &GlobalOptions,
    server: &Arc<Server>,
    listener: &Listener,
    base_path: &str,
) -> anyhow::Result<()> {
    let address = listener.local_address().context("cannot read the address")?;
    let base = format!("http://{address}{base_path}");
    let link = server.first_admin_token().await?.map(|token| format!("{base}/v1/sign-in?token={token}"));
    let key_file: Option<PathBuf> = server.key_file().await;
    if options.json {
        print_json(&json!({ "listening": base, "link": link, "key_file": key_file }))?;
        return Ok(());
    }
    print_line(format_args!("listening on {base}"))?;
    if let Some(link) = link {
        print_line(format_args!(
            "open this link within 10 minutes, once, to sign in to the page as its first admin:\n{link}"
        ))?;
    }
    if let Some(path) = key_file {
        print_line(format_args!("key for this user: curl -H @{} {base}/v1/overview", path.display()))?;
    }
    Ok(())
}
