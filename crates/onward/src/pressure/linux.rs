//! Pressure stall information of Linux (4.20 and later): the share of time in which processes
//! waited for a resource.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use procfs_core::{ProcError, ProcResult, parse_pressure_record};

use super::source::PressureSource;
use crate::error::{Error, Result};

/// The directory of the kernel's pressure files.
const DIRECTORY: &str = "/proc/pressure";

/// The share of the last ten seconds in which some process of the machine waited for the processor,
/// for memory or for the disk. The source is `/proc/pressure`, so it works on Linux only.
///
/// ```no_run
/// # fn example() -> Result<(), onward::Error> {
/// use onward::Engine;
/// use onward::pressure::StallPressure;
///
/// let builder = Engine::builder()
///     .pressure_source(StallPressure::memory()?)
///     .pressure_source(StallPressure::disk()?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct StallPressure {
    of: Resource,
    file: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Resource {
    Cpu,
    Memory,
    Disk,
}

impl StallPressure {
    /// Returns a source for the processor. Programs that compute a lot wait for it most of the
    /// time, without harm.
    ///
    /// # Errors
    /// An error if the kernel does not report it.
    pub fn cpu() -> Result<Self> {
        Self::of(Resource::Cpu)
    }

    /// Returns a source for memory: pages are reclaimed, swapped or read again.
    ///
    /// # Errors
    /// An error if the kernel does not report it.
    pub fn memory() -> Result<Self> {
        Self::of(Resource::Memory)
    }

    /// Returns a source for disks.
    ///
    /// # Errors
    /// An error if the kernel does not report it.
    pub fn disk() -> Result<Self> {
        Self::of(Resource::Disk)
    }

    fn of(of: Resource) -> Result<Self> {
        Self::in_directory(Path::new(DIRECTORY), of)
    }

    fn in_directory(directory: &Path, of: Resource) -> Result<Self> {
        let source = Self { of, file: directory.join(of.file()) };
        match source.read() {
            Ok(_) => Ok(source),
            Err(error) => Err(Error::invalid(format!(
                "`{}` cannot be read, so the pressure of {} is not known ({error}); it needs Linux 4.20 with pressure stall \
                 information, which some systems switch on by `psi=1` at boot",
                source.file.display(),
                of.name(),
            ))),
        }
    }

    /// Returns the pressure in percent.
    fn read(&self) -> ProcResult<f32> {
        for line in BufReader::new(File::open(&self.file)?).lines() {
            let line = line?;
            // Read line by line, because before Linux 5.13 the processor's file has only this line.
            if line.starts_with("some ") {
                return Ok(parse_pressure_record(&line)?.avg10);
            }
        }
        Err(ProcError::Incomplete(Some(self.file.clone())))
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

    fn file(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "io",
        }
    }
}

impl PressureSource for StallPressure {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn pressure(&self) -> f32 {
        match self.read() {
            Ok(percent) => percent / 100.0,
            Err(error) => {
                tracing::warn!(%error, "`{}` could not be read; it counts as no pressure", self.file.display());
                0.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const ALL: [Resource; 3] = [Resource::Cpu, Resource::Memory, Resource::Disk];

    /// Creates the kernel's files. The processor's file has no `full` line, as on kernels before
    /// 5.13.
    fn pressure_files() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let some = |of: &str| format!("some avg10={of} avg60=91.00 avg300=92.00 total=93000000\n");
        let full = "full avg10=94.00 avg60=95.00 avg300=96.00 total=97000000\n";
        std::fs::write(directory.path().join("cpu"), some("12.50")).unwrap();
        std::fs::write(directory.path().join("memory"), some("0.00") + full).unwrap();
        std::fs::write(directory.path().join("io"), some("100.00") + full).unwrap();
        directory
    }

    /// Shows: T18
    #[test]
    fn each_source_is_the_share_of_the_last_ten_seconds_in_which_something_waited_for_it() {
        let directory = pressure_files();
        let sources = ALL.map(|of| StallPressure::in_directory(directory.path(), of).unwrap());
        let readings = sources.each_ref().map(|source| (source.name(), source.pressure()));
        assert_eq!(readings, [("cpu", 0.125), ("memory", 0.0), ("disk", 1.0)]);
    }

    /// Shows: T18
    #[test]
    fn a_source_returns_the_current_values_of_the_kernel() {
        let directory = pressure_files();
        let source = StallPressure::in_directory(directory.path(), Resource::Memory).unwrap();
        std::fs::copy(directory.path().join("io"), directory.path().join("memory")).unwrap();
        assert_eq!(source.pressure(), 1.0);
    }

    /// Shows: T18
    #[test]
    fn what_the_kernel_no_longer_reports_is_no_pressure() {
        let directory = pressure_files();
        let source = StallPressure::in_directory(directory.path(), Resource::Disk).unwrap();
        std::fs::remove_file(directory.path().join("io")).unwrap();
        assert_eq!(source.pressure(), 0.0);
    }

    /// Shows: T18
    #[test]
    fn a_source_that_the_kernel_lacks_is_an_error_that_names_what_it_needs() {
        let directory = pressure_files();
        std::fs::remove_file(directory.path().join("cpu")).unwrap();
        std::fs::write(directory.path().join("memory"), "some avg10=much\n").unwrap();
        for (of, file) in [(Resource::Cpu, "cpu"), (Resource::Memory, "memory")] {
            let error = StallPressure::in_directory(directory.path(), of).unwrap_err().to_string();
            let file = directory.path().join(file).display().to_string();
            assert!(error.contains(&file) && error.contains("psi=1"), "{error}");
        }
    }

    /// Shows: T18
    #[test]
    fn the_files_of_this_machine_are_read_where_it_has_them() {
        for of in ALL {
            let is_readable = std::fs::read_to_string(Path::new(DIRECTORY).join(of.file())).is_ok();
            let source = StallPressure::of(of);
            assert_eq!(source.is_ok(), is_readable, "{source:?}");
            assert!(source.is_ok_and(|source| (0.0..=1.0).contains(&source.pressure())) || !is_readable, "{of:?}");
        }
    }
}
