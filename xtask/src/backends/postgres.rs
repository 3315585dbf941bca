//! A PostgreSQL server and a pooler in front of it, started as an ordinary user for one run of the
//! tests.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::command;

/// The oldest version that the store supports.
const OLDEST: u32 = 15;

/// The directory in which Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The time that a server may take to start or to stop, in seconds.
const CONTROL_TIMEOUT: &str = "60";

/// The user that runs the server if this program runs as root, because PostgreSQL refuses to run as
/// root.
const USER: &str = "postgres";

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    pooler: Option<Child>,
}

impl Server {
    /// Starts a server with an empty database in a directory of its own. Installs PostgreSQL first
    /// if it is missing and may be installed.
    pub(crate) fn start() -> Result<Self> {
        if programs().is_err() || pooler().is_none() {
            install()?;
        }
        let programs = programs()?;
        let directory = std::env::temp_dir().join(format!("onward-postgres-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let mut server = Self { programs, directory, port: free_port()?, pooler: None };
        server.prepare()?;
        server.pooler = server.start_pooler()?;
        Ok(server)
    }

    /// Returns the variables by which the tests find the server.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let url = |port: u16| format!("postgres://onward@127.0.0.1:{port}/postgres");
        let mut variables = vec![("ONWARD_POSTGRES_URL".to_owned(), url(self.port))];
        // Some tests stop, kill and cut off servers of their own, for which they need the programs.
        variables.push(("ONWARD_POSTGRES_PROGRAMS".to_owned(), self.programs.display().to_string()));
        variables.extend(self.pooler.is_some().then(|| ("ONWARD_PGBOUNCER_URL".to_owned(), url(self.port + 1))));
        variables
    }

    fn prepare(&self) -> Result<()> {
        if is_root() {
            command::run(Command::new("chown").arg(USER).arg(&self.directory))?;
        }
        let data = self.data();
        let mut make = self.program("initdb");
        make.args(["--username=onward", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
        command::run(make.stdout(Stdio::null()))?;
        // The server listens on loopback only, and never waits for the disk, because its data is
        // discarded.
        let options = format!(
            "-c port={} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off -c full_page_writes=off -c max_connections=300",
            self.port,
            self.directory.display()
        );
        let mut start = self.control("start");
        start.arg("-l").arg(self.directory.join("log")).args(["-o", &options]);
        command::run(start.stdout(Stdio::null()))
    }

    fn start_pooler(&self) -> Result<Option<Child>> {
        let Some(program) = pooler() else { return Ok(None) };
        let file = self.directory.join("pgbouncer.ini");
        let port = self.port + 1;
        fs::write(
            &file,
            format!(
                "[databases]\n* = host=127.0.0.1 port={} user=onward\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                 auth_type = any\npool_mode = transaction\nunix_socket_dir =\nmax_client_conn = 500\nignore_startup_parameters = extra_float_digits\n",
                self.port
            ),
        )?;
        let mut pooler = as_user(program);
        let child = pooler.arg("-q").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Some).with_context(|| format!("cannot start {}", program.display()))
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = as_user(&self.programs.join(name));
        // The current directory may be one that the other user must not enter.
        command.current_dir(&self.directory);
        command
    }

    fn control(&self, what: &str) -> Command {
        let mut control = self.program("pg_ctl");
        control.args([what, "-w", "-t", CONTROL_TIMEOUT, "-D"]).arg(self.data());
        control
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pooler) = &mut self.pooler {
            let _ = pooler.kill();
            let _ = pooler.wait();
        }
        if let Err(error) = command::run(self.control("stop").args(["-m", "immediate"]).stdout(Stdio::null())) {
            println!("PostgreSQL was not stopped: {error:#}");
        }
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            println!("{} is left: {error}", self.directory.display());
        }
    }
}

fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    // `setpriv` replaces itself by the program, so that stopping the child stops the program.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Returns the directory of the programs of the newest version.
fn programs() -> Result<PathBuf> {
    let versions = fs::read_dir(VERSIONS).with_context(|| format!("no PostgreSQL in {VERSIONS}"))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().filter_map(number).max().filter(|version| *version >= OLDEST);
    match newest.map(|version| PathBuf::from(format!("{VERSIONS}/{version}/bin"))) {
        Some(programs) if programs.join("initdb").exists() => Ok(programs),
        _ => bail!("PostgreSQL {OLDEST} or newer is not in {VERSIONS}; install Debian's `postgresql` and `pgbouncer`"),
    }
}

/// Returns the path of the pooler.
fn pooler() -> Option<&'static Path> {
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().map(Path::new).find(|program| program.exists())
}

fn install() -> Result<()> {
    if !is_root() {
        bail!("PostgreSQL is not installed; install Debian's `postgresql` and `pgbouncer`, or run this as root once");
    }
    command::run(Command::new("apt-get").arg("update"))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "postgresql", "pgbouncer"]);
    command::run(&mut install)
}

/// Returns a port that is free, as is the one after it.
fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no two free ports beside one another were found on 127.0.0.1")
}
