//! Starting programs so that they do not outlive this one.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Resource, getpid, setrlimit};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::group::{Group, Groups};
use super::invocation::Invocation;
use super::open_files;

/// How many starts may wait for their turn.
const WAITING: usize = 1024;

type Request = (Invocation, oneshot::Sender<io::Result<(Child, Group)>>);

/// Starts programs from one thread that lives as long as this value.
///
/// On Linux a program is killed when the *thread* that started it ends, and so it dies with this process even where that was
/// killed. A thread of the runtime may end earlier; this one does not. What such a program itself has started may live on.
#[derive(Debug)]
pub(super) struct Spawner {
    requests: mpsc::Sender<Request>,
}

impl Spawner {
    /// Starts the thread. Must be called within a runtime, which then watches over the programs.
    pub(super) fn start(groups: &Arc<Groups>) -> io::Result<Self> {
        let (requests, receiver) = mpsc::channel(WAITING);
        let (runtime, groups) = (Handle::current(), Arc::clone(groups));
        let serve = move || serve(receiver, &groups, &runtime);
        std::thread::Builder::new().name("onward-spawner".to_owned()).spawn(serve)?;
        Ok(Self { requests })
    }

    /// Starts a program as the leader of a process group, with pipes for what it reads and writes. If the future is dropped, the
    /// program is killed.
    pub(super) async fn spawn(&self, invocation: Invocation) -> io::Result<(Child, Group)> {
        let (answer, started) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts programs is gone");
        self.requests.send((invocation, answer)).await.map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

fn serve(mut requests: mpsc::Receiver<Request>, groups: &Arc<Groups>, runtime: &Handle) {
    let _within = runtime.enter();
    while let Some((invocation, answer)) = requests.blocking_recv() {
        // An answer that nobody takes is dropped, and with it the program is killed.
        let _ = answer.send(groups.start(|| command(invocation).spawn()));
    }
}

fn command(invocation: Invocation) -> Command {
    let mut command = Command::new(invocation.program);
    command
        .args(invocation.arguments)
        .envs(invocation.environment)
        .stdin(if invocation.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    before_it_runs(&mut command);
    command
}

/// Gives the program the limit of open files that this process was started with. On Linux the
/// program dies with this process.
#[expect(unsafe_code, reason = "std has no safe way to run anything between fork and exec")]
fn before_it_runs(command: &mut Command) {
    let (limits, parent) = (open_files::limits_at_start(), getpid());
    let prepare = move || {
        die_with(parent)?;
        // This process may have raised its own since. What it had itself is never refused.
        let _ = setrlimit(Resource::Nofile, limits);
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(prepare);
    }
}

#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

#[cfg(not(target_os = "linux"))]
fn die_with(_parent: Pid) -> io::Result<()> {
    Ok(())
}
