//! The project on disk: its location and its files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The checkout in which this command was started.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
    files: Vec<String>,
}

impl Project {
    /// Finds the project and lists its files.
    pub(crate) fn open() -> Result<Self> {
        // Cargo sets this variable when it runs this program. It is right even if the checkout has
        // moved since the build.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().context("xtask has no parent directory")?.to_path_buf();
        let files = list(&root)?;
        Ok(Self { root, files })
    }

    /// Returns the directory that contains `Cargo.toml` of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a file or directory in the project.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the directory that cargo builds into.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), PathBuf::from)
    }

    /// Returns every file that git tracks or would track, relative to the root, with `/` between
    /// the parts, sorted.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns the files whose names end in `.extension`.
    pub(crate) fn files_with<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a str> {
        let matches = move |file: &&str| Path::new(file).extension().is_some_and(|found| found == extension);
        self.files.iter().map(String::as_str).filter(matches)
    }

    /// Returns the text of a file.
    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        std::fs::read_to_string(self.path(relative)).with_context(|| format!("cannot read {relative}"))
    }

    /// Makes an empty directory under `target/` for a step's own files.
    pub(crate) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let directory = self.path("target/xtask").join(name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).with_context(|| format!("cannot empty {}", directory.display()))?;
        }
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory)
    }
}

/// Lists the files with git, which must also work if the checkout of a CI runner belongs to another
/// user.
fn list(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args([
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ])
        .current_dir(root)
        .output()
        .context("cannot run git, which lists the project's files; install it")?;
    ensure!(
        output.status.success(),
        "git cannot list the files in {}: {}",
        root.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files: Vec<String> = listing.split_terminator('\0').map(str::to_owned).collect();
    files.retain(|file| root.join(file).is_file());
    files.sort();
    Ok(files)
}
