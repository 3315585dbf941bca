//! The same bytes over a bare Unix stream, by blocking threads: vectored writes of 64 messages, reads of 256 KiB.

use std::io::{IoSlice, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::row::Workload;

const MESSAGES_IN_A_WRITE: usize = 64;
const READ_BYTES: usize = 256 * 1024;

/// Messages a second.
pub fn measure(workload: Workload, time: Duration) -> Result<Option<f64>> {
    let header = if workload.bytes < 256 { 2 } else { 9 };
    let (mut writer, mut reader) = UnixStream::pair()?;
    let writing = std::thread::spawn(move || {
        let message = vec![0xCD; header + workload.bytes];
        let slices = [IoSlice::new(&message); MESSAGES_IN_A_WRITE];
        while writer.write_vectored(&slices).is_ok_and(|written| written > 0) {}
    });
    let (start, mut received) = (Instant::now(), 0);
    let mut buffer = vec![0; READ_BYTES];
    while start.elapsed() < time {
        received += reader.read(&mut buffer)?;
    }
    let value = received as f64 / (header + workload.bytes) as f64 / start.elapsed().as_secs_f64();
    drop(reader);
    let _ = writing.join();
    Ok(Some(value))
}
