//! The machine and the date of a record.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// The first line of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) machine: String,
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) rust: String,
    pub(crate) commit: String,
    pub(crate) runs: u32,
    pub(crate) quick: bool,
}

pub(crate) fn describe(bench: &Path, runs: u32, quick: bool) -> Result<Machine> {
    let cpu = read("/proc/cpuinfo");
    let processor = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let git = |arguments: &[&str]| said_by(Command::new("git").arg("-C").arg(bench).args(arguments));
    let changed = if git(&["status", "--porcelain"]).is_empty() { "" } else { " with changes" };
    Ok(Machine {
        machine: name(),
        date: today(),
        processor: processor.trim_start_matches([' ', '\t', ':']).to_owned(),
        cores: std::thread::available_parallelism()?.get(),
        kernel: read("/proc/sys/kernel/osrelease"),
        rust: said_by(Command::new("rustc").arg("--version")),
        commit: git(&["rev-parse", "--short", "HEAD"]) + changed,
        runs,
        quick,
    })
}

/// Returns the machine's name.
pub(crate) fn name() -> String {
    let name = read("/proc/sys/kernel/hostname");
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns the date, in UTC.
#[expect(clippy::disallowed_methods, reason = "a record carries the date on which it was made")]
pub(crate) fn today() -> String {
    jiff::Timestamp::now().to_string().chars().take(10).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn said_by(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
