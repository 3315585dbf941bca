//! A SOCKS proxy, for an interoperation test.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::libzmq::{install, run};

/// The variable by which the tests find the proxy.
const VARIABLE: &str = "ONWARD_MICROSOCKS";
/// Debian's package, and the program in it.
const PACKAGE: &str = "microsocks";

/// Installs the proxy if it is missing and may be installed.
pub(crate) fn prepare() -> Result<Vec<(String, String)>> {
    // The program has no option that ends with success, so the shell looks for it.
    let check = || run(Command::new("sh").args(["-c", "command -v microsocks"]));
    if check().is_err() {
        install(PACKAGE).with_context(|| format!("the SOCKS proxy is missing; install {PACKAGE}"))?;
        check()?;
    }
    Ok(vec![(VARIABLE.into(), PACKAGE.into())])
}
