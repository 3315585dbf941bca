//! The supervisor process.
//!
//! One thread reads requests and starts commands. Another waits for their ends. Both reply to the
//! worker.

use std::fs::File;
use std::io::{self, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Resource, Rlimit, WaitId, WaitIdOptions, WaitOptions, WaitStatus, setrlimit, wait, waitid};

use super::jobs::{Jobs, mark};
use super::names::{ARGUMENT, MARK, NAME};
use super::wire::{JobId, Reply, Request, RequestBuffer, Start};
use crate::process::Interrupts;

/// Octets that are read from the worker at a time.
const CHUNK: usize = 64 * 1024;

/// Descriptors that can arrive with them. A command has three.
const DESCRIPTORS: usize = 16;

/// Runs as a supervisor until the worker is gone, if this process was started as one. Returns
/// `None` otherwise. Must be called before anything else.
pub(crate) fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let mut limit = || arguments.next()?.to_str()?.parse().ok();
    let served = serve(Rlimit { current: limit(), maximum: limit() });
    Some(if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(open_files: Rlimit) -> io::Result<()> {
    // Commands inherit the limits with which the worker was started. The system always accepts
    // these limits, because the worker already had them.
    let _ = setrlimit(Resource::Nofile, open_files);
    become_reaper();
    // The worker handles signals that go to all processes of a service. The handlers stay in place
    // for the life of this process, and a command does not inherit them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    let _interrupts = Interrupts::listen()?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let server =
        Arc::new(Server { replies: File::from(socket.try_clone()?), jobs: Mutex::default(), started: Condvar::new() });
    let waiting = Arc::clone(&server);
    std::thread::Builder::new().spawn(move || waiting.take_ends())?;
    let served = server.take_requests(&socket);
    server.lock().end_all();
    served
}

#[cfg(target_os = "linux")]
fn become_reaper() {
    // The name is for people. A kernel without subreapers leaves orphans to the first process.
    let _ = std::fs::write("/proc/self/comm", NAME);
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn become_reaper() {}

#[derive(Debug)]
struct Server {
    replies: File,
    /// Held while a command is started and while ends are taken from the system, so that the worker
    /// is notified of the start before the end.
    jobs: Mutex<Jobs>,
    started: Condvar,
}

impl Server {
    /// Executes requests until the worker is gone.
    fn take_requests(&self, socket: &OwnedFd) -> io::Result<()> {
        let (mut requests, mut chunk) = (RequestBuffer::default(), vec![0; CHUNK]);
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let mut into = [IoSliceMut::new(&mut chunk)];
            let message = match recvmsg(socket, &mut into, &mut beside, RECEIVE) {
                Err(rustix::io::Errno::INTR) => continue,
                message => message?,
            };
            let rights = beside.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            });
            requests.descriptors.extend(rights.flatten().inspect(keep_from_commands));
            if message.bytes == 0 {
                return Ok(());
            }
            requests.bytes.extend(&chunk[..message.bytes]);
            while let Some(request) = requests.next() {
                self.carry_out(request)?;
            }
        }
    }

    fn carry_out(&self, request: Request) -> io::Result<()> {
        let mut jobs = self.lock();
        match request {
            Request::Terminate(job) => jobs.terminate(job),
            Request::Kill(job) => jobs.kill(job),
            Request::Start(job, start) => match spawn(job, start) {
                Ok(leader) => {
                    jobs.started(leader, job);
                    self.reply(Reply::Started(job))?;
                    // Wakes the other thread, which sleeps while there is no child.
                    self.started.notify_one();
                }
                Err(error) => self.reply(Reply::NotStarted(job, error.raw_os_error().unwrap_or_default()))?,
            },
        }
        Ok(())
    }

    /// Takes the ends of commands, and of what they left behind, from the system.
    fn take_ends(&self) {
        loop {
            // This wait does not reap. Ends are taken under the lock.
            let is_any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let mut jobs = self.lock();
            while let Ok(Some((process, status))) = wait_for_any() {
                if let Some(job) = jobs.ended(process) {
                    // A worker that is gone needs no reply.
                    let _ = self.reply(end_of(job, status));
                }
            }
            if is_any.is_err() && jobs.is_empty() {
                // No child is left, and only a start creates one.
                // The lock is held from the check to the wait, and a start notifies under it, so no
                // start is missed.
                drop(self.started.wait(jobs));
            }
        }
    }

    fn reply(&self, reply: Reply) -> io::Result<()> {
        (&self.replies).write_all(&reply.to_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Linux marks descriptors as they arrive, so that no command inherits them.
#[cfg(target_os = "linux")]
const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE: RecvFlags = RecvFlags::empty();

#[cfg(target_os = "linux")]
fn keep_from_commands(_descriptor: &OwnedFd) {}

#[cfg(not(target_os = "linux"))]
fn keep_from_commands(descriptor: &OwnedFd) {
    let _ = rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC);
}

/// Returns the next child that has ended; `None` if all children are still running.
fn wait_for_any() -> rustix::io::Result<Option<(i32, WaitStatus)>> {
    let ended = wait(WaitOptions::NOHANG)?;
    Ok(ended.map(|(process, status)| (process.as_raw_nonzero().get(), status)))
}

fn end_of(job: JobId, status: WaitStatus) -> Reply {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Reply::Exited(job, status),
        (None, signal) => Reply::Killed(job, signal.unwrap_or_default()),
    }
}

/// Starts a command as the leader of a process group. Between fork and exec only the system's own
/// spawn does work, which copies no memory of this process.
fn spawn(job: JobId, start: Start) -> io::Result<i32> {
    let mut streams = start.streams.into_iter().rev().map(Stdio::from);
    let (stderr, stdout, stdin) = (streams.next(), streams.next(), streams.next());
    let mut words = start.words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .envs(start.environment)
        .env(MARK, mark(job))
        .stdin(stdin.unwrap_or_else(Stdio::null))
        .stdout(stdout.unwrap_or_else(Stdio::null))
        .stderr(stderr.unwrap_or_else(Stdio::null))
        .process_group(0);
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}
