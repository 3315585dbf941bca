//! Where lines come from, and reading them twice.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use anyhow::Context;

use super::lines::{Delimiter, Lines};
use crate::exit_code::wrong_usage;

/// Input that is there as a whole, and so can be read twice: once to know what it is, once to work
/// through it.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
}

/// Opens the input for one reading: the file, which `flag` names, or stdin where none is named.
pub(crate) fn open(flag: &str, path: Option<&Path>) -> anyhow::Result<Box<dyn Read + Send>> {
    match path {
        None => Ok(Box::new(io::stdin())),
        Some(path) => {
            let file = File::open(path).map_err(|error| cannot_read(flag, path, &error))?;
            Ok(Box::new(file))
        }
    }
}

fn cannot_read(flag: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    wrong_usage(format!("{flag} {}: {error}; name a file that can be read", path.display()))
}

impl Source {
    /// Takes the whole input. A regular file is used where it is; anything else is copied to a
    /// temporary file first (in `$TMPDIR`; it has no name and is gone with this process), so that
    /// the memory needed does not depend on its length.
    pub(crate) fn take(flag: &str, path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path.filter(|path| path.is_file()) {
            let file = File::open(path).map_err(|error| cannot_read(flag, path, &error))?;
            return Ok(Self { file });
        }
        let mut input = open(flag, path)?;
        let mut file = tempfile::tempfile().context("cannot make a temporary file for the input; set TMPDIR")?;
        io::copy(&mut input, &mut file).context("cannot read the input")?;
        Ok(Self { file })
    }

    /// Its lines, from the first. The readings share one position, so only one may be under way at
    /// a time.
    pub(crate) fn lines(&self, delimiter: Delimiter) -> anyhow::Result<Lines> {
        let mut file = self.file.try_clone().context("cannot read the input again")?;
        file.rewind().context("cannot read the input again")?;
        Ok(Lines::new(Box::new(file), delimiter))
    }
}
