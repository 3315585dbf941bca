//! A copy of the project that may be broken.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::project::Project;

/// A copy of the project. It stays below `target/`, so that its build can be reused.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    /// Every file in it, relative to its root.
    files: BTreeSet<String>,
}

impl Tree {
    /// Makes the copy, or brings it up to date.
    pub(crate) fn copy(project: &Project) -> Result<Self> {
        let tree = Self { root: project.path("target/mutants/tree"), files: project.files().iter().cloned().collect() };
        for stale in files_below(&tree.root)?.difference(&tree.files) {
            fs::remove_file(tree.root.join(stale)).with_context(|| format!("cannot remove {stale}"))?;
        }
        tree.restore(project)?;
        Ok(tree)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Undoes every change. Unchanged files keep their modification time, so that cargo does not
    /// rebuild them.
    pub(crate) fn restore(&self, project: &Project) -> Result<()> {
        for file in &self.files {
            let (from, to) = (project.path(file), self.root.join(file));
            let content = fs::read(&from).with_context(|| format!("cannot read {file}"))?;
            if fs::read(&to).is_ok_and(|there| there == content) {
                continue;
            }
            if let Some(directory) = to.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(())
    }
}

fn files_below(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(relative) = path.strip_prefix(root) {
                files.insert(relative.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}
