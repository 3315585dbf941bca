//! The pipe through which a command reports.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

/// The longest line of a report, in bytes. A longer line is split in two.
const LINE_BYTES: u64 = 4096;

/// A named pipe of one attempt. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ReportPipe {
    path: PathBuf,
    reader: BufReader<Receiver>,
    /// A writing end that this process keeps open. Without it, a command that closes the pipe would
    /// end the stream for the next writer.
    _keep_open: Sender,
    line: Vec<u8>,
}

impl ReportPipe {
    /// Creates the pipe. Also creates the directory, because a cleaner of temporary files may have
    /// removed it.
    pub(super) fn open(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let receiver = OpenOptions::new().open_receiver(&path)?;
        let keep_open = OpenOptions::new().open_sender(&path)?;
        Ok(Self { path, reader: BufReader::new(receiver), _keep_open: keep_open, line: Vec::new() })
    }

    /// Returns the path to which the command writes.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next line. Cancel-safe: a partly read line is kept.
    pub(super) async fn next(&mut self) -> io::Result<String> {
        loop {
            let room = LINE_BYTES.saturating_sub(u64::try_from(self.line.len()).unwrap_or(LINE_BYTES));
            (&mut self.reader).take(room).read_until(b'\n', &mut self.line).await?;
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
            if !line.is_empty() {
                return Ok(line);
            }
        }
    }

    /// Returns the unread lines after the command has ended.
    pub(super) fn rest(mut self) -> Vec<String> {
        let mut rest = std::mem::take(&mut self.line);
        rest.extend_from_slice(self.reader.buffer());
        let mut chunk = [0; 4096];
        // The pipe is read directly, because the runtime may not have been notified yet that it is
        // readable.
        while let Ok(count @ 1..) = rustix::io::read(self.reader.get_ref(), &mut chunk) {
            rest.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8_lossy(&rest).lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
    }
}

impl Drop for ReportPipe {
    fn drop(&mut self) {
        // An error is ignored, because the whole directory is removed when the worker ends.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_arrive_from_several_writers_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let mut report_pipe = ReportPipe::open(directory.path(), "task-1").unwrap();
        for line in ["progress 0.5", "progress 0.7"] {
            std::fs::write(report_pipe.path(), format!("{line}\n")).unwrap();
            assert_eq!(report_pipe.next().await.unwrap(), line);
        }
    }

    #[tokio::test]
    async fn what_was_not_read_in_time_is_not_lost() {
        let directory = tempfile::tempdir().unwrap();
        let report_pipe = ReportPipe::open(directory.path(), "task-1").unwrap();
        std::fs::write(report_pipe.path(), "retry-after 3s\nfail gone").unwrap();
        assert_eq!(report_pipe.rest(), ["retry-after 3s", "fail gone"]);
    }
}
