//! Programs at the other end: libzmq from C and from Python.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest wait before a test fails.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The Python program.
const PYTHON: &str = include_str!("pyzmq_peer.py");

/// The role of a program: `bind` or `connect`, the kind, the mechanism, the endpoint, and the time
/// between heartbeats.
pub(crate) type Role<'a> = [&'a str; 5];

/// Returns the C program if it was prepared, as `cargo xtask test` does.
pub(crate) fn program() -> Option<String> {
    prepared("ONWARD_LIBZMQ_PEER", "libzmq")
}

/// Returns the Python interpreter if it was prepared.
pub(crate) fn interpreter() -> Option<String> {
    prepared("ONWARD_PYTHON_ZMQ", "python3-zmq")
}

/// Returns the SOCKS proxy if it was prepared.
pub(crate) fn socks_proxy() -> Option<String> {
    prepared("ONWARD_MICROSOCKS", "microsocks")
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

/// The programs at the other end, one after the other.
pub(crate) enum Others {
    /// A process for each peer.
    Libzmq { program: String, peer: Option<Peer> },
    /// One process for all peers, because Python's start takes longer than everything else.
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

    /// Returns the transports to test with these programs.
    pub(crate) fn transports(&self) -> &'static [&'static str] {
        match self {
            Self::Libzmq { .. } => &["tcp", "ipc", "abstract"],
            Self::Python(_) => &["tcp", "ipc"],
        }
    }

    /// Starts the next peer and returns its endpoint. The previous one is gone.
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

/// A running program. It ends when its standard input is closed, which happens on drop.
pub(crate) struct Peer {
    child: Killed,
    file: BoundFile,
    stdin: ChildStdin,
    /// The lines that it prints, read by a thread.
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

    /// Starts the role. Returns the endpoint that the program prints.
    fn begin(&mut self, role: Role<'_>) -> String {
        let file = role[3].strip_prefix("ipc:///").filter(|_| role[0] == "bind");
        self.file = BoundFile(file.map(|path| Path::new("/").join(path)));
        self.line()
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("the peer says something in time")
    }

    pub(crate) fn try_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Kills the program. Returns the lines that it had printed and the test has not read.
    pub(crate) fn kill(&mut self) -> Vec<String> {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
        self.file = BoundFile(None);
        self.lines.iter().collect()
    }
}

/// Starts a thread that reads lines until there are no more.
fn read_lines(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// A program that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The file of the program's Unix socket, removed on drop because libzmq leaves it behind.
struct BoundFile(Option<PathBuf>);

impl Drop for BoundFile {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}
