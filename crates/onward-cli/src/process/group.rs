//! Process groups, to reach a program and all that it started.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The groups that run now.
#[derive(Debug, Default)]
pub(super) struct Groups {
    running: Mutex<BTreeSet<i32>>,
}

impl Groups {
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
    /// The group of a program that was started as the leader of one.
    pub(super) fn of(child: &Child, groups: &Arc<Groups>) -> Self {
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
