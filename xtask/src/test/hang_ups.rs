//! A check that processes which the tests start can be told that their terminal was closed.

use std::fs;

use anyhow::{Result, ensure};

/// The bit of SIGHUP in a mask of signals.
const HANG_UP: u64 = 1;

/// Returns an error if SIGHUP is ignored. Every process that the tests start would inherit that,
/// and each test of a closed terminal would wait until its limit. Where the system does not report
/// it, that is no error.
pub(super) fn check() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ensure!(
        !ignores_hang_ups(&status),
        "SIGHUP is ignored, so the tests of closed terminals would never end; run the tests without `nohup`, for \
         example with `setsid`"
    );
    Ok(())
}

/// Returns true if SIGHUP is among the ignored signals of a status as in `/proc/PID/status`.
fn ignores_hang_ups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANG_UP != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hang_up_is_found() {
        assert!(ignores_hang_ups("Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
    }

    #[test]
    fn other_ignored_signals_are_allowed() {
        assert!(!ignores_hang_ups("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"));
    }

    #[test]
    fn a_system_without_such_a_report_is_no_error() {
        assert!(!ignores_hang_ups(""));
    }
}
