//! Running one program to its end.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use onward_store::OutputStream;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::capture::{Capture, Captured, Part};
use super::invocation::Invocation;
use super::orphans;
use super::readiness::{Readiness, Run, Turn};
use super::supervisor::{Child, Spawner};

/// The time for which the output of an ended program is awaited while one of its descendants holds
/// the pipe open.
const PIPE_DRAIN: Duration = Duration::from_secs(1);

/// The limits of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The bytes that are kept of its stdout, and also of its stderr.
    pub(crate) capture: usize,
    /// The longest time that it may run.
    pub(crate) timeout: Option<Duration>,
    /// The time that it has to end by itself, after SIGTERM, before it is killed.
    pub(crate) grace: Duration,
}

/// The way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that this process did not send.
    Killed(i32),
    /// Stopped because it exceeded its timeout.
    TimedOut,
    /// Stopped on request. It ended by itself or was killed.
    Stopped,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    /// The way in which it ended.
    pub(crate) end: End,
    /// The beginning of its stdout.
    pub(crate) stdout: Captured,
    /// The end of its stderr.
    pub(crate) stderr: Captured,
}

/// A reason why no end of a program can be reported.
#[derive(Debug)]
pub(crate) enum NotRun {
    /// It was asked to stop before this process could start it.
    Stopped,
    /// The system rejects its arguments.
    Refused(io::Error),
    /// It was started, but the way in which it ended is unknown.
    Lost(io::Error),
}

/// A runner of programs.
#[derive(Debug)]
pub(crate) struct Runner {
    spawner: Spawner,
    readiness: Readiness,
}

impl Runner {
    /// Creates a runner on the current runtime. Programs that still run when it is dropped are
    /// killed. `notice` receives a line about each fault of this process that keeps it from
    /// starting programs.
    pub(crate) fn start(notice: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        orphans::reap_from_now_on()?;
        Ok(Self { spawner: Spawner::start()?, readiness: Readiness::new(notice) })
    }

    /// Kills every running program with all its descendants, and waits until they are gone. No
    /// program can be started afterwards.
    pub(crate) fn kill_all(&self) {
        self.spawner.kill_all();
    }

    /// Waits until the runner gives up because, for some seconds, nothing has run and no program
    /// could be started. Returns the reason.
    pub(crate) async fn given_up(&self) -> String {
        self.readiness.given_up().await
    }

    /// Gives up at once, for a reason that waiting does not remove.
    pub(crate) fn give_up(&self, message: String) {
        self.readiness.give_up(message);
    }

    /// Starts no program from now on, and waits until none runs.
    pub(crate) async fn wind_down(&self) {
        self.readiness.wind_down().await;
    }

    /// Makes something that a program needs of this process. Retries `make` until it succeeds.
    /// Returns `None` if `stop` comes first.
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

    /// Runs a program until it ends, exceeds its timeout, or `stop` is cancelled. Waits while this
    /// process cannot start it. Dropping the future kills the program.
    ///
    /// # Errors
    /// Returns an error if no end of the program can be reported.
    pub(crate) async fn run(
        &self,
        invocation: Invocation,
        limits: Limits,
        stop: &CancellationToken,
    ) -> Result<Finished, NotRun> {
        self.begin(invocation, stop).await?.finish(limits, stop, |_, _| ()).await
    }

    /// Starts a program as soon as this process can.
    ///
    /// # Errors
    /// Returns an error if `stop` comes first, or the system rejects the arguments.
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
    /// Waits until the program ends, exceeds its timeout, or `stop` is cancelled. Passes its output
    /// to `tap` as it comes, including what is not kept.
    ///
    /// # Errors
    /// Returns an error if the way in which it ended is unknown.
    pub(crate) async fn finish(
        self,
        limits: Limits,
        stop: &CancellationToken,
        tap: impl Fn(OutputStream, &[u8]),
    ) -> Result<Finished, NotRun> {
        let Self { mut child, input, _run } = self;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut out = Capture::new(Part::Beginning, limits.capture);
        let mut err = Capture::new(Part::End, limits.capture);
        let end = {
            let read_out = out.read(stdout, |bytes| tap(OutputStream::Stdout, bytes));
            let read_err = err.read(stderr, |bytes| tap(OutputStream::Stderr, bytes));
            let exchange = async { tokio::join!(write(stdin, input), read_out, read_err) };
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

/// Returns true if the system rejects the arguments. All other errors are faults of this process or
/// of the program.
fn is_of_arguments(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::ArgumentListTooLong)
}

/// Waits for the end of a program while its pipes are served, and then at most [`PIPE_DRAIN`] for
/// the rest of its output.
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

/// Writes the input to a program. Errors are ignored, because a program need not read its input.
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

/// Sends SIGTERM to a program and all its descendants. After the grace it kills what is left of
/// them.
async fn terminate(child: &mut Child, grace: Duration) -> io::Result<()> {
    child.terminate();
    if let Ok(end) = tokio::time::timeout(grace, child.wait()).await {
        return end.map(drop);
    }
    child.kill();
    child.wait().await.map(drop)
}
