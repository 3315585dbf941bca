//! A description of a program to run.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;

use crate::exit_code::wrong_usage;

/// A program with its arguments, its input and additions to its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// The program.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Variables that are added to its environment.
    pub(crate) environment: Vec<(Cow<'static, str>, OsString)>,
    /// The bytes that it reads on stdin; `None` for empty input.
    pub(crate) stdin: Option<Bytes>,
}

/// Checks that a program can be found, so that a typing error is reported before any work is
/// claimed.
pub(crate) fn find_program(program: &OsStr) -> anyhow::Result<()> {
    let path = Path::new(program);
    let found = if path.components().count() > 1 || path.is_absolute() {
        is_executable(path)
    } else {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&directories).any(|directory| is_executable(&directory.join(path)))
    };
    if found {
        return Ok(());
    }
    Err(wrong_usage(format!(
        "the command `{}` is not a program that can be run; check its name and PATH (for a line of shell, write: -- sh -c '…' sh)",
        path.display()
    )))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_path_is_found() {
        assert!(find_program(OsStr::new("sh")).is_ok());
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_remedy() {
        let message = find_program(OsStr::new("no-such-program")).unwrap_err().to_string();
        assert!(message.contains("`no-such-program`") && message.contains("PATH"), "{message}");
    }
}
