//! Programs at the other end: libzmq in one of C, and in one of Python.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// The program of Python.
const PYTHON: &str = include_str!("pyzmq_peer.py");

/// What a program is to be: `bind` or `connect`, the kind, the mechanism, the endpoint, and the time between heartbeats.
pub(crate) type Role<'a> = [&'a str; 5];

/// The program of C, if it was prepared: `cargo xtask test` does.
pub(crate) fn program() -> Option<String> {
    prepared("ONWARD_LIBZMQ_PEER", "libzmq")
}

/// The interpreter of Python, if it was prepared.
pub(crate) fn interpreter() -> Option<String> {
    prepared("ONWARD_PYTHON_ZMQ", "python3-zmq")
}

fn prepared(variable: &str, name: &str) -> Option<String> {
    let program = std::env::var(variable).ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|required| ["all", name].contains(&required.trim()));
    assert!(program.is_some() || !is_required, "{name} is required; run the tests with `cargo xtask test`");
    if program.is_none() {
        println!("not tested: {variable} is not set; `cargo xtask test` prepares {name}");
    }
    program
}

/// Those who are at the other end, one after the other.
pub(crate) enum Others {
    /// Each is a process.
    Libzmq { program: String, peer: Option<Peer> },
    /// All are one process, for Python takes longer to start than for the rest.
    Python(Peer),
}

impl Others {
    pub(crate) fn libzmq() -> Option<Self> {
        Some(Self::Libzmq { program: program()?, peer: None })
    }

    pub(crate) fn python() -> Option<Self> {
        let mut command = Command::new(interpreter()?);
        Some(Self::Python(Peer::start(command.args(["-c", PYTHON]))))
    }

    /// The transports to try with them.
    pub(crate) fn transports(&self) -> &'static [&'static str] {
        match self {
            Self::Libzmq { .. } => &["tcp", "ipc", "abstract"],
            Self::Python(_) => &["tcp", "ipc"],
        }
    }

    /// The next of them, and its endpoint. The one before is no more.
    pub(crate) fn next(&mut self, role: Role<'_>) -> (&mut Peer, String) {
        match self {
            Self::Libzmq { program, peer } => {
                *peer = None;
                let (next, endpoint) = Peer::spawn(program, role);
                (peer.insert(next), endpoint)
            }
            Self::Python(peer) => {
                peer.write_line(&role.join(" "));
                let endpoint = peer.begin(role);
                (peer, endpoint)
            }
        }
    }
}

/// A running program. Ends with its standard input, so with this.
pub(crate) struct Peer {
    child: Killed,
    file: BoundFile,
    stdin: ChildStdin,
    /// What it prints, read by a thread.
    lines: mpsc::Receiver<String>,
}

impl Peer {
    pub(crate) fn spawn(program: &str, role: Role<'_>) -> (Self, String) {
        let mut peer = Self::start(Command::new(program).args(role));
        let endpoint = peer.begin(role);
        (peer, endpoint)
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let stdin = child.stdin.take().unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        Self { child: Killed(child), file: BoundFile(None), stdin, lines }
    }

    /// Answers the endpoint that it says it is at.
    fn begin(&mut self, role: Role<'_>) -> String {
        let file = role[3].strip_prefix("ipc:///").filter(|_| role[0] == "bind");
        self.file = BoundFile(file.map(|path| Path::new("/").join(path)));
        self.line()
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the peer says something in time")
    }

    pub(crate) fn try_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Kills it. Answers what it had printed and nobody has read.
    pub(crate) fn kill(&mut self) -> Vec<String> {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
        self.file = BoundFile(None);
        self.lines.iter().collect()
    }
}

/// Has a thread read lines for as long as there are any.
fn read_lines(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// A program that ends with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The file of a Unix socket of the program, which goes with this: libzmq leaves it.
struct BoundFile(Option<PathBuf>);

impl Drop for BoundFile {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}
