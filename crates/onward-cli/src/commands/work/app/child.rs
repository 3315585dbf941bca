//! A worker program as a child process with a socket.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::command_line::CommandLine;

/// Moves the socket from stdin to descriptor 3, where the program expects it, and becomes the
/// program. The standard library can pass a socket to a child only as one of its three streams.
const SOCKET_TO_3: &str = "exec 3<&0 </dev/null; exec \"$@\"";

/// The time that a program has to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// A worker program that runs.
#[derive(Debug)]
pub(super) struct AppChild {
    child: Child,
    /// A handle of our end of the socket, to end the session when the program has ended. A process
    /// that the program left behind may keep the other end open.
    socket: StdStream,
}

/// The streams of a worker program.
#[derive(Debug)]
pub(super) struct Streams {
    /// The connection to its worker.
    pub(super) connection: UnixStream,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// Starts a worker program as the leader of a process group: Ctrl-C on a terminal reaches this
/// process alone, which lets the program finish its tasks.
pub(super) fn start(line: &CommandLine, slots: Option<u32>) -> io::Result<(AppChild, Streams)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let socket = ours.try_clone()?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SOCKET_TO_3, "sh"]).args(&line.words);
    command.env("ONWARD_FD", "3").env("ONWARD_GATEWAY", "child");
    command.envs(slots.map(|slots| ("ONWARD_SLOTS", slots.to_string())));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let streams =
        Streams { connection: UnixStream::from_std(ours)?, stdout: child.stdout.take(), stderr: child.stderr.take() };
    Ok((AppChild { child, socket }, streams))
}

impl AppChild {
    /// Waits for the end of the program, and then ends its connection. Cancel-safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        // The other end may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
        status
    }

    /// Ends the program: it has `grace` to end by itself, then SIGTERM, and at last SIGKILL.
    pub(super) async fn end(mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Ok(status) = tokio::time::timeout(grace, self.child.wait()).await {
            return status;
        }
        self.signal(Signal::TERM);
        if let Ok(status) = tokio::time::timeout(TERM_GRACE, self.child.wait()).await {
            return status;
        }
        self.signal(Signal::KILL);
        self.child.wait().await
    }

    /// Kills the program with its process group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // Without an id the program has been reaped, and its number may belong to another process.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // The group may be gone.
            let _ = kill_process_group(id, signal);
        }
    }
}
