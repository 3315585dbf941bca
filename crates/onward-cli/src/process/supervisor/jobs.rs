//! The commands that a supervisor runs, and their descendants.

use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process_group};

use super::names::MARK;
#[cfg(target_os = "linux")]
use super::tree;
use super::wire::JobId;

/// Running commands by process id. The end of a child must be taken from the system only under the
/// lock on these. Then the process id of a command in this map belongs to no other process.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<i32, Job>);

/// A running command. It leads a process group.
#[derive(Debug)]
struct Job {
    id: JobId,
    /// True if it was asked to end, with all its descendants.
    is_stopping: bool,
    /// True if the system no longer has a process with this id.
    is_over: bool,
    /// Descendants that it had when it was asked to end.
    #[cfg(target_os = "linux")]
    known: BTreeSet<i32>,
}

/// Returns the mark of a job in the environment of its command.
pub(super) fn mark(job: JobId) -> String {
    format!("{}.{job}", std::process::id())
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn started(&mut self, leader: i32, id: JobId) {
        let job = Job {
            id,
            is_stopping: false,
            is_over: false,
            #[cfg(target_os = "linux")]
            known: BTreeSet::new(),
        };
        self.0.insert(leader, job);
    }

    /// Sends SIGTERM to a command and all its descendants.
    pub(super) fn terminate(&mut self, id: JobId) {
        let Some(leader) = self.leader(id) else { return };
        signal_group(leader, Signal::TERM);
        #[cfg(target_os = "linux")]
        {
            let strays = self.strays(leader);
            tree::signal(&strays.iter().copied().filter(|stray| !is_in_group(*stray, leader)).collect(), Signal::TERM);
        }
        self.note_stopping(leader);
    }

    /// Kills a command and all its descendants.
    pub(super) fn kill(&mut self, id: JobId) {
        let Some(leader) = self.leader(id) else { return };
        self.note_stopping(leader);
        self.end_tree(leader);
        signal_group(leader, Signal::KILL);
    }

    /// Removes a command whose end was taken from the system. If the command was asked to end,
    /// kills what is left of its descendants.
    pub(super) fn ended(&mut self, leader: i32) -> Option<JobId> {
        let job = self.0.get_mut(&leader)?;
        job.is_over = true;
        if job.is_stopping {
            self.end_tree(leader);
        }
        self.0.remove(&leader).map(|job| job.id)
    }

    fn leader(&self, id: JobId) -> Option<i32> {
        self.0.iter().find(|(_, job)| job.id == id).map(|(leader, _)| *leader)
    }
}

#[cfg(target_os = "linux")]
impl Jobs {
    fn note_stopping(&mut self, leader: i32) {
        let known = self.strays(leader);
        if let Some(job) = self.0.get_mut(&leader) {
            job.is_stopping = true;
            job.known.extend(known);
        }
    }

    fn end_tree(&mut self, leader: i32) {
        tree::end(|| {
            let strays = self.strays(leader);
            if let Some(job) = self.0.get_mut(&leader) {
                job.known.extend(&strays);
            }
            strays
        });
    }

    /// Returns the process of a command and all its descendants, without those that have ended.
    fn strays(&self, leader: i32) -> BTreeSet<i32> {
        let Some(job) = self.0.get(&leader) else { return BTreeSet::new() };
        let mark = mark(job.id);
        let is_of_job = |orphan: i32| {
            let knows = |id: i32| id == leader || job.known.contains(&id);
            knows(orphan)
                || tree::Process::of(orphan).is_some_and(|process| knows(process.group) || knows(process.session))
                || tree::variable(orphan, MARK).is_some_and(|found| found == mark)
        };
        let orphans = self.orphans().into_iter().filter(|orphan| is_of_job(*orphan));
        let command = Some(leader).filter(|_| !job.is_over);
        tree::with_descendants(command.into_iter().chain(orphans).collect())
    }

    /// Returns the children of this process that are not commands, which are orphans.
    fn orphans(&self) -> Vec<i32> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        tree::children(own).into_iter().filter(|child| !self.0.contains_key(child)).collect()
    }

    /// Kills every command, its descendants, and all orphans of unknown origin. Spares processes
    /// that commands left behind before they ended.
    pub(super) fn end_all(&mut self) {
        if self.is_empty() {
            return;
        }
        tree::end(|| {
            let running: BTreeSet<JobId> = self.0.values().map(|job| job.id).collect();
            let is_left_behind =
                |orphan: &i32| is_left_behind(*orphan, std::process::id(), &|job| running.contains(&job));
            let orphans = self.orphans().into_iter().filter(|orphan| !is_left_behind(orphan));
            tree::with_descendants(self.0.keys().copied().chain(orphans).collect())
        });
    }
}

#[cfg(not(target_os = "linux"))]
impl Jobs {
    fn note_stopping(&mut self, leader: i32) {
        self.0.entry(leader).and_modify(|job| job.is_stopping = true);
    }

    fn end_tree(&mut self, leader: i32) {
        signal_group(leader, Signal::KILL);
    }

    /// Kills the group of every command.
    pub(super) fn end_all(&mut self) {
        self.0.keys().for_each(|leader| signal_group(*leader, Signal::KILL));
    }
}

/// Returns true if a command of this supervisor left the process behind and has ended since.
#[cfg(target_os = "linux")]
pub(in crate::process) fn is_left_behind(orphan: i32, supervisor: u32, is_running: &dyn Fn(JobId) -> bool) -> bool {
    let mark = tree::variable(orphan, MARK).unwrap_or_default();
    let Some((of, job)) = mark.split_once('.') else { return false };
    of == supervisor.to_string() && job.parse().is_ok_and(|job| !is_running(job))
}

#[cfg(target_os = "linux")]
fn is_in_group(process: i32, leader: i32) -> bool {
    tree::Process::of(process).is_none_or(|process| process.group == leader)
}

/// Sends a signal to a process group. Errors are ignored, because a group that is gone needs no
/// signal.
fn signal_group(leader: i32, what: Signal) {
    if let Some(leader) = Pid::from_raw(leader) {
        let _ = kill_process_group(leader, what);
    }
}
