//! A PostgreSQL server of a program's own: started for one run on the loopback interface, and ended after it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::scenario::Class;

/// Where Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user that runs the server where we are root: a server refuses to run as root.
const USER: &str = "postgres";
/// How often a server is asked whether it is there, and how often at the most.
const ASK: Duration = Duration::from_millis(50);
const ASKS: usize = 400;

/// A server with an empty database, which runs until this is dropped, or the process ends.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts a server with its files in a directory of their own in `directory`. In class `full` a commit waits until the server's log is
    /// synced; in the others it does not (`synchronous_commit = off`).
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start.
    pub fn start(directory: &Path, class: Class) -> Result<Self> {
        let directory = directory.canonicalize()?.join(format!("postgres-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut postgres = Self { programs: programs()?, directory, port, server: None };
        postgres.make()?;
        postgres.begin(class)?;
        Ok(postgres)
    }

    /// Where it is to be reached.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://onward@127.0.0.1:{}/postgres", self.port)
    }

    fn make(&self) -> Result<()> {
        if is_root() {
            let owner = Command::new("chown").arg(USER).arg(&self.directory).status()?;
            ensure!(owner.success(), "the directory of the server cannot be given to the user `{USER}`");
        }
        let mut make = self.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"]).arg(self.data());
        let made = make.stdout(Stdio::null()).stderr(Stdio::null()).status().context("initdb does not start")?;
        ensure!(made.success(), "initdb failed");
        Ok(())
    }

    fn begin(&mut self, class: Class) -> Result<()> {
        let synchronous = if class == Class::Full { "on" } else { "off" };
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-c", &format!("port={}", self.port)]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        server.args(["-c", "max_connections=200", "-c", &format!("synchronous_commit={synchronous}")]);
        self.server = Some(server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        for _ in 0..ASKS {
            let mut ask = self.program("pg_isready");
            ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ask.status()?.success() {
                return Ok(());
            }
            std::thread::sleep(ASK);
        }
        bail!("PostgreSQL does not answer")
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// One of its programs, which ends when this process does.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        // Not a directory that the other user may not enter.
        command.arg("--").arg(self.programs.join(name)).current_dir(&self.directory);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.program("pg_ctl").args(["stop", "-w", "-m", "immediate", "-D"]).arg(self.data()).output();
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Where the programs of the newest version are.
fn programs() -> Result<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).with_context(|| format!("no PostgreSQL in {VERSIONS}"))?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().filter_map(number).max();
    let newest = newest.with_context(|| format!("no PostgreSQL in {VERSIONS} (Debian's package postgresql)"))?;
    Ok(PathBuf::from(format!("{VERSIONS}/{newest}/bin")))
}
