//! libzmq, in a process of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::row::{Shape, Workload};

/// The compiled program, if it could be compiled.
pub struct Program(Option<PathBuf>);

impl Program {
    /// Compiles it with the system's compiler.
    pub fn compile() -> Result<Self> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/libzmq.c");
        let program = std::env::temp_dir().join(format!("bench-libzmq-{}", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-O2", "-Wall", "-o"])
            .arg(&program)
            .args([source, "-lzmq", "-lpthread"])
            .status()
            .context("cannot run cc")?;
        Ok(Self(compiled.success().then_some(program)))
    }

    /// Messages a second, or microseconds for a round trip; `None` if it could not be compiled, or has nothing of the kind.
    pub fn measure(&self, workload: Workload, time: Duration) -> Result<Option<f64>> {
        let shape = match workload.shape {
            Shape::Stream => "stream",
            Shape::Batch => "batch",
            Shape::RoundTrip => "round_trip",
            Shape::Many => return Ok(None),
        };
        let Some(program) = &self.0 else { return Ok(None) };
        let output = Command::new(program)
            .args([workload.pair, shape, &workload.bytes.to_string(), &time.as_secs_f64().to_string()])
            .output()
            .context("cannot run libzmq's program")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value = text.trim().parse().with_context(|| format!("libzmq's program said `{}`", text.trim()))?;
        Ok(Some(value))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(program) = &self.0 {
            let _ = std::fs::remove_file(program);
        }
    }
}
