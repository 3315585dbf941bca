//! The source of lines, which can be read twice.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use anyhow::Context;

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
        Some(path) => Ok(Box::new(open_file(flag, path)?)),
    }
}

/// Opens a file of input. A directory can be opened, but not read.
fn open_file(flag: &str, path: &Path) -> anyhow::Result<File> {
    if path.is_dir() {
        return Err(cannot_read(flag, path, &io::Error::from(io::ErrorKind::IsADirectory)));
    }
    File::open(path).map_err(|error| cannot_read(flag, path, &error))
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
            return Ok(Self { file: open_file(flag, path)? });
        }
        let mut input = open(flag, path)?;
        let mut file = tempfile::tempfile().context("cannot make a temporary file for the input; set TMPDIR")?;
        io::copy(&mut input, &mut file).context("cannot read the input")?;
        Ok(Self { file })
    }

    /// Returns a reader from the first byte. Readers share one file position, so only one may be in
    /// use at a time.
    pub(crate) fn read(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        let mut file = self.file.try_clone().context("cannot read the input again")?;
        file.rewind().context("cannot read the input again")?;
        Ok(Box::new(file))
    }
}
