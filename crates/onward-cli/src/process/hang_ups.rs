//! SIGHUP of a server: a request to read the settings again, or the end of its terminal.

use std::fs::File;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A listener for SIGHUP.
#[derive(Debug)]
pub(crate) struct HangUps {
    signal: Signal,
    /// True if the program was started with a terminal.
    has_terminal: bool,
}

/// The meaning of a SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// Read the settings again.
    Reload,
    /// The terminal of the program is gone.
    TerminalGone,
}

impl HangUps {
    /// Installs the signal handler.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { signal: signal(SignalKind::hangup())?, has_terminal: has_terminal() })
    }

    /// Waits for the next SIGHUP.
    ///
    /// The system sends the same signal when a terminal is closed. Then the program has no terminal
    /// any more, which distinguishes the two: `/dev/tty` can be opened only while there is one.
    pub(crate) async fn next(&mut self) -> HangUp {
        if self.signal.recv().await.is_none() {
            return std::future::pending().await;
        }
        if self.has_terminal && !has_terminal() { HangUp::TerminalGone } else { HangUp::Reload }
    }
}

fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
