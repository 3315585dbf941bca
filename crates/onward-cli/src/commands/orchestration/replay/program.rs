//! The program that contains the code of orchestrations.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use clap::Args;
use tokio::process::Command;

/// The remedy for a program whose output is not in the expected form.
pub(super) const REMEDY: &str =
    "its `main` should end with `onward::orchestration::check_main`, and print nothing else to stdout";

/// The program and its arguments.
#[derive(Debug, Args)]
pub(crate) struct Program {
    /// The program that contains the code; its `main` calls `onward::orchestration::check_main`
    #[arg(long, value_name = "PROGRAM")]
    program: PathBuf,
    /// Argument that the program receives before all others; may be given several times
    #[arg(long = "argument", value_name = "TEXT", allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Program {
    /// Runs the program with further arguments, and returns its output.
    ///
    /// # Errors
    /// Returns an error if it could not be run.
    pub(super) async fn run(&self, further: &[OsString]) -> anyhow::Result<String> {
        let mut command = Command::new(in_directory(&self.program));
        command.args(&self.arguments).args(further).stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
        let ran = command.output().await.with_context(|| format!("the program {self} could not be run"))?;
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.display().fmt(f)
    }
}

/// Returns the path to run. A bare name that is a file in the current directory means that file,
/// not a program in PATH.
fn in_directory(program: &Path) -> PathBuf {
    if program.is_file() && program.components().count() == 1 {
        Path::new(".").join(program)
    } else {
        program.to_owned()
    }
}
