//! A node: a process that opens an engine on the store, on a runtime of its own.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use onward::Engine;
use onward::testing::ManualClock;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::network::{Connection, Server};
use super::work::{self, Work};

/// The lease of each node.
pub(super) const LEASE: Duration = Duration::from_secs(10);

pub(super) struct Node {
    /// `None` after a crash.
    process: Option<Process>,
    is_paused: bool,
}

/// A runtime with the tasks of one process. The tasks run only in [`Node::run`].
struct Process {
    runtime: Runtime,
    connection: Arc<Connection>,
    /// `None` after its end.
    main: Option<JoinHandle<()>>,
}

impl Node {
    /// Starts a process that works.
    pub(super) fn worker(server: &Arc<Server>, number: u32, clock: &Arc<ManualClock>) -> Self {
        let connection = Connection::open(server, number, true);
        let clock = Arc::clone(clock);
        let process = Process::start(&connection, |connection| async move {
            let engine = open(connection, number).await;
            work::register(&engine, &clock);
            // A run ends with an error if its store fails for long. The process begins another one.
            while engine.run().await.is_err() {}
        });
        Self { process: Some(process), is_paused: false }
    }

    /// Starts a process that only submits. `may_lose_replies` is for work that can be repeated.
    pub(super) fn client(server: &Arc<Server>, number: u32, may_lose_replies: bool, work: Work) -> Self {
        let connection = Connection::open(server, number, may_lose_replies);
        let process =
            Process::start(&connection, |connection| async move { work.submit(&open(connection, number).await).await });
        Self { process: Some(process), is_paused: false }
    }

    /// Runs the tasks of the process for some rounds.
    pub(super) fn run(&mut self, rounds: u32) {
        let Some(process) = self.process.as_mut().filter(|_| !self.is_paused) else { return };
        process.runtime.block_on(async {
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
        });
        if let Some(Err(failure)) = process.main.take_if(|main| main.is_finished()).and_then(|main| main.now_or_never())
        {
            resume_unwind(failure.into_panic());
        }
    }

    /// Ends the process at once, as `kill -9` does.
    pub(super) fn crash(&mut self) {
        if let Some(process) = self.process.take() {
            process.runtime.shutdown_background();
        }
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = true;
    }

    pub(super) fn resume(&mut self) {
        self.is_paused = false;
    }

    pub(super) fn is_up(&self) -> bool {
        self.process.is_some() && !self.is_paused
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.process.is_none()
    }

    /// Passes on a hint of the store.
    pub(super) fn hint(&self) {
        if let Some(process) = &self.process {
            process.connection.hint();
        }
    }
}

impl Process {
    fn start<F>(connection: &Arc<Connection>, main: impl FnOnce(Arc<Connection>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Its clock stands: all waits of an engine are by the clock of its store.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let main = Some(runtime.spawn(main(Arc::clone(connection))));
        Self { runtime, connection: Arc::clone(connection), main }
    }
}

/// Opens an engine, however often that takes.
async fn open(connection: Arc<Connection>, number: u32) -> Engine {
    loop {
        let builder = Engine::builder().store(connection.clone()).name(format!("node {number}"));
        if let Ok(engine) = builder.concurrency(3).lease(LEASE).open().await {
            return engine;
        }
    }
}
