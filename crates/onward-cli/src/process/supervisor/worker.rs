//! The worker's side: starting the supervisor, and sending it requests.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::{self, IoSlice, PipeWriter, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown};
use rustix::process::Rlimit;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use super::names::{ARGUMENT, NAME};
use super::wire::{self, JobId, REPLY, Reply};
use crate::process::runner::End;
use crate::process::{Invocation, open_files, orphans};

/// Input of at most this size is written before the command starts. The system accepts that much
/// into any pipe without blocking.
const AT_ONCE: usize = 4096;

/// The most octets of replies that are read at a time.
const CHUNK: usize = 64 * REPLY;

/// A client that starts commands through a supervisor, and replaces a supervisor that something has
/// ended.
#[derive(Debug)]
pub(in crate::process) struct Spawner {
    current: Mutex<Arc<Supervisor>>,
}

impl Spawner {
    /// Starts a supervisor. Must be called within a runtime.
    pub(in crate::process) fn start() -> io::Result<Self> {
        Ok(Self { current: Mutex::new(Supervisor::start()?) })
    }

    /// Starts a program as the leader of a process group, with pipes for its streams. Dropping the
    /// future kills the program.
    pub(in crate::process) async fn spawn(&self, invocation: &Invocation) -> io::Result<Child> {
        self.supervisor()?.spawn(invocation).await
    }

    /// Kills every command with all its descendants, and waits until they are gone. No command can
    /// be started afterwards.
    pub(in crate::process) fn kill_all(&self) {
        self.lock().close();
    }

    fn supervisor(&self) -> io::Result<Arc<Supervisor>> {
        let mut current = self.lock();
        if current.is_gone() {
            *current = Supervisor::start()?;
        }
        Ok(Arc::clone(&current))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Supervisor>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running supervisor. It ends when this is dropped.
#[derive(Debug)]
struct Supervisor {
    requests: mpsc::UnboundedSender<Frame>,
    socket: Arc<UnixStream>,
    jobs: Arc<Mutex<Jobs>>,
    process: Arc<Process>,
    next: AtomicU64,
}

/// An encoded request, with the descriptors that accompany it.
#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// Commands that have not ended, by number.
#[derive(Debug, Default)]
struct Jobs {
    waiting: HashMap<JobId, Waiting>,
    /// True if this process is ending the supervisor.
    is_closing: bool,
    is_gone: bool,
}

#[derive(Debug)]
struct Waiting {
    started: Option<oneshot::Sender<io::Result<()>>>,
    ended: oneshot::Sender<End>,
}

impl Supervisor {
    fn start() -> io::Result<Arc<Self>> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let process = command(theirs.into()).spawn()?;
        // Unbounded, but short: each command has at most a start and a few signals in it, and
        // `--jobs` bounds the number of commands at once.
        let (requests, waiting) = mpsc::unbounded_channel();
        let (socket, jobs) = (Arc::new(UnixStream::from_std(ours)?), Arc::default());
        tokio::spawn(write(Arc::clone(&socket), waiting));
        let process = Arc::new(Process { id: process.id(), child: Mutex::new(process) });
        tokio::spawn(serve(Arc::clone(&socket), Arc::clone(&jobs), Arc::clone(&process)));
        Ok(Arc::new(Self { requests, socket, jobs, process, next: AtomicU64::new(1) }))
    }

    async fn spawn(&self, invocation: &Invocation) -> io::Result<Child> {
        let (stdin, their_stdin) = input(invocation.stdin.as_ref())?;
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let stdout = pipe::Receiver::from_owned_fd(stdout.into())?;
        let stderr = pipe::Receiver::from_owned_fd(stderr.into())?;
        let descriptors: Vec<OwnedFd> =
            their_stdin.into_iter().chain([their_stdout.into(), their_stderr.into()]).collect();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let bytes = wire::start(id, invocation, u8::try_from(descriptors.len()).unwrap_or_default())?;
        let (started, is_started) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        // Registered before the request is sent, so that the reply finds the job.
        lock(&self.jobs).add(id, Waiting { started: Some(started), ended })?;
        self.requests.send(Frame { bytes, descriptors }).map_err(|_| gone())?;
        let job = Job { id, requests: self.requests.clone(), is_over: false };
        // Created before the wait, so that dropping this future kills the command.
        let child = Child { job, end, stdin, stdout: Some(stdout), stderr: Some(stderr) };
        is_started.await.map_err(|_| gone())??;
        Ok(child)
    }

    fn is_gone(&self) -> bool {
        lock(&self.jobs).is_gone
    }

    /// Ends the supervisor, which ends every command, and waits until it is gone.
    fn close(&self) {
        lock(&self.jobs).is_closing = true;
        let _ = shutdown(&*self.socket, Shutdown::Write);
        self.process.wait();
    }
}

/// The process of a supervisor.
#[derive(Debug)]
struct Process {
    id: u32,
    child: Mutex<std::process::Child>,
}

impl Process {
    /// Waits for the end of the process. The reaper of orphans may have taken the end already, so
    /// an error also means that the process has ended.
    fn wait(&self) {
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        lock(&self.jobs).is_closing = true;
    }
}

impl Jobs {
    fn add(&mut self, id: JobId, waiting: Waiting) -> io::Result<()> {
        if self.is_gone {
            return Err(gone());
        }
        self.waiting.insert(id, waiting);
        Ok(())
    }

    fn take(&mut self, reply: Reply) {
        let (id, end) = match reply {
            Reply::Started(id) => {
                let started = self.waiting.get_mut(&id).and_then(|waiting| waiting.started.take());
                return send_result(started, Ok(()));
            }
            Reply::NotStarted(id, error) => {
                let started = self.waiting.remove(&id).and_then(|waiting| waiting.started);
                return send_result(started, Err(io::Error::from_raw_os_error(error)));
            }
            Reply::Exited(id, status) => (id, End::Exited(status)),
            Reply::Killed(id, signal) => (id, End::Killed(signal)),
        };
        // A command whose future was dropped has no receiver.
        self.waiting.remove(&id).map(|waiting| waiting.ended.send(end));
    }
}

fn send_result(started: Option<oneshot::Sender<io::Result<()>>>, what: io::Result<()>) {
    started.map(|started| started.send(what));
}

/// A command that was started. Dropping this kills the command with all its descendants, unless it
/// is known to have ended.
#[derive(Debug)]
pub(in crate::process) struct Child {
    job: Job,
    end: oneshot::Receiver<End>,
    /// The pipe for the rest of its input; `None` if it has received all.
    pub(in crate::process) stdin: Option<pipe::Sender>,
    pub(in crate::process) stdout: Option<pipe::Receiver>,
    pub(in crate::process) stderr: Option<pipe::Receiver>,
}

#[derive(Debug)]
struct Job {
    id: JobId,
    requests: mpsc::UnboundedSender<Frame>,
    is_over: bool,
}

impl Child {
    /// Waits for the end. Cancel-safe.
    pub(in crate::process) async fn wait(&mut self) -> io::Result<End> {
        let end = (&mut self.end).await;
        self.job.is_over = true;
        end.map_err(|_| gone())
    }

    /// Sends SIGTERM to the command and all its descendants. What is left of them when the command
    /// has ended is killed.
    pub(in crate::process) fn terminate(&self) {
        self.job.end(false);
    }

    /// Kills the command and all its descendants.
    pub(in crate::process) fn kill(&self) {
        self.job.end(true);
    }
}

impl Job {
    /// Requests the end of the command. Errors are ignored, because a supervisor that is gone has
    /// ended every command.
    fn end(&self, kill: bool) {
        if let Ok(bytes) = wire::end(self.id, kill) {
            let _ = self.requests.send(Frame { bytes, descriptors: Vec::new() });
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(true);
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the process that starts commands is gone")
}

/// Returns the reading end of a pipe for a command's input, if it has any. A short input is already
/// in the pipe. For a longer one, also returns the writing end.
fn input(input: Option<&Bytes>) -> io::Result<(Option<pipe::Sender>, Option<OwnedFd>)> {
    let Some(input) = input.filter(|input| !input.is_empty()) else { return Ok((None, None)) };
    let (theirs, mut ours): (_, PipeWriter) = io::pipe()?;
    if input.len() <= AT_ONCE {
        ours.write_all(input)?;
        return Ok((None, Some(theirs.into())));
    }
    Ok((Some(pipe::Sender::from_owned_fd(ours.into())?), Some(theirs.into())))
}

fn command(socket: OwnedFd) -> Command {
    let mut command = Command::new(own_program());
    let Rlimit { current, maximum } = open_files::limits_at_start();
    let limit = |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    command
        .arg0(NAME)
        .args([OsString::from(ARGUMENT), limit(current).into(), limit(maximum).into()])
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Only the worker receives signals from the terminal.
        .process_group(0);
    command
}

/// Returns the file of this program. On Linux this works even after an update has replaced the
/// file.
fn own_program() -> PathBuf {
    let linked = PathBuf::from("/proc/self/exe");
    if linked.exists() { linked } else { std::env::current_exe().unwrap_or(linked) }
}

/// Writes requests until the channel is closed.
async fn write(socket: Arc<UnixStream>, mut requests: mpsc::UnboundedReceiver<Frame>) {
    while let Some(Frame { bytes, descriptors }) = requests.recv().await {
        let (mut rest, mut beside) = (&bytes[..], &descriptors[..]);
        while !rest.is_empty() {
            match socket.async_io(Interest::WRITABLE, || send(&socket, rest, beside)).await {
                // The descriptors accompany the first octet.
                Ok(count) => (rest, beside) = (&rest[count..], &[]),
                // The reader sees the error too.
                Err(_) => return,
            }
        }
    }
    let _ = shutdown(&*socket, Shutdown::Write);
}

fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::empty())?)
}

/// Forwards replies until the supervisor is gone. If something else ended it, ends what it left.
async fn serve(socket: Arc<UnixStream>, jobs: Arc<Mutex<Jobs>>, process: Arc<Process>) {
    read(&socket, &jobs).await;
    let running: Option<HashSet<JobId>> = {
        let jobs = lock(&jobs);
        (!jobs.is_closing).then(|| jobs.waiting.keys().copied().collect())
    };
    if let Some(running) = running {
        let end = move || {
            // A process that ends closes its files first, and only then releases its children.
            process.wait();
            orphans::end_all(process.id, &|job| running.contains(&job));
        };
        let _ = tokio::task::spawn_blocking(end).await;
    }
    let mut jobs = lock(&jobs);
    jobs.is_gone = true;
    jobs.waiting.clear();
}

async fn read(socket: &UnixStream, jobs: &Mutex<Jobs>) {
    let (mut chunk, mut filled) = ([0; CHUNK], 0);
    while socket.readable().await.is_ok() {
        match socket.try_read(&mut chunk[filled..]) {
            Ok(count @ 1..) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(0) | Err(_) => return,
        }
        let whole = filled - filled % REPLY;
        let mut jobs = lock(jobs);
        chunk[..whole].as_chunks::<REPLY>().0.iter().for_each(|reply| jobs.take(Reply::of_bytes(*reply)));
        chunk.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

fn lock(jobs: &Mutex<Jobs>) -> MutexGuard<'_, Jobs> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}
