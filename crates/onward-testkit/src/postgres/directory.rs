//! A directory that the user of a server may write to, and programs run as that user.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that names the directory of the server's programs; `cargo xtask test` sets it.
const PROGRAMS: &str = "ONWARD_POSTGRES_PROGRAMS";

/// The user that runs a server if the tests run as root, because PostgreSQL refuses to run as root.
const USER: &str = "postgres";

/// Returns the directory of the programs. If there is none, prints that and returns `None`, and the
/// test ends.
///
/// # Panics
/// Panics if `ONWARD_REQUIRE_BACKENDS` asks for PostgreSQL and it is missing.
pub(super) fn programs() -> Option<PathBuf> {
    let programs = std::env::var_os(PROGRAMS).map(PathBuf::from);
    assert!(programs.is_some() || !is_required(), "PostgreSQL is required; run the tests with `cargo xtask test`");
    programs
}

/// Returns true if `ONWARD_REQUIRE_BACKENDS` requires PostgreSQL and its pooler.
pub(super) fn is_required() -> bool {
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"))
}

/// A directory of the user that runs a server, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Directory(tempfile::TempDir);

impl Directory {
    pub(super) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("onward-server-").tempdir().expect("a directory is made");
        if is_root() {
            run(Command::new("chown").arg(USER).arg(directory.path()));
        }
        Self(directory)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a file readable only by that user.
    pub(super) fn keep_for_user(&self, file: &Path) {
        std::fs::set_permissions(file, Permissions::from_mode(0o600)).expect("a file can be kept");
        if is_root() {
            run(Command::new("chown").arg(USER).arg(file));
        }
    }

    /// Returns a command that runs a program as that user, in this directory.
    pub(super) fn program(&self, program: &Path) -> Command {
        let mut command = if is_root() {
            // `setpriv` replaces itself by the program, so that stopping the child stops the
            // program.
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Runs a program, and panics if it fails.
pub(super) fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(status.success(), "{command:?} failed: {status}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a port that is not in use.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
