//! Processes that became children of this one because their parents ended.
//!
//! The first process of a container inherits every orphan, and one that has ended stays in the
//! table of processes until its parent has asked how it ended. What commands leave behind goes to
//! their supervisor; a worker inherits it only when something has ended that.

use std::io;

/// Inherits what a supervisor leaves when something ends it, and asks for the ends of orphans from
/// now on.
#[cfg(target_os = "linux")]
pub(super) fn reap_from_now_on() -> io::Result<()> {
    use rustix::process::{getpid, set_child_subreaper};
    use tokio::signal::unix::{SignalKind, signal};

    // A kernel that cannot do this leaves such orphans to the first process.
    let _ = set_child_subreaper(Some(getpid()));
    let mut ends = signal(SignalKind::child())?;
    tokio::spawn(async move {
        while ends.recv().await.is_some() {
            reap();
        }
    });
    Ok(())
}

/// Asks how the children ended. One that runs still is left as it is.
#[cfg(target_os = "linux")]
fn reap() {
    use rustix::process::{WaitOptions, wait};

    while let Ok(Some((process, _))) = wait(WaitOptions::NOHANG) {
        tracing::debug!(process = process.as_raw_nonzero().get(), "reaped a child");
    }
}

/// Kills what a supervisor that is gone has left to this process, and waits until that is gone,
/// too. What commands left behind that do not run any more is left alone.
#[cfg(target_os = "linux")]
pub(super) fn end_all(supervisor: u32, is_running: &dyn Fn(u64) -> bool) {
    use super::supervisor::{MARK, jobs::is_left_behind, tree};

    let own = rustix::process::getpid();
    let is_of_command = |child: &i32| {
        // The first process inherits orphans of others, too.
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
