//! Processes that became children of this one because their parents ended.
//!
//! The first process of a container inherits every orphan. An orphan that has ended stays in the
//! process table until its parent reaps it. The supervisor inherits what commands leave behind. A
//! worker inherits it only if something has ended the supervisor.

use std::io;

/// Makes this process inherit the orphans of a supervisor that something ends. Reaps orphans from
/// now on.
#[cfg(target_os = "linux")]
pub(super) fn reap_from_now_on() -> io::Result<()> {
    use rustix::process::{getpid, set_child_subreaper};
    use tokio::signal::unix::{SignalKind, signal};

    // A kernel without subreapers leaves such orphans to the first process.
    let _ = set_child_subreaper(Some(getpid()));
    let mut ends = signal(SignalKind::child())?;
    tokio::spawn(async move {
        while ends.recv().await.is_some() {
            reap();
        }
    });
    Ok(())
}

/// Reaps the children that have ended. Does not wait for running ones.
#[cfg(target_os = "linux")]
fn reap() {
    use rustix::process::{WaitOptions, wait};

    while let Ok(Some((process, _))) = wait(WaitOptions::NOHANG) {
        tracing::debug!(process = process.as_raw_nonzero().get(), "reaped a child");
    }
}

/// Kills what a supervisor that is gone has left to this process, and waits until all of it is
/// gone. Spares processes that commands left behind before they ended.
#[cfg(target_os = "linux")]
pub(super) fn end_all(supervisor: u32, is_running: &dyn Fn(u64) -> bool) {
    use super::supervisor::{MARK, jobs::is_left_behind, tree};

    let own = rustix::process::getpid();
    let is_of_command = |child: &i32| {
        // The first process also inherits unrelated orphans.
        (!own.is_init() || tree::variable(*child, MARK).is_some()) && !is_left_behind(*child, supervisor, is_running)
    };
    tree::end(|| {
        reap();
        let children = tree::children(own.as_raw_nonzero().get());
        tree::with_descendants(children.into_iter().filter(is_of_command).collect())
    });
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reap_from_now_on() -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_all(_supervisor: u32, _is_running: &dyn Fn(u64) -> bool) {}
