//! Finds temporary files that the tests left behind. A test that succeeds must remove what it made.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The prefix of the name of a temporary folder for one run of the tests. The number of the process
/// follows.
pub(crate) const FOLDER: &str = "onward-tests-";

/// The most paths that a message names.
const MAX_NAMED: usize = 50;

/// Makes an empty folder for the temporary files of one run of the tests. `cargo xtask clean-stale`
/// recognises its name.
pub(crate) fn folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Returns an error that names each path in `directory`, which must be empty.
pub(crate) fn check(directory: &Path) -> Result<()> {
    let mut left = Vec::new();
    collect(directory, &mut left).with_context(|| format!("cannot read {}", directory.display()))?;
    if left.is_empty() {
        return Ok(());
    }
    left.sort();
    let named: String = left.iter().take(MAX_NAMED).map(|path| format!("\n  {path}")).collect();
    let more = left.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    bail!(
        "the tests left {} paths in {}; have each test remove what it makes:{named}{more}",
        left.len(),
        directory.display()
    )
}

fn collect(directory: &Path, left: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        left.push(format!("{} ({})", entry.path().display(), name(kind)));
        if kind.is_dir() {
            collect(&entry.path(), left)?;
        }
    }
    Ok(())
}

fn name(kind: fs::FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "directory",
        _ if kind.is_symlink() => "link",
        _ if kind.is_socket() => "socket",
        _ if kind.is_fifo() => "fifo",
        _ => "file",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_folder_of_a_run_is_named_after_its_process_and_empty() {
        let folder = folder().unwrap();
        assert!(folder.to_string_lossy().ends_with(&format!("{FOLDER}{}", std::process::id())));
        check(&folder).unwrap();
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn an_empty_folder_passes() {
        assert!(check(tempfile::tempdir().unwrap().path()).is_ok());
    }

    #[test]
    fn each_path_that_is_left_is_named_with_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("store")).unwrap();
        fs::write(folder.path().join("store/onward.db"), "x").unwrap();
        let _listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("the tests left 3 paths in "), "{error}");
        for left in ["/store (directory)\n", "/store/onward.db (file)", "/socket (socket)\n"] {
            assert!(error.contains(left), "{error}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        (0..MAX_NAMED + 2).for_each(|number| fs::write(folder.path().join(number.to_string()), "").unwrap());
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("\n  and 2 more"), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(check(Path::new("/no/such/folder")).is_err());
    }
}
