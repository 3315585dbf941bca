//! Runs the binary in a separate directory, and waits for events of commands without sleeping.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use onward_store::rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A user and a group that own nothing.
const UNPRIVILEGED: u32 = 65_534;

/// The SQL that creates a store like one of a development version, by its header and its tables.
const DEVELOPMENT_STORE: &str = "CREATE TABLE task (id INTEGER PRIMARY KEY) STRICT; \
    PRAGMA application_id = 0x4f6e5764; PRAGMA user_version = 21; PRAGMA journal_mode = WAL";

/// A directory, and a store: `onward.db` in the directory, or one on a server.
pub(crate) struct Sandbox {
    directory: TempDir,
    /// The temporary directory of the binary, in which a killed run leaves files.
    temporary: TempDir,
    /// The URL of a store on a server, which the binary finds in its environment.
    url: Option<String>,
}

/// The outcome of a run of the binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run of the binary in progress.
pub(crate) struct Running {
    child: Child,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), temporary: tempfile::tempdir().unwrap(), url: None }
    }

    /// Creates a sandbox with a store on a server.
    #[cfg(feature = "postgres")]
    pub(crate) fn with_url(url: String) -> Self {
        Self { url: Some(url), ..Self::new() }
    }

    /// Creates a sandbox with a store of a development version, from before 0.1.
    pub(crate) fn with_development_store() -> Self {
        let sandbox = Self::new();
        let connection = Connection::open(sandbox.path("onward.db")).unwrap();
        connection.execute_batch(DEVELOPMENT_STORE).unwrap();
        connection.close().unwrap();
        sandbox
    }

    /// Returns the store, in a form that `--store` and `Engine::open` accept in any directory.
    pub(crate) fn store(&self) -> String {
        self.url.clone().unwrap_or_else(|| self.path("onward.db").display().to_string())
    }

    /// Returns the path of a file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Runs the binary to its end.
    pub(crate) fn onward(&self, arguments: &[&str]) -> CommandResult {
        self.onward_with(arguments, "")
    }

    /// Runs the binary to its end, with input on stdin.
    pub(crate) fn onward_with(&self, arguments: &[&str], stdin: &str) -> CommandResult {
        self.start(arguments, stdin).wait()
    }

    /// Runs the binary to its end in a directory within the sandbox.
    pub(crate) fn onward_in(&self, directory: &str, arguments: &[&str], stdin: &str) -> CommandResult {
        let mut command = self.command(arguments);
        Running::start(command.current_dir(self.path(directory)), stdin).wait()
    }

    /// Runs the binary, and parses each line of its stdout as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let ran = self.onward(&[&["--json"], arguments].concat());
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs the binary to its end without the rights of root, because root may write despite any
    /// permissions.
    pub(crate) fn onward_unprivileged(&self, arguments: &[&str]) -> CommandResult {
        let mut command = self.command(arguments);
        if rustix::process::geteuid().is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
            fs::set_permissions(self.temporary.path(), Permissions::from_mode(0o777)).unwrap();
        }
        Running { child: command.spawn().unwrap() }.wait()
    }

    /// Starts the binary, with pipes to it and from it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Returns the binary with its arguments, in the directory and on the store.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command.args(arguments).current_dir(self.directory.path());
        command.env_remove("ONWARD_STORE").env_remove("ONWARD_LOG").env("TMPDIR", self.temporary.path());
        command.envs(self.url.iter().map(|url| ("ONWARD_STORE", url)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the binary.
    pub(crate) fn start(&self, arguments: &[&str], stdin: &str) -> Running {
        Running::start(&mut self.command(arguments), stdin)
    }

    /// Runs the binary to its end with additional environment variables.
    pub(crate) fn onward_as(&self, environment: &[(&str, String)], arguments: &[&str]) -> CommandResult {
        self.start_as(environment, arguments).wait()
    }

    /// Starts the binary with additional environment variables.
    pub(crate) fn start_as(&self, environment: &[(&str, String)], arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        Running::start(command.envs(environment.iter().map(|(name, value)| (name, value))), "")
    }

    /// Starts the binary from a shell that first runs a command, such as `ulimit -n 100`.
    pub(crate) fn start_after(&self, shell: &str, arguments: &[&str], stdin: &str) -> Running {
        let onward = self.command(arguments);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).arg(onward.get_program()).args(onward.get_args());
        command.current_dir(self.path("")).envs(onward.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(&mut command, stdin)
    }

    /// Writes an executable script, and replaces an existing one.
    pub(crate) fn script(&self, name: &str, lines: &str) {
        let new = format!("{name}.new");
        self.write(&new, &format!("#!/bin/sh\n{lines}\n"));
        fs::set_permissions(self.path(&new), Permissions::from_mode(0o755)).unwrap();
        fs::rename(self.path(&new), self.path(name)).unwrap();
    }

    /// Creates a named pipe. A command that writes to it waits for
    /// [`await_writer`](Self::await_writer). A command that reads from it waits for
    /// [`write`](Self::write).
    pub(crate) fn pipe(&self, name: &str) {
        mknodat(CWD, self.path(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Waits until a command writes to a named pipe, and returns the text.
    pub(crate) fn await_writer(&self, name: &str) -> String {
        let mut text = String::new();
        File::open(self.path(name)).unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Running {
    fn start(command: &mut Command, stdin: &str) -> Self {
        let mut child = command.spawn().unwrap();
        // The binary may end, and close its stdin, before it has read all of it.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        Self { child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Reads its stderr up to and including a line that contains this text.
    pub(crate) fn await_said(&mut self, part: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !(line.ends_with(b"\n") && String::from_utf8_lossy(&line).contains(part)) {
            if line.ends_with(b"\n") {
                line.clear();
            }
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "it ended without saying `{part}`");
            line.push(byte[0]);
        }
    }

    pub(crate) fn wait(self) -> CommandResult {
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandResult { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

/// Returns the numbers from 1 to `last`, one per line.
pub(crate) fn numbers(last: u32) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// Returns the lines of a text, sorted as numbers.
pub(crate) fn sorted(text: &str) -> Vec<u32> {
    let mut lines: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    lines
}

/// Replaces the output that differs from run to run: times, durations, rates.
pub(crate) fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "[time]");
    settings.add_filter(r"\b\d+(\.\d+)?(µs|ms|s)\b", "[duration]");
    settings.add_filter(r"\d+\.\d lines/s", "[rate]");
    settings
}
