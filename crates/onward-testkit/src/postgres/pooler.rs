//! A pooler in front of a server.

use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use super::directory::{Directory, free_port, is_required};
use super::server::Server;

/// PgBouncer in transaction mode in front of a server, stopped when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    program: &'static Path,
    directory: Directory,
    port: u16,
    child: Option<Child>,
}

impl Pooler {
    /// Starts a pooler. If there is no PgBouncer here, prints that and returns `None`.
    ///
    /// # Panics
    /// Panics if the pooler does not start, or if it is missing and `ONWARD_REQUIRE_BACKENDS` asks
    /// for it.
    #[must_use]
    #[expect(clippy::print_stdout, reason = "a test that does not run says so")]
    pub fn start(server: &Server) -> Option<Self> {
        let places = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().map(Path::new);
        let Some(program) = places.into_iter().find(|program| program.exists()) else {
            assert!(!is_required(), "PgBouncer is required; run the tests with `cargo xtask test`");
            println!("not tested: there is no pgbouncer");
            return None;
        };
        let (directory, port) = (Directory::new(), free_port());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=onward\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = any\npool_mode = transaction\nunix_socket_dir =\nignore_startup_parameters = extra_float_digits\n",
            server.port()
        );
        std::fs::write(directory.path().join("pgbouncer.ini"), settings).expect("its settings are written");
        let mut pooler = Self { program, directory, port, child: None };
        pooler.start_stopped();
        Some(pooler)
    }

    /// Returns the URL of the pooler.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://onward@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills the pooler (`kill -9`), runs `while_down`, and starts the pooler again.
    ///
    /// # Panics
    /// Panics if the pooler does not start again.
    pub fn crash(&mut self, while_down: impl FnOnce()) {
        self.kill();
        while_down();
        self.start_stopped();
    }

    fn start_stopped(&mut self) {
        let mut start = self.directory.program(self.program);
        start.arg("-q").arg(self.directory.path().join("pgbouncer.ini"));
        self.child = Some(start.spawn().expect("it starts"));
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "the pooler ended: {ended:?}");
            std::thread::yield_now();
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.kill();
    }
}
