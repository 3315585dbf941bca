//! ZeroMQ for Python, for an interoperation test.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::libzmq::{install, run};

/// The variable that names the interpreter with ZeroMQ to the tests.
const VARIABLE: &str = "ONWARD_PYTHON_ZMQ";
/// Debian's interpreter. Debian's package is for this one, and another may come first in the path.
const INTERPRETER: &str = "/usr/bin/python3";
const PACKAGE: &str = "python3-zmq";

/// Installs the package if it is missing and may be installed.
pub(crate) fn prepare() -> Result<Vec<(String, String)>> {
    let check = || run(Command::new(INTERPRETER).args(["-c", "import zmq"]));
    if check().is_err() {
        install(PACKAGE).with_context(|| format!("ZeroMQ for Python is missing; install {PACKAGE}"))?;
        check()?;
    }
    Ok(vec![(VARIABLE.into(), INTERPRETER.into())])
}
