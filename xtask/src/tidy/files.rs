//! Checks that files which are not sources stay few, so that a listing of the project shows its
//! code. Large sets of data (corpora, recorded histories) are packed into one file.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;

/// The extensions of sources: programs, queries and the signatures of their types.
const SOURCES: &[&str] = &["c", "css", "go", "java", "js", "mjs", "py", "rb", "rbs", "rs", "sh", "sql", "ts"];

/// The most files of the project that are not sources.
const FILES: usize = 450;

/// The most files of one folder that are not sources. The largest such folders have a file for each
/// broken variant and for each script of the conformance check, and each is read alone.
const FILES_OF_A_FOLDER: usize = 100;

/// Finds a project, and folders, with too many files that are not sources.
pub(crate) fn check(files: &[String]) -> Vec<Finding> {
    let mut of_folder: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in files.iter().map(Path::new).filter(|file| !is_source(file)) {
        *of_folder.entry(file.parent().unwrap_or(Path::new(""))).or_default() += 1;
    }
    let all: usize = of_folder.values().sum();
    let mut findings: Vec<Finding> = of_folder
        .into_iter()
        .filter(|(_, count)| *count > FILES_OF_A_FOLDER)
        .map(|(folder, count)| too_many(&folder.to_string_lossy(), count, FILES_OF_A_FOLDER))
        .collect();
    findings.extend((all > FILES).then(|| too_many(".", all, FILES)));
    findings
}

fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| SOURCES.iter().any(|source| extension == *source))
}

fn too_many(folder: &str, count: usize, limit: usize) -> Finding {
    Finding::file(
        folder,
        format!(
            "has {count} files that are not sources and the limit is {limit}; pack those that are not read one by one"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: usize, name: impl Fn(usize) -> String) -> Vec<String> {
        (0..count).map(name).collect()
    }

    #[test]
    fn sources_are_not_counted() {
        assert_eq!(check(&files(FILES + 1, |number| format!("src/{number}.rs"))), []);
    }

    #[test]
    fn a_folder_with_too_much_data_is_found() {
        let in_folder = |count| check(&files(count, |number| format!("corpus/{number}.hex"))).len();
        assert_eq!((in_folder(FILES_OF_A_FOLDER), in_folder(FILES_OF_A_FOLDER + 1)), (0, 1));
    }

    #[test]
    fn a_project_with_too_much_data_in_many_folders_is_found() {
        let in_folders = |count| check(&files(count, |number| format!("{number}/input"))).len();
        assert_eq!((in_folders(FILES), in_folders(FILES + 1)), (0, 1));
    }
}
