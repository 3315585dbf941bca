//! Requests to stop: Ctrl-C, SIGTERM from service managers, and SIGHUP from a closed terminal.
//!
//! Every command that runs work treats them alike. The first request stops it in order: what runs
//! may end or is asked to, and what is done is kept. The second ends the rest at once. `onward
//! work` exits with success after a SIGTERM, because a service manager takes any other code for a
//! failure.

use std::fs;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A listener for requests to stop. From the first listener on, such a request does not end the
/// program by itself, also after the listener is dropped: the runtime never removes a signal
/// handler.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// Absent if the program was started to outlive its terminal.
    hang_up: Option<Signal>,
    /// True if the last request was SIGTERM.
    is_terminated: bool,
}

impl Interrupts {
    /// Installs the signal handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        let hang_up = SignalKind::hangup();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // A handler would undo what `nohup` has set.
            hang_up: if is_ignored(hang_up) { None } else { Some(signal(hang_up)?) },
            is_terminated: false,
        })
    }

    /// Installs the signal handlers, except that of SIGHUP, which means something else to this
    /// command.
    #[cfg(feature = "serve")]
    pub(crate) fn listen_without_hang_up() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up: None, is_terminated: false })
    }

    /// Waits for the next request to stop.
    pub(crate) async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        self.is_terminated = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => true,
            _ = hang_up => false,
        };
    }

    /// Returns true if the last request was SIGTERM: a service manager stops the program, which is
    /// no fault.
    pub(crate) fn is_terminated(&self) -> bool {
        self.is_terminated
    }
}

/// Returns true if this process was started with the signal ignored. Returns false if the system
/// does not provide that information.
fn is_ignored(signal: SignalKind) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal.as_raw_value()))
}

/// Returns true if a process ignores the signal, according to the kernel's description of the
/// process.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask.checked_shr(signal.unsigned_abs() - 1).is_some_and(|rest| rest & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_where_its_bit_is_set() {
        let status = "Name:\tonward\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(ignores(status, 1) && ignores(status, 13) && !ignores(status, 2));
    }

    #[test]
    fn nothing_is_ignored_where_the_system_reports_nothing() {
        assert!(!ignores("Name:\tonward\n", 1));
    }
}
