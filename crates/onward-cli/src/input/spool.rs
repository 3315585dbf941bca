//! The source of lines, which can be read twice.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use anyhow::Context;

use super::lines::{Delimiter, Lines};
use crate::exit_code::wrong_usage;

/// A complete input that can be read twice: once to identify it, once to process it.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
}

/// Opens the input for one pass: the file that `flag` names, or stdin if none is named.
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
    /// Takes the whole input. Uses a regular file in place. Copies any other input to a temporary
    /// file first, so that the memory needed does not depend on its length. The temporary file is
    /// in `$TMPDIR`, has no name and is gone when this process ends.
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

    /// Returns the lines from the first. Passes share one file position, so only one may be in
    /// progress at a time.
    pub(crate) fn lines(&self, delimiter: Delimiter) -> anyhow::Result<Lines> {
        let mut file = self.file.try_clone().context("cannot read the input again")?;
        file.rewind().context("cannot read the input again")?;
        Ok(Lines::new(Box::new(file), delimiter))
    }
}
