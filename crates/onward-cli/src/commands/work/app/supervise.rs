//! Starts a worker program, and starts it again when it ends.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use onward::store::Clock;
use onward_server::gateway::{Ended, Gateway};
use tokio_util::sync::CancellationToken;

use super::child::{self, AppChild, Streams};
use super::command_line::CommandLine;
use super::reports::{Reports, ended};
use crate::output::duration_text;

/// The pause before a worker program is started again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The time after which the pause is short again.
const LONG_RUN: Duration = Duration::from_secs(10);

/// The time that a program has to end after its session.
const END_GRACE: Duration = Duration::from_secs(2);

/// A worker program to keep running.
pub(super) struct Supervised {
    pub(super) line: CommandLine,
    pub(super) gateway: Gateway,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) slots: Option<u32>,
    pub(super) reports: Reports,
    /// Cancelled when the program is not to be started again.
    pub(super) stop: CancellationToken,
    /// Cancelled when the program is to be killed.
    pub(super) kill: CancellationToken,
}

impl Supervised {
    /// Keeps the program running until it is stopped.
    ///
    /// # Errors
    /// Returns an error if the program never becomes a worker the first time: its author must
    /// change something.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (mut pause, mut was_welcome) = (PAUSE.0, false);
        while !self.stop.is_cancelled() {
            let began = self.clock.steady();
            let (session, status) = self.run_once().await?;
            if self.stop.is_cancelled() {
                return Ok(());
            }
            was_welcome |= session.was_welcome;
            let text = format!("{} ({})", ended(&status), session.why);
            if !was_welcome {
                let remedy = remedy(&session, &status);
                anyhow::bail!("--app `{}` {text}, and never became a worker; {remedy}", self.line.text);
            }
            if self.clock.steady().saturating_sub(began) >= LONG_RUN {
                pause = PAUSE.0;
            }
            self.reports.fault(&self.line.text, &format!("{text}; it starts again in {}", duration_text(pause)));
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
            // Without a growing pause, a program that fails at once would take a core and fill the
            // log.
            pause = (pause * 2).min(PAUSE.1);
        }
        Ok(())
    }

    async fn run_once(&self) -> anyhow::Result<(Ended, io::Result<ExitStatus>)> {
        let (mut child, streams) = child::start(&self.line, self.slots)
            .map_err(|error| anyhow::anyhow!("--app `{}` cannot be started: {error}", self.line.text))?;
        let Streams { connection, stdout, stderr } = streams;
        let copies = [
            tokio::spawn(self.reports.copy(self.line.text.clone(), stdout)),
            tokio::spawn(self.reports.copy(self.line.text.clone(), stderr)),
        ];
        let session = self.serve(&mut child, connection).await;
        let status = self.end(child).await;
        for copy in copies {
            // A process that the program left behind may keep the stream open.
            let _ = tokio::time::timeout(END_GRACE, copy).await;
        }
        Ok((session, status))
    }

    async fn serve(&self, child: &mut AppChild, connection: tokio::net::UnixStream) -> Ended {
        let session = self.gateway.serve_stream(connection);
        tokio::pin!(session);
        let mut has_ended = false;
        loop {
            tokio::select! {
                session = &mut session => return session,
                // The end of the program ends its session, which then writes the ends of its tasks.
                _ = child.ended(), if !has_ended => has_ended = true,
                () = self.kill.cancelled(), if !has_ended => {
                    child.kill();
                    has_ended = true;
                }
            }
        }
    }

    async fn end(&self, child: AppChild) -> io::Result<ExitStatus> {
        let grace = if self.kill.is_cancelled() { Duration::ZERO } else { END_GRACE };
        child.end(grace).await
    }
}

/// Returns the remedy for a program that never became a worker.
fn remedy(session: &Ended, status: &io::Result<ExitStatus>) -> &'static str {
    let has_failed = status.as_ref().is_ok_and(|status| !status.success());
    if has_failed && !session.had_fault { FAILED } else { NO_WORKER }
}

/// The remedy for a program that failed before its first message, for example at an import.
const FAILED: &str = "its output above has the reason; mend the program, or its environment";

/// The remedy for a program that is no worker.
const NO_WORKER: &str = "its first message on descriptor 3 must be `hello`; see docs/worker-protocol.md";
