//! Process groups, to reach a program and all that it started.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The groups that run now.
#[derive(Debug, Default)]
pub(super) struct Groups {
    running: Mutex<BTreeSet<i32>>,
    /// Held while a program is started: until it is in `running`, it looks like an orphan.
    starting: Mutex<()>,
}

impl Groups {
    /// Starts the leader of a group.
    pub(super) fn start(self: &Arc<Self>, start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Group)> {
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let child = start()?;
        let group = Group::of(&child, self);
        Ok((child, group))
    }

    /// Calls a function that must leave the leaders of groups alone, with a way to tell them. No program is started meanwhile.
    #[cfg(target_os = "linux")]
    pub(super) fn for_others(&self, act: impl FnOnce(&dyn Fn(i32) -> bool)) {
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        act(&|process| self.lock().contains(&process));
    }

    /// Kills every group at once.
    pub(super) fn kill_all(&self) {
        for leader in self.lock().iter() {
            signal(*leader, Signal::KILL);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<i32>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The group that a program leads. Unless the program is known to have ended, dropping this kills the group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<i32>,
    groups: Arc<Groups>,
    ended: bool,
}

impl Group {
    fn of(child: &Child, groups: &Arc<Groups>) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        groups.lock().extend(leader);
        Self { leader, groups: Arc::clone(groups), ended: false }
    }

    /// Sends a signal to the program and all that it started.
    pub(super) fn signal(&self, what: Signal) {
        if let Some(leader) = self.leader {
            signal(leader, what);
        }
    }

    /// Notes that the program has ended; what it left running in the background is left alone.
    pub(super) fn ended(&mut self) {
        self.ended = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(Signal::KILL);
        }
        if let Some(leader) = self.leader {
            self.groups.lock().remove(&leader);
        }
    }
}

/// A group that is gone already needs no signal, so an error is no matter.
fn signal(leader: i32, what: Signal) {
    if let Some(leader) = Pid::from_raw(leader) {
        let _ = kill_process_group(leader, what);
    }
}
