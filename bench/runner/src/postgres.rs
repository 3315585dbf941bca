//! A PostgreSQL server for one run, started on the loopback interface and stopped afterwards.
//!
//! The servers of `xtask` and `onward-testkit` cannot be used here. They do not wait for the disk;
//! the first is part of a program, and the second fails by panicking. Also, a program that measures
//! other systems must not depend on a crate of Onward.

use std::fs::{File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bench_protocol::DurabilityLevel;

/// The directory in which Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user that runs the server if this program runs as root, because PostgreSQL refuses to run as
/// root.
const USER: &str = "postgres";
/// The interval of the check whether a server is up, and the most checks.
const ASK: Duration = Duration::from_millis(20);
const ASKS: usize = 1000;

/// The files of an empty database, of which each server gets a copy. Making them takes longer than
/// many runs.
#[derive(Debug)]
pub(crate) struct Template {
    programs: PathBuf,
    directory: PathBuf,
}

impl Template {
    /// Makes the files in `directory`, which must be on the disk of the servers.
    ///
    /// # Errors
    /// Returns an error if PostgreSQL is not installed.
    pub(crate) fn make(directory: &Path) -> Result<Self> {
        let directory = directory.canonicalize()?.join(format!("postgres-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        std::fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
        let template = Self { programs: programs()?, directory };
        if is_root() {
            let owner = Command::new("chown").arg(USER).arg(&template.directory).status()?;
            ensure!(owner.success(), "the directory of the servers cannot be given to the user `{USER}`");
        }
        let mut make = template.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        let made = make.arg(template.files()).stdout(Stdio::null()).output().context("initdb does not start")?;
        ensure!(made.status.success(), "initdb failed: {}", last_words(&made.stderr));
        Ok(template)
    }

    fn files(&self) -> PathBuf {
        self.directory.join("template")
    }

    /// Copies the files. Waits until the copy is on the disk, so that no run pays for that; a quick
    /// run may.
    fn copy_to(&self, data: &Path, is_quick: bool) -> Result<()> {
        let copied = Command::new("cp").arg("-a").arg(self.files()).arg(data).status()?;
        ensure!(copied.success(), "the files of the server cannot be copied to {}", data.display());
        if is_quick {
            return Ok(());
        }
        let synced = Command::new("sync").arg("-f").arg(data).status()?;
        ensure!(synced.success(), "the files of the server cannot be synced");
        Ok(())
    }

    /// Returns the command of a server program, which ends when this process does.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        // The current directory may be one that the other user must not enter.
        command.arg("--").arg(self.programs.join(name)).current_dir(&self.directory);
        command
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A server with an empty database. It runs until it is dropped, or until the process ends.
#[derive(Debug)]
pub(crate) struct Postgres<'t> {
    template: &'t Template,
    port: u16,
    server: Option<Child>,
}

impl<'t> Postgres<'t> {
    /// Starts a server with `settings` such as `fsync=on`. With durability level `full` a commit
    /// waits until the server's log is synced; otherwise it does not (`synchronous_commit=off`).
    /// Only one server runs at a time.
    ///
    /// # Errors
    /// Returns an error with the server's message if it does not start.
    pub(crate) fn start(
        template: &'t Template,
        durability: DurabilityLevel,
        settings: &[String],
        is_quick: bool,
    ) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut postgres = Self { template, port, server: None };
        template.copy_to(&postgres.data(), is_quick)?;
        postgres.begin(durability, settings)?;
        Ok(postgres)
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("postgres://onward@127.0.0.1:{}/postgres", self.port)
    }

    fn begin(&mut self, durability: DurabilityLevel, settings: &[String]) -> Result<()> {
        let synchronous = if durability == DurabilityLevel::Full { "on" } else { "off" };
        let mut server = self.template.program("postgres");
        server.arg("-D").arg(self.data()).args(["-c", &format!("port={}", self.port)]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        server.args(["-c", "max_connections=200", "-c", &format!("synchronous_commit={synchronous}")]);
        settings.iter().for_each(|setting| {
            server.args(["-c", setting]);
        });
        let log = File::create(self.log())?;
        self.server = Some(server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?);
        for _ in 0..ASKS {
            if self.accepts_connections()? {
                return Ok(());
            }
            self.check()?;
            std::thread::park_timeout(ASK);
        }
        bail!("PostgreSQL does not accept connections: {}", self.complaint())
    }

    fn accepts_connections(&self) -> Result<bool> {
        let mut ask = self.template.program("pg_isready");
        ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        Ok(ask.status()?.success())
    }

    /// Returns an error if the server has already ended.
    fn check(&mut self) -> Result<()> {
        match self.server.as_mut().map(Child::try_wait).transpose()?.flatten() {
            Some(status) => bail!("PostgreSQL does not start ({status}): {}", self.complaint()),
            None => Ok(()),
        }
    }

    fn complaint(&self) -> String {
        last_words(&std::fs::read(self.log()).unwrap_or_default())
    }

    fn log(&self) -> PathBuf {
        self.template.directory.join("log")
    }

    fn data(&self) -> PathBuf {
        self.template.directory.join("data")
    }
}

impl Drop for Postgres<'_> {
    fn drop(&mut self) {
        let _ = self.template.program("pg_ctl").args(["stop", "-w", "-m", "immediate", "-D"]).arg(self.data()).output();
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(self.data());
    }
}

/// Returns the last line that is not empty.
fn last_words(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Returns the directory of the programs of the newest version.
fn programs() -> Result<PathBuf> {
    let missing = || format!("no PostgreSQL in {VERSIONS} (Debian's package postgresql)");
    let versions = std::fs::read_dir(VERSIONS).with_context(missing)?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().filter_map(number).max();
    let newest = newest.with_context(missing)?;
    Ok(PathBuf::from(format!("{VERSIONS}/{newest}/bin")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_come_up_says_why() {
        let settings = ["no_such_setting=1".to_owned()];
        let template = Template::make(&std::env::temp_dir());
        let error =
            template.and_then(|template| Postgres::start(&template, DurabilityLevel::Full, &settings, true).map(drop));
        let error = error.map_err(|error| format!("{error:#}"));
        let says_why = |error: &String| error.contains("no_such_setting") || error.contains("no PostgreSQL");
        assert!(error.as_ref().is_err_and(says_why), "{error:?}");
    }
}
