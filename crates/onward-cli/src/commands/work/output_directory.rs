//! Files with the output of each attempt's command.

use std::io;
use std::path::{Path, PathBuf};

use onward::Context;

use crate::exit_code::wrong_usage;
use crate::process::Finished;

/// A directory of such files.
#[derive(Debug)]
pub(super) struct OutputDirectory(PathBuf);

impl OutputDirectory {
    /// Creates the directory.
    ///
    /// # Errors
    /// Returns a usage error if it cannot be created.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path).map_err(|error| {
            wrong_usage(format!("--output-dir {}: {error}; name a path that can be written", path.display()))
        })?;
        Ok(Self(path.to_owned()))
    }

    /// Writes both streams, as far as they were kept.
    pub(super) async fn write(&self, context: &Context, finished: &Finished) -> io::Result<()> {
        for (stream, end) in [(&finished.stdout, "out"), (&finished.stderr, "err")] {
            let path = self.0.join(format!("{}.{}.{end}", context.id(), context.attempt()));
            tokio::fs::write(path, &stream.bytes).await?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}
