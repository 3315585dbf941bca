//! The limit of open files, which bounds how many commands run at once.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files for everything but commands: the store, its listeners, and one start in progress.
const RESERVE: u64 = 64;

/// Open files that every command of this program needs.
const LEAST: u64 = 256;

/// The limits with which this process was started. Child commands get them back, because some
/// programs are slow when many files are allowed.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to what every command of this program needs.
pub(crate) fn prepare() {
    raise(LEAST);
}

/// Returns the limits with which this process was started.
pub(super) fn limits_at_start() -> Rlimit {
    *AT_START.get_or_init(|| getrlimit(Resource::Nofile))
}

/// The number of commands that can run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobLimit {
    /// The number.
    pub(crate) jobs: usize,
    /// The number of files that this process may have open; `None` for no limit.
    pub(crate) files: Option<u64>,
}

impl JobLimit {
    /// Returns a notice if fewer commands run at once than `asked`.
    pub(crate) fn notice(self, asked: usize) -> Option<String> {
        let files = self.files.filter(|_| self.jobs < asked)?;
        Some(format!(
            "--jobs {asked}: {} commands run at once, because this process may have at most {files} files open (ulimit -Hn); raise \
             that for more",
            self.jobs
        ))
    }
}

/// Raises the soft limit, up to the hard one, so that `jobs` commands can run at once. Each of them
/// needs `files_each` open files of this process. Call it after everything else is open.
///
/// # Errors
/// Returns an error if not even one command can run. The text names the limit and the remedy.
pub(crate) fn job_limit(jobs: usize, files_each: u64) -> anyhow::Result<JobLimit> {
    let open = open_files();
    let files = raise(open.saturating_add(RESERVE).saturating_add(files_each.saturating_mul(jobs as u64)));
    let room = JobLimit { jobs: fitting(files, open, jobs, files_each), files };
    match (room.jobs, files) {
        (0, Some(files)) => anyhow::bail!(
            "this process may have {files} files open (ulimit -n), and {open} are; to run a command it needs {} more; raise the limit",
            RESERVE + files_each
        ),
        _ => Ok(room),
    }
}

fn fitting(files: Option<u64>, open: u64, jobs: usize, files_each: u64) -> usize {
    let Some(files) = files else { return jobs };
    let left = files.saturating_sub(open).saturating_sub(RESERVE) / files_each;
    jobs.min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Raises the soft limit to `wanted` if it is lower. Returns the resulting limit.
fn raise(wanted: u64) -> Option<u64> {
    limits_at_start();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return current;
    }
    let raised = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    // A system may reject a value that its hard limit allows. Then the soft limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: raised, maximum });
    getrlimit(Resource::Nofile).current
}

/// Returns the number of files that this process has open, or an estimate if the system does not
/// provide it.
fn open_files() -> u64 {
    std::fs::read_dir("/dev/fd").map_or(RESERVE, |files| files.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_commands_fit_as_files_are_left_beside_the_reserve() {
        assert_eq!(fitting(Some(RESERVE + 10 + 4 * 7 + 3), 10, 100, 4), 7);
        assert_eq!(fitting(Some(1_000_000), 10, 100, 4), 100);
        assert_eq!(fitting(Some(20), 10, 100, 4), 0);
        assert_eq!(fitting(None, 10, 100, 4), 100);
    }
}
