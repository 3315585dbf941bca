//! A server of a test's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::directory::{Directory, free_port, programs, run};

/// How long a server may take to start or to stop, in seconds.
const PATIENCE: &str = "60";

/// How often a start is tried: a server that was killed leaves processes behind that end a moment
/// later.
const STARTS: usize = 50;

/// How a server goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// All its processes are killed.
    Killed,
    /// It stops without a word, and recovers when it starts again.
    Immediate,
    /// It ends connections, takes no new ones, and stops in order.
    Fast,
    /// One of its processes is killed, so that it ends all others and recovers by itself.
    OneProcess,
}

/// A server with an empty database, on a port of its own; stopped and removed when it is dropped.
/// It does not wait for its disk, which outlives it.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    directory: Directory,
    port: u16,
    settings: Vec<String>,
}

impl Server {
    /// Starts one; `None` if there is no PostgreSQL here, which is said.
    ///
    /// # Panics
    /// If PostgreSQL is required and not there, or does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::with_settings(&[])
    }

    /// Starts one with further settings (`name=value`).
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_settings(settings: &[&str]) -> Option<Self> {
        let server = Self::new(settings)?;
        let mut make = server.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        run(make.arg(server.data()));
        server.go_on();
        Some(server)
    }

    /// Starts one with further settings whose log is in an empty directory of the server's user, in
    /// files of a megabyte.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_log_in(directory: &Path, settings: &[&str]) -> Option<Self> {
        let server = Self::new(settings)?;
        let mut make = server.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        run(make.arg("--wal-segsize=1").arg("--waldir").arg(directory).arg("-D").arg(server.data()));
        server.go_on();
        Some(server)
    }

    /// Starts it again, whatever became of it.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        // One that has ended by itself need not be stopped.
        let _ = self.control("stop").args(["-m", "immediate"]).status();
        self.go_on();
    }

    fn new(settings: &[&str]) -> Option<Self> {
        let programs = programs()?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Some(Self { programs, directory: Directory::new(), port: free_port(), settings })
    }

    /// Where it is, for user `onward`, who may do anything.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://onward@127.0.0.1:{}/postgres", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A standby that follows it: it takes no writes until it is [promoted](Self::promote).
    ///
    /// # Panics
    /// If it cannot be made.
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
        standby.go_on();
        standby
    }

    /// Makes a standby the primary.
    ///
    /// # Panics
    /// If it is none.
    pub fn promote(&self) {
        run(&mut self.control("promote"));
    }

    /// Has it read its settings file again; what runs goes by it a moment later.
    ///
    /// # Panics
    /// If it does not run.
    pub fn reload(&self) {
        run(&mut self.control("reload"));
    }

    /// Adds lines to its settings file, which count from its next start on, or when it [reads it
    /// again](Self::reload).
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn configure(&self, lines: &str) {
        let file = self.data().join("postgresql.conf");
        let settings = std::fs::read_to_string(&file).expect("a server has settings");
        std::fs::write(file, settings + lines).expect("its settings can be written");
    }

    /// Copies a file into its data directory, for it alone to read.
    ///
    /// # Panics
    /// If that cannot be done.
    pub fn take_file(&self, file: &Path, name: &str) {
        let copy = self.data().join(name);
        std::fs::copy(file, &copy).expect("a file is copied");
        self.directory.keep_for_user(&copy);
    }

    /// Has it go away, and come back after `meanwhile`.
    ///
    /// # Panics
    /// If it does not come back.
    pub fn crash(&self, how: Crash, meanwhile: impl FnOnce()) {
        match how {
            Crash::Killed => self.kill(),
            Crash::Immediate => self.stop("immediate"),
            Crash::Fast => self.stop("fast"),
            Crash::OneProcess => {
                self.kill_one();
                return meanwhile();
            }
        }
        meanwhile();
        self.go_on();
    }

    /// Starts it where it is stopped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn go_on(&self) {
        let options: Vec<String> = self.options().iter().map(|option| format!("-c {option}")).collect();
        let is_running = (0..STARTS).any(|_| {
            let mut start = self.control("start");
            start.arg("-l").arg(self.directory.path().join("log")).args(["-o", &options.join(" ")]);
            start.status().is_ok_and(|status| status.success())
        });
        assert!(is_running, "the server does not start; its log is:\n{}", self.log());
    }

    /// Stops it; `mode` is one of `pg_ctl`'s.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&self, mode: &str) {
        run(self.control("stop").args(["-m", mode]));
    }

    /// `kill -9` on every process of it.
    fn kill(&self) {
        let main = self.main_process();
        let others = children(main);
        signal(main);
        others.into_iter().for_each(signal);
    }

    /// `kill -9` on the process that serves the youngest connection.
    fn kill_one(&self) {
        children(self.main_process()).into_iter().max().into_iter().for_each(signal);
    }

    fn main_process(&self) -> i32 {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        file.lines().next().and_then(|line| line.parse().ok()).expect("a server has a number")
    }

    /// What it has logged since it was made.
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
        control.args([what, "-w", "-t", PATIENCE, "-D"]).arg(self.data());
        control
    }

    fn program(&self, name: impl AsRef<OsStr>) -> Command {
        self.directory.program(&self.programs.join(name.as_ref()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that does not run need not be stopped.
        let _ = self.control("stop").args(["-m", "immediate"]).status();
    }
}

fn children(process: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// One that is gone already is as good as killed.
fn signal(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, Signal::KILL);
    }
}
