//! The peer of the interoperation tests: a small program that uses libzmq.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The variable by which the tests find the program.
const PEER: &str = "ONWARD_LIBZMQ_PEER";
const SOURCE: &str = "crates/onward-zmtp/tests/it/zmtp/libzmq_peer.c";
/// Debian's package with the library and its header.
const PACKAGE: &str = "libzmq3-dev";

/// Compiles the program. Installs the library first if it is missing and may be installed.
pub(crate) fn prepare() -> Result<Vec<(String, String)>> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&manifest).parent().context("xtask has no parent directory")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let peer = target.join("libzmq").join("peer");
    std::fs::create_dir_all(target.join("libzmq"))?;
    if compile(&root.join(SOURCE), &peer).is_err() {
        install(PACKAGE)
            .with_context(|| format!("the header and the library of libzmq are missing; install {PACKAGE}"))?;
        compile(&root.join(SOURCE), &peer)?;
    }
    Ok(vec![(PEER.into(), peer.display().to_string())])
}

/// Installs a Debian package.
pub(crate) fn install(package: &str) -> Result<()> {
    run(Command::new("apt-get").arg("update"))?;
    run(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends", package]))
}

fn compile(source: &Path, peer: &Path) -> Result<()> {
    run(Command::new("cc").args(["-O2", "-Wall", "-o"]).arg(peer).arg(source).args(["-lzmq", "-lpthread"]))
}

/// Runs a command and returns an error with its standard error if it fails. Unlike
/// [`command::run`](crate::command::run) it prints nothing, because a first failure is expected
/// where something is not installed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), text.trim_end());
    Ok(())
}
