//! Durable checksums of a directory tree: one typed task for each file, whose results are kept.
//! Kill it while it runs and start it again. It continues where it was, because files in progress
//! keep their task and finished files keep their result.
//!
//! `cargo run --example checksums [DIRECTORY [STORE]]`. Without a store it keeps its work in
//! memory, without a directory it takes the sources of this crate.

use std::path::{Path, PathBuf};

use onward::TaskError;
use onward::prelude::*;
use onward::task::OnDuplicate;
use serde::{Deserialize, Serialize};

/// A file to read.
#[derive(Serialize, Deserialize)]
struct Checksum {
    path: PathBuf,
}

impl Task for Checksum {
    const KIND: &'static str = "checksum";
    type Output = u64;

    /// Returns a key for each file, so that a file is not taken twice while its checksum is
    /// computed.
    fn key(&self) -> Option<String> {
        Some(format!("{:016x}", fnv(self.path.as_os_str().as_encoded_bytes())))
    }

    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Skip
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/src").to_owned());
    let store = arguments.next();
    let is_new = store.is_none();
    let engine = match store {
        Some(store) => Engine::open(store).await?,
        None => Engine::builder().memory().open().await?,
    };
    engine.register(|task: Checksum, _| async move { checksum(task.path).await });

    let mut handles = Vec::new();
    for path in files(Path::new(&root))? {
        handles.push((path.clone(), engine.submit(Checksum { path }).await?));
    }
    let summary = engine.drain().await?;
    assert!(!is_new || summary.ended() == handles.len() as u64, "a file has no task, or more than one");
    for (path, handle) in handles {
        show(&path, handle.wait().await);
    }
    print_line(&format!("{} files read, {} could not be read", summary.completed, summary.ended() - summary.completed));
    Ok(())
}

/// Returns the checksum of a file. A missing file is a permanent failure; any other error may pass
/// on a retry.
async fn checksum(path: PathBuf) -> Result<u64, Failure> {
    let reading = tokio::task::spawn_blocking(move || std::fs::read(path));
    match reading.await? {
        Ok(bytes) => Ok(fnv(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::permanent(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the 64-bit FNV-1a hash.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn show(path: &Path, sum: Result<u64, TaskError>) {
    match sum {
        Ok(sum) => print_line(&format!("{sum:016x}  {}", path.display())),
        Err(error) => print_line(&format!("----------------  {}: {error}", path.display())),
    }
}

#[expect(clippy::print_stdout, reason = "its output")]
fn print_line(line: &str) {
    println!("{line}");
}
