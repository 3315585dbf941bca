//! Other processes: this test program again, running one of its ignored tests.
//!
//! A child says what it does on its standard output, a pipe, one line and one `write` for each
//! fact. What is in the pipe survives the child, so whatever it said before it was killed is read.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Marks a line as a child's own, among those of the test harness.
const MARK: &str = "> ";

/// Begins a child's last line if it failed.
const PANICKED: &str = "panicked";

/// A running child; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

/// What a child says, line by line, until its end.
#[derive(Debug)]
pub(crate) struct Speech(BufReader<ChildStdout>);

impl Process {
    /// Starts the ignored test `entry` as a process of its own, with variables that tell it what to
    /// do.
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

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a line.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is a pipe");
        writeln!(input, "{line}").expect("it listens");
    }

    /// `kill -STOP`: it stands still, and keeps its locks. Waits until it does: the signal alone
    /// only asks for it.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        let (_, status) = stopped.expect("a child can be waited for").expect("a child is there");
        assert!(status.stopped(), "a child ended instead of standing still: {status:?}");
    }

    /// `kill -CONT`: it goes on as if nothing had been.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// `kill -9`, and waits until the process is gone. A child that had failed by itself fails the
    /// test.
    pub(crate) fn kill(&mut self) {
        self.signal_kill();
        let status = self.child.wait().expect("a child can be waited for");
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "a child ended before it was killed: {status}");
    }

    /// `kill -9` alone, so that others can be killed at the same moment.
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
            // A line without an end was cut off; nothing of it counts.
            if let Some(said) = line.strip_prefix(MARK).and_then(|line| line.strip_suffix('\n')) {
                assert!(!said.starts_with(PANICKED), "a child {said}");
                return Some(said.to_owned());
            }
        }
    }
}

/// In a child: ends it with its parent, sets its words apart from the harness's, and has a failure
/// told like a fact, since a child that fails may be killed before that ends it.
pub(crate) fn begin() {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .expect("a child can ask to die with its parent");
    write(b"\n");
    std::panic::set_hook(Box::new(|panic| say(&format!("{PANICKED}: {}", panic.to_string().replace('\n', " ")))));
}

/// In a child: says a line to the parent, in one `write`.
pub(crate) fn say(line: &str) {
    write(format!("{MARK}{line}\n").as_bytes());
}

/// In a child: the next line from the parent, or nothing if there is no more.
pub(crate) fn hear() -> Option<String> {
    let mut line = String::new();
    let length = std::io::stdin().read_line(&mut line).expect("a child can be told things");
    (length > 0).then(|| line.trim_end().to_owned())
}

fn write(bytes: &[u8]) {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).expect("a parent listens");
}
