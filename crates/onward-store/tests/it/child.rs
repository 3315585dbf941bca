//! Child processes: this test program again, running one of its ignored tests.
//!
//! A child reports to its standard output, a pipe, with one line and one `write` for each fact. The
//! content of the pipe survives the child, so the parent reads every fact that the child reported
//! before it was killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// The mark of a child's own lines among those of the test harness.
const MARK: &str = "> ";

/// The start of a child's last line if it failed.
const PANICKED: &str = "panicked";

/// A running child, killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

/// The lines that a child reports, until its end.
#[derive(Debug)]
pub(crate) struct Speech(BufReader<ChildStdout>);

impl Process {
    /// Starts the ignored test `entry` as a process of its own, with variables that configure it.
    pub(crate) fn start(entry: &str, variables: &[(&str, String)]) -> (Self, Speech) {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program)
            .args([entry, "--exact", "--ignored", "--nocapture"])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("this program starts again");
        let output = child.stdout.take().expect("its output is a pipe");
        let input = child.stdin.take();
        (Self { child, input }, Speech(BufReader::new(output)))
    }

    /// Returns the process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line to the child.
    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is a pipe");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Stops the child (`kill -STOP`), which keeps its locks. Waits until it has stopped, because
    /// the signal alone does not guarantee that.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        let (_, status) = stopped.expect("a child can be waited for").expect("a child is there");
        assert!(status.stopped(), "a child ended instead of standing still: {status:?}");
    }

    /// Continues the child (`kill -CONT`).
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the child (`kill -9`) and waits until it is gone. A child that had failed before fails
    /// the test.
    pub(crate) fn kill(&mut self) {
        self.signal_kill();
        let status = self.child.wait().expect("a child can be waited for");
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "a child ended before it was killed: {status}");
    }

    /// Sends `kill -9` without waiting, so that several children can be killed at the same moment.
    pub(crate) fn signal_kill(&mut self) {
        self.child.kill().expect("a child can be killed");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a child can be sent a signal");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Iterator for Speech {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("a child's output can be read") == 0 {
                return None;
            }
            // A line without an end was cut off, so it does not count.
            if let Some(said) = line.strip_prefix(MARK).and_then(|line| line.strip_suffix('\n')) {
                assert!(!said.starts_with(PANICKED), "a child {said}");
                return Some(said.to_owned());
            }
        }
    }
}

/// Prepares a child: it dies with its parent, and separates its lines from those of the harness. It
/// reports a panic as a fact, because the parent may kill a child before its failure ends it.
pub(crate) fn begin() {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .expect("a child can ask to die with its parent");
    write(b"\n");
    std::panic::set_hook(Box::new(|panic| say(&format!("{PANICKED}: {}", panic.to_string().replace('\n', " ")))));
}

/// Reports a line from a child to the parent, in one `write`.
pub(crate) fn say(line: &str) {
    write(format!("{MARK}{line}\n").as_bytes());
}

/// Returns the next line from the parent to a child, or `None` if there are no more.
pub(crate) fn receive() -> Option<String> {
    let mut line = String::new();
    let length = std::io::stdin().read_line(&mut line).expect("a child can be told things");
    (length > 0).then(|| line.trim_end().to_owned())
}

fn write(bytes: &[u8]) {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).expect("a parent listens");
}
