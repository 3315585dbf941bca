//! Running one program to its end.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::capture::{Capture, Captured, Part};
use super::invocation::Invocation;
use super::orphans;
use super::readiness::{Readiness, Run, Turn};
use super::supervisor::{Child, Spawner};

/// How long after its end a program's output is waited for, where something that it started still
/// holds the pipe.
const PIPE_DRAIN: Duration = Duration::from_secs(1);

/// What a program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many bytes of its stdout, and of its stderr, are kept.
    pub(crate) capture: usize,
    /// How long it may run.
    pub(crate) timeout: Option<Duration>,
    /// How long it has to end by itself (after SIGTERM) before it is killed.
    pub(crate) grace: Duration,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that we did not send.
    Killed(i32),
    /// It took longer than it may, and was stopped.
    TimedOut,
    /// It was asked to stop, and did or was killed.
    Stopped,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    /// How.
    pub(crate) end: End,
    /// The beginning of what it wrote to stdout.
    pub(crate) stdout: Captured,
    /// The end of what it wrote to stderr.
    pub(crate) stderr: Captured,
}

/// A reason why there is no end of a program to report.
#[derive(Debug)]
pub(crate) enum NotRun {
    /// It was asked to stop before this process could start it.
    Stopped,
    /// The system does not take its arguments.
    Refused(io::Error),
    /// It was started, and how it ended cannot be told.
    Lost(io::Error),
}

/// Runs programs.
#[derive(Debug)]
pub(crate) struct Runner {
    spawner: Spawner,
    readiness: Readiness,
}

impl Runner {
    /// A runner on the present runtime. Programs that still run when it is dropped are killed.
    /// `notice` is told of faults of this process that keep it from starting programs.
    pub(crate) fn start(notice: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        orphans::reap_from_now_on()?;
        Ok(Self { spawner: Spawner::start()?, readiness: Readiness::new(notice) })
    }

    /// Kills every program that runs, with all that it started, and waits until they are gone. No
    /// program can be started afterwards.
    pub(crate) fn kill_all(&self) {
        self.spawner.kill_all();
    }

    /// Waits until nothing has run and no program could be started for some seconds, and returns
    /// the reason.
    pub(crate) async fn given_up(&self) -> String {
        self.readiness.given_up().await
    }

    /// Gives up at once, for a reason that no waiting mends.
    pub(crate) fn give_up(&self, message: String) {
        self.readiness.give_up(message);
    }

    /// Starts no program from now on, and waits until none runs.
    pub(crate) async fn wind_down(&self) {
        self.readiness.wind_down().await;
    }

    /// Makes something that a program needs of this process. What fails is tried again until it
    /// succeeds; `None` if `stop` comes first.
    pub(crate) async fn prepare<T>(
        &self,
        stop: &CancellationToken,
        mut make: impl FnMut() -> Result<T, String>,
    ) -> Option<T> {
        loop {
            let turn = self.turn(stop).await?;
            match make() {
                Ok(made) => return Some(made),
                Err(message) => turn.failed(message),
            }
        }
    }

    /// Runs a program until it ends, takes too long, or `stop` asks it to. While this process
    /// cannot start it, it waits. Dropping the future kills the program.
    ///
    /// # Errors
    /// If there is nothing to tell of it.
    pub(crate) async fn run(
        &self,
        invocation: Invocation,
        limits: Limits,
        stop: &CancellationToken,
    ) -> Result<Finished, NotRun> {
        self.begin(invocation, stop).await?.finish(limits, stop).await
    }

    /// Starts a program, as soon as this process can.
    ///
    /// # Errors
    /// If `stop` comes first, or the system does not take the arguments.
    pub(crate) async fn begin(&self, invocation: Invocation, stop: &CancellationToken) -> Result<Program<'_>, NotRun> {
        loop {
            let turn = self.turn(stop).await.ok_or(NotRun::Stopped)?;
            match self.spawner.spawn(&invocation).await {
                Ok(child) => {
                    let (input, _run) = (invocation.stdin, turn.started());
                    return Ok(Program { child, input, _run });
                }
                Err(error) if is_of_arguments(&error) => return Err(NotRun::Refused(error)),
                Err(error) => turn.failed(cannot_start(&invocation.program, &error)),
            }
        }
    }

    async fn turn(&self, stop: &CancellationToken) -> Option<Turn<'_>> {
        tokio::select! {
            biased;
            turn = self.readiness.turn() => Some(turn),
            () = stop.cancelled() => None,
        }
    }
}

/// A program that was started. Dropping it kills the program.
pub(crate) struct Program<'r> {
    child: Child,
    input: Option<Bytes>,
    _run: Run<'r>,
}

impl Program<'_> {
    /// Waits until it ends, takes too long, or `stop` asks it to.
    ///
    /// # Errors
    /// If its end cannot be told.
    pub(crate) async fn finish(self, limits: Limits, stop: &CancellationToken) -> Result<Finished, NotRun> {
        let Self { mut child, input, _run } = self;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut out = Capture::new(Part::Beginning, limits.capture);
        let mut err = Capture::new(Part::End, limits.capture);
        let end = {
            let exchange = async { tokio::join!(write(stdin, input), out.read(stdout), err.read(stderr)) };
            let ended = end_of(&mut child, limits, stop);
            both(ended, exchange).await.map_err(NotRun::Lost)?
        };
        Ok(Finished { end, stdout: out.finish(), stderr: err.finish() })
    }
}

fn cannot_start(program: &OsStr, error: &io::Error) -> String {
    let is_interpreter_missing = error.kind() == ErrorKind::NotFound && Path::new(program).exists();
    let why = if is_interpreter_missing { " (the interpreter in its first line is missing)" } else { "" };
    format!("cannot start `{}`: {error}{why}", program.display())
}

/// Everything else that keeps a program from starting is a fault of this process or of the program.
fn is_of_arguments(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::ArgumentListTooLong)
}

/// Waits for the end of a program while its pipes are served, and then a little longer for the rest
/// of its output.
async fn both<T>(ended: impl Future<Output = io::Result<End>>, exchange: impl Future<Output = T>) -> io::Result<End> {
    tokio::pin!(ended, exchange);
    tokio::select! {
        end = &mut ended => {
            let _ = tokio::time::timeout(PIPE_DRAIN, exchange).await;
            end
        }
        _ = &mut exchange => ended.await,
    }
}

/// A program need not read what it is given.
async fn write(stdin: Option<pipe::Sender>, input: Option<Bytes>) {
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        let _ = stdin.write_all(&input).await;
    }
}

async fn end_of(child: &mut Child, limits: Limits, stop: &CancellationToken) -> io::Result<End> {
    let why = tokio::select! {
        end = child.wait() => return end,
        () = elapsed(limits.timeout) => End::TimedOut,
        () = stop.cancelled() => End::Stopped,
    };
    terminate(child, limits.grace).await?;
    Ok(why)
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// Asks a program and all that it started to end, and kills what is left of them after the grace.
async fn terminate(child: &mut Child, grace: Duration) -> io::Result<()> {
    child.terminate();
    if let Ok(end) = tokio::time::timeout(grace, child.wait()).await {
        return end.map(drop);
    }
    child.kill();
    child.wait().await.map(drop)
}
