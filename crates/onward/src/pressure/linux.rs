//! Pressure stall information of Linux (4.20 and later): for which share of the time something waited for a resource.

use std::fs::File;
use std::io::BufReader;

use procfs_core::prelude::FromBufRead;
use procfs_core::{CpuPressure, IoPressure, MemoryPressure, ProcResult};

use super::source::PressureSource;
use crate::error::{Error, Result};

/// The share of the last ten seconds in which some process of the machine waited for the processor, for memory or for the disk, as the kernel
/// tells in `/proc/pressure`. On Linux only.
///
/// ```no_run
/// # fn example() -> Result<(), onward::Error> {
/// use onward::{Engine, StallPressure};
///
/// let builder = Engine::builder().pressure_source(StallPressure::memory()?).pressure_source(StallPressure::disk()?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct StallPressure {
    of: Resource,
}

#[derive(Debug, Clone, Copy)]
enum Resource {
    Cpu,
    Memory,
    Disk,
}

impl StallPressure {
    /// For the processor. Programs that compute a lot wait for it most of the time, and come to no harm.
    ///
    /// # Errors
    /// If the kernel does not tell it.
    pub fn cpu() -> Result<Self> {
        Self::of(Resource::Cpu)
    }

    /// For memory: pages are reclaimed, swapped or read again.
    ///
    /// # Errors
    /// If the kernel does not tell it.
    pub fn memory() -> Result<Self> {
        Self::of(Resource::Memory)
    }

    /// For disks.
    ///
    /// # Errors
    /// If the kernel does not tell it.
    pub fn disk() -> Result<Self> {
        Self::of(Resource::Disk)
    }

    fn of(of: Resource) -> Result<Self> {
        match of.read() {
            Ok(_) => Ok(Self { of }),
            Err(error) => Err(Error::invalid(format!(
                "`{}` cannot be read, so the pressure of {} is not known ({error}); it needs Linux 4.20 with pressure stall \
                 information, which some systems switch on by `psi=1` at boot",
                of.path(),
                of.name(),
            ))),
        }
    }
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Cpu => "/proc/pressure/cpu",
            Self::Memory => "/proc/pressure/memory",
            Self::Disk => "/proc/pressure/io",
        }
    }

    /// In percent.
    fn read(self) -> ProcResult<f32> {
        let text = BufReader::new(File::open(self.path())?);
        let some = match self {
            Self::Cpu => CpuPressure::from_buf_read(text)?.some,
            Self::Memory => MemoryPressure::from_buf_read(text)?.some,
            Self::Disk => IoPressure::from_buf_read(text)?.some,
        };
        Ok(some.avg10)
    }
}

impl PressureSource for StallPressure {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn pressure(&self) -> f32 {
        match self.of.read() {
            Ok(percent) => percent / 100.0,
            Err(error) => {
                tracing::warn!(%error, "`{}` could not be read; it counts as no pressure", self.of.path());
                0.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_a_share() {
        for source in [StallPressure::cpu(), StallPressure::memory(), StallPressure::disk()] {
            // Where the kernel does not tell, the error says what it needs.
            match source {
                Ok(source) => assert!((0.0..=1.0).contains(&source.pressure()), "{source:?}"),
                Err(error) => assert!(error.to_string().contains("psi=1"), "{error}"),
            }
        }
    }
}
