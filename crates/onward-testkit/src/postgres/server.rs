//! A PostgreSQL server that belongs to one test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::directory::{Directory, free_port, programs, run};

/// The time that a server may take to start or to stop, in seconds.
const CONTROL_TIMEOUT: &str = "60";

/// The number of attempts to start a server. A killed server leaves processes behind that end a
/// moment later.
const STARTS: usize = 50;

/// The way in which a server goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// All processes of the server are killed.
    Killed,
    /// The server stops at once, and recovers when it starts again.
    Immediate,
    /// The server ends connections, accepts no new ones, and shuts down in order.
    Fast,
    /// One process of the server is killed. The server then ends all others and recovers by itself.
    OneProcess,
}

/// A server with an empty database on a port of its own, stopped and removed when it is dropped. It
/// runs without syncs, because its disk outlives it.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    directory: Directory,
    port: u16,
    settings: Vec<String>,
}

impl Server {
    /// Starts a server. If there is no PostgreSQL here, prints that and returns `None`.
    ///
    /// # Panics
    /// Panics if PostgreSQL is required and missing, or if it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::with_settings(&[])
    }

    /// Starts a server with further settings (`name=value`).
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    #[must_use]
    pub fn with_settings(settings: &[&str]) -> Option<Self> {
        let server = Self::new(settings)?;
        let mut make = server.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        run(make.arg(server.data()));
        server.start_stopped();
        Some(server)
    }

    /// Starts a server with further settings. Its log is in an empty directory of the server's
    /// user, in files of a megabyte.
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    #[must_use]
    pub fn with_log_in(directory: &Path, settings: &[&str]) -> Option<Self> {
        let server = Self::new(settings)?;
        let mut make = server.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        run(make.arg("--wal-segsize=1").arg("--waldir").arg(directory).arg("-D").arg(server.data()));
        server.start_stopped();
        Some(server)
    }

    /// Starts the server again, whether it was stopped, was killed or still runs.
    ///
    /// # Panics
    /// Panics if the server does not start.
    pub fn start_again(&self) {
        // The stop fails if the server has already ended, which is fine.
        let _ = self.control("stop").args(["-m", "immediate"]).status();
        self.start_stopped();
    }

    fn new(settings: &[&str]) -> Option<Self> {
        let programs = programs()?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Some(Self { programs, directory: Directory::new(), port: free_port(), settings })
    }

    /// Returns the URL of the server for the superuser `onward`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://onward@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the server's port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts a standby that follows this server. It rejects writes until it is
    /// [promoted](Self::promote).
    ///
    /// # Panics
    /// Panics if the standby cannot be made.
    #[must_use]
    pub fn standby(&self) -> Self {
        let standby = Self {
            programs: self.programs.clone(),
            directory: Directory::new(),
            port: free_port(),
            settings: Vec::new(),
        };
        let mut copy = standby.program("pg_basebackup");
        copy.args(["--host=127.0.0.1", "--username=onward", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"]);
        run(copy.arg(format!("--port={}", self.port)).arg("-D").arg(standby.data()));
        standby.start_stopped();
        standby
    }

    /// Promotes a standby to primary.
    ///
    /// # Panics
    /// Panics if this server is not a standby.
    pub fn promote(&self) {
        run(&mut self.control("promote"));
    }

    /// Makes the server read its settings file again. Running sessions apply it a moment later.
    ///
    /// # Panics
    /// Panics if the server does not run.
    pub fn reload(&self) {
        run(&mut self.control("reload"));
    }

    /// Adds lines to the server's settings file. They take effect at its next start or
    /// [reload](Self::reload).
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn configure(&self, lines: &str) {
        let file = self.data().join("postgresql.conf");
        let settings = std::fs::read_to_string(&file).expect("a server has settings");
        std::fs::write(file, settings + lines).expect("its settings can be written");
    }

    /// Copies a file into the data directory, readable only by the server.
    ///
    /// # Panics
    /// Panics if the file cannot be copied.
    pub fn take_file(&self, file: &Path, name: &str) {
        let copy = self.data().join(name);
        std::fs::copy(file, &copy).expect("a file is copied");
        self.directory.keep_for_user(&copy);
    }

    /// Takes the server down, runs `while_down`, and brings the server back.
    ///
    /// # Panics
    /// Panics if the server does not come back.
    pub fn crash(&self, how: Crash, while_down: impl FnOnce()) {
        match how {
            Crash::Killed => self.kill(),
            Crash::Immediate => self.stop("immediate"),
            Crash::Fast => self.stop("fast"),
            Crash::OneProcess => {
                self.kill_one();
                return while_down();
            }
        }
        while_down();
        self.start_stopped();
    }

    /// Starts a stopped server.
    ///
    /// # Panics
    /// Panics if the server does not start.
    pub fn start_stopped(&self) {
        let options: Vec<String> = self.options().iter().map(|option| format!("-c {option}")).collect();
        let is_running = (0..STARTS).any(|_| {
            let mut start = self.control("start");
            start.arg("-l").arg(self.directory.path().join("log")).args(["-o", &options.join(" ")]);
            start.status().is_ok_and(|status| status.success())
        });
        assert!(is_running, "the server does not start; its log is:\n{}", self.log());
    }

    /// Stops the server; `mode` is a shutdown mode of `pg_ctl`.
    ///
    /// # Panics
    /// Panics if the server does not stop.
    pub fn stop(&self, mode: &str) {
        run(self.control("stop").args(["-m", mode]));
    }

    /// Kills every process of the server (`kill -9`).
    fn kill(&self) {
        let main = self.main_process();
        let others = children(main);
        signal(main);
        others.into_iter().for_each(signal);
    }

    /// Kills the process of the youngest connection (`kill -9`).
    fn kill_one(&self) {
        children(self.main_process()).into_iter().max().into_iter().for_each(signal);
    }

    fn main_process(&self) -> i32 {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        file.lines().next().and_then(|line| line.parse().ok()).expect("a server has a number")
    }

    /// Returns what the server has logged since it was made.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn options(&self) -> Vec<String> {
        let mut options = vec![
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", self.directory.path().display()),
            "fsync=off".to_owned(),
            "full_page_writes=off".to_owned(),
        ];
        options.extend(self.settings.iter().cloned());
        options
    }

    fn control(&self, what: &str) -> Command {
        let mut control = self.program("pg_ctl");
        control.args([what, "-w", "-t", CONTROL_TIMEOUT, "-D"]).arg(self.data());
        control
    }

    fn program(&self, name: impl AsRef<OsStr>) -> Command {
        self.directory.program(&self.programs.join(name.as_ref()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The stop fails if the server does not run, which is fine.
        let _ = self.control("stop").args(["-m", "immediate"]).status();
    }
}

fn children(process: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Kills a process. Ignores an error, because the process may already have ended.
fn signal(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, Signal::KILL);
    }
}
