//! The pressure that a worker checks before it starts tasks that are not urgent.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use onward::EngineBuilder;
use onward_store::IoKind;

use crate::exit_code::wrong_usage;
use crate::values::parse_size;

/// Sources of pressure.
#[derive(Debug, Args)]
pub(super) struct PressureOptions {
    /// Start only urgent tasks while programs on this machine wait for this resource (Linux); may
    /// be given several times
    #[arg(long = "pressure", value_name = "RESOURCE")]
    resources: Vec<Resource>,
    /// Start only urgent tasks while tasks exceed this many bytes per second; KIND is read, write,
    /// receive or send: receive=50MiB; once for each
    #[arg(long = "bandwidth", value_name = "KIND=SIZE")]
    bandwidths: Vec<Bandwidth>,
}

/// A resource that programs may wait for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Resource {
    Memory,
    Disk,
    Cpu,
}

/// The largest number of bytes of a kind that may be moved per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bandwidth {
    kind: IoKind,
    bytes: u64,
}

impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, size) = text.split_once('=').unwrap_or((text, ""));
        // The names match the options of `onward submit`.
        let kind = match kind {
            "read" => IoKind::DiskRead,
            "write" => IoKind::DiskWritten,
            "receive" => IoKind::NetworkReceived,
            "send" => IoKind::NetworkSent,
            _ => {
                return Err(format!(
                    "`{text}` is not a bandwidth; write it as read, write, receive or send =SIZE, such as receive=50MiB"
                ));
            }
        };
        match parse_size(size)? {
            0 => Err("a bandwidth of 0 would let nothing start; leave it out for no limit".to_owned()),
            bytes => Ok(Self { kind, bytes }),
        }
    }
}

impl PressureOptions {
    /// Adds the sources to the engine.
    ///
    /// # Errors
    /// Returns a usage error if the kernel does not report a pressure.
    pub(super) fn add_to(&self, mut builder: EngineBuilder) -> anyhow::Result<EngineBuilder> {
        for resource in &self.resources {
            builder = add(builder, *resource)?;
        }
        Ok(self.bandwidths.iter().fold(builder, |builder, Bandwidth { kind, bytes }| builder.bandwidth(*kind, *bytes)))
    }
}

#[cfg(target_os = "linux")]
fn add(builder: EngineBuilder, resource: Resource) -> anyhow::Result<EngineBuilder> {
    let source = match resource {
        Resource::Memory => onward::pressure::StallPressure::memory(),
        Resource::Disk => onward::pressure::StallPressure::disk(),
        Resource::Cpu => onward::pressure::StallPressure::cpu(),
    };
    Ok(builder.pressure_source(source.map_err(|error| wrong_usage(format!("--pressure: {error}")))?))
}

#[cfg(not(target_os = "linux"))]
fn add(_builder: EngineBuilder, _resource: Resource) -> anyhow::Result<EngineBuilder> {
    Err(wrong_usage("--pressure needs Linux, which reports how long programs wait; leave it out"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use onward::Engine;
    use onward_store::{NewTask, Priority};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        pressure: PressureOptions,
    }

    /// Returns the sources that an engine with these arguments consults. Returns `None` if the
    /// kernel does not report one of them.
    async fn sources(typed: &[&str]) -> Option<Vec<String>> {
        let typed = Typed::parse_from(["work"].iter().chain(typed));
        let engine = typed.pressure.add_to(Engine::builder().memory()).ok()?.open().await.unwrap();
        engine.handle("any", |_| async { Ok(()) });
        let urgent = NewTask { priority: Priority::URGENT, ..NewTask::new("any").unwrap() };
        engine.submit_task(urgent).await.unwrap();
        engine.drain().await.unwrap();
        Some(engine.snapshot().pressure.sources.into_iter().map(|source| source.name).collect())
    }

    /// Shows: T18
    #[tokio::test]
    async fn the_engine_asks_what_was_typed() {
        let typed = ["--bandwidth", "send=1KiB", "--bandwidth", "read=1KiB"];
        assert_eq!(sources(&typed).await.unwrap(), ["disk read", "network sent"]);
        let is_readable = std::fs::read_to_string("/proc/pressure/memory").is_ok();
        let named = sources(&["--pressure", "memory", "--pressure", "disk", "--pressure", "cpu"]).await;
        let all = ["memory", "disk", "cpu"].map(str::to_owned).to_vec();
        assert_eq!(named, is_readable.then_some(all));
    }

    #[test]
    fn a_bandwidth_is_a_kind_and_a_size() {
        let read = |text: &str| text.parse::<Bandwidth>().map(|bandwidth| (bandwidth.kind, bandwidth.bytes));
        assert_eq!(read("read=1"), Ok((IoKind::DiskRead, 1)));
        assert_eq!(read("write=2KiB"), Ok((IoKind::DiskWritten, 2048)));
        assert_eq!(read("receive=50MiB"), Ok((IoKind::NetworkReceived, 52_428_800)));
        assert_eq!(read("send=512"), Ok((IoKind::NetworkSent, 512)));
    }
}
