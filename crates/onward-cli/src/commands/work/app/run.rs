//! `onward work --app` and `--listen`: workers in other programs, until they are stopped.

use anyhow::Context as _;
use onward_server::gateway::{Gateway, GatewayOptions, ListenError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::command_line::CommandLine;
use super::reports::Reports;
use super::supervise::Supervised;
use crate::commands::work::Arguments;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::process::Interrupts;
use crate::store_file;

/// Runs worker programs until they are stopped: the first interrupt lets them finish their tasks,
/// the second kills them.
pub(in crate::commands::work) async fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let lines = arguments.apps.iter().map(|line| CommandLine::parse(line)).collect::<anyhow::Result<Vec<_>>>()?;
    #[cfg(feature = "metrics")]
    if let Some(address) = arguments.metrics {
        crate::commands::work::metrics::serve(address).await?;
    }
    let store = store_file::open_or_create_to_stay(options).await?;
    let interrupts = Interrupts::listen()?;
    let reports = Reports { json: options.json, quiet: arguments.quiet };
    let gateway = Gateway::new(store.clone(), gateway_options(arguments));
    let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
    let mut apps = JoinSet::new();
    if !arguments.listen.is_empty() {
        let listener = gateway.listen(&arguments.listen).await.map_err(listen_error)?;
        for address in &arguments.listen {
            reports.event(address, &format!("listening for workers of {}", options.store));
        }
        apps.spawn(async move {
            listener.serve().await;
            Ok(())
        });
    }
    for line in lines {
        reports.event(&line.text, &format!("starting as a worker of {}", options.store));
        let supervised = Supervised {
            line,
            gateway: gateway.clone(),
            clock: store.clock(),
            slots: arguments.slots,
            reports,
            stop: stop.clone(),
            kill: kill.clone(),
        };
        apps.spawn(supervised.run());
    }
    Stopping { gateway, stop, kill, interrupts, reports }.until_ended(apps).await
}

fn listen_error(error: ListenError) -> anyhow::Error {
    if error.is_wrong_address() { wrong_usage(format!("--listen: {error}")) } else { error.into() }
}

fn gateway_options(arguments: &Arguments) -> GatewayOptions {
    GatewayOptions {
        name: format!("onward work {}", std::process::id()),
        queues: arguments.queues.iter().map(ToString::to_string).collect(),
        lease: arguments.lease,
        grace: arguments.grace,
        slots: arguments.slots,
        ..GatewayOptions::default()
    }
}

/// The ways to stop worker programs.
struct Stopping {
    gateway: Gateway,
    stop: CancellationToken,
    kill: CancellationToken,
    interrupts: Interrupts,
    reports: Reports,
}

impl Stopping {
    async fn until_ended(mut self, mut apps: JoinSet<anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
        let (mut failure, mut code) = (None, None);
        loop {
            tokio::select! {
                ended = apps.join_next() => match ended {
                    Some(ended) => {
                        if let Err(error) = ended.context("a worker program is no longer supervised").flatten() {
                            // The other programs finish first.
                            failure.get_or_insert(error);
                            self.drain();
                        }
                    }
                    None => break,
                },
                () = self.interrupts.next() => {
                    if code.is_some() {
                        self.gateway.abort();
                        self.kill.cancel();
                    }
                    // A service manager that stops the program must not take its end for a failure.
                    let is_graceful = code.is_none() && self.interrupts.is_terminated();
                    code = Some(if is_graceful { ExitCode::Done } else { ExitCode::Interrupted });
                    self.reports.event("worker programs", "stopping: running tasks may finish; interrupt again to stop at once");
                    self.drain();
                }
            }
        }
        failure.map_or(Ok(code.unwrap_or(ExitCode::Interrupted)), Err)
    }

    fn drain(&self) {
        self.stop.cancel();
        self.gateway.drain();
    }
}
