//! Ctrl-C, and the signal with which service managers stop programs.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for requests to stop. While one of these exists, such a request does not end the program by itself.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Takes the signals over.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next request to stop.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
