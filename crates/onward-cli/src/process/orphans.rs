//! Processes that commands left behind, where these become children of this one.
//!
//! The first process of a container (and a process that made itself a "subreaper") inherits them, and one that has ended stays in the table of
//! processes until its parent has asked how it ended.

use std::io;
use std::sync::Arc;

use super::group::Groups;

/// Asks for the ends of orphans from now on, if this process inherits them. The ends of commands are left to the runner.
#[cfg(target_os = "linux")]
pub(super) fn reap_from_now_on(groups: &Arc<Groups>) -> io::Result<()> {
    use rustix::process::{child_subreaper, getpid};
    use tokio::signal::unix::{SignalKind, signal};

    if !getpid().is_init() && !matches!(child_subreaper(), Ok(Some(_))) {
        return Ok(());
    }
    let (mut ends, groups) = (signal(SignalKind::child())?, Arc::downgrade(groups));
    tokio::spawn(async move {
        while ends.recv().await.is_some() {
            let Some(groups) = groups.upgrade() else { return };
            // A start that is under way is waited for, which may take a while.
            let _ = tokio::task::spawn_blocking(move || groups.for_others(reap)).await;
        }
    });
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reap_from_now_on(_groups: &Arc<Groups>) -> io::Result<()> {
    Ok(())
}

/// Asks how the children ended, but for those that `is_command` knows, whose ends the runner waits for.
#[cfg(target_os = "linux")]
fn reap(is_command: &dyn Fn(i32) -> bool) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    let orphans = children().into_iter().filter(|child| !is_command(*child)).filter_map(Pid::from_raw);
    for orphan in orphans {
        // One that runs still is left as it is.
        if waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_ok_and(|end| end.is_some()) {
            tracing::debug!(process = orphan.as_raw_nonzero().get(), "reaped a process that a command left behind");
        }
    }
}

/// The children of this process: as the kernel lists them, else by a look at every process.
#[cfg(target_os = "linux")]
fn children() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists: Option<Vec<String>> =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).ok()).collect();
    match lists {
        Some(lists) if !lists.is_empty() => {
            lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
        }
        _ => children_among_all(),
    }
}

#[cfg(target_os = "linux")]
fn children_among_all() -> Vec<i32> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |process: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // Behind the name, which may have anything in it: the state, and the parent.
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(own.as_str())
    };
    processes.filter(is_child).filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_a_child() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let found = [children(), children_among_all()].map(|children| children.contains(&id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [true, true]);
    }
}
