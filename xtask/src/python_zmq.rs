//! ZeroMQ for Python, for a test of interoperation.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::libzmq::{install, run};

/// Tells the tests which interpreter has it.
const VARIABLE: &str = "ONWARD_PYTHON_ZMQ";
/// Debian's interpreter, for which Debian's package is; another may be first in the path.
const INTERPRETER: &str = "/usr/bin/python3";
const PACKAGE: &str = "python3-zmq";

/// Installs it if it is missing and may be installed.
pub(crate) fn prepare() -> Result<Vec<(String, String)>> {
    let check = || run(Command::new(INTERPRETER).args(["-c", "import zmq"]));
    if check().is_err() {
        install(PACKAGE).with_context(|| format!("ZeroMQ for Python is missing; install {PACKAGE}"))?;
        check()?;
    }
    Ok(vec![(VARIABLE.into(), INTERPRETER.into())])
}
