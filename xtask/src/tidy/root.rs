//! Checks that the root directory stays small, so that a newcomer sees what matters.

use std::collections::BTreeSet;

use super::Finding;

/// The most files and directories in the root.
const ENTRIES: usize = 20;

/// Counts the root entries of the project's files. Returns a finding if there are too many.
pub(crate) fn check(files: &[String]) -> Vec<Finding> {
    let entries: BTreeSet<&str> = files.iter().filter_map(|file| file.split('/').next()).collect();
    if entries.len() <= ENTRIES {
        return Vec::new();
    }
    let names: Vec<&str> = entries.into_iter().collect();
    let message = format!("{} entries and the limit is {ENTRIES}; move one down: {}", names.len(), names.join(", "));
    vec![Finding::file(".", message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_counts_once() {
        let files: Vec<String> = (0..100).map(|number| format!("docs/{number}.md")).collect();
        assert_eq!(check(&files), []);
    }

    #[test]
    fn a_crowded_root_is_found() {
        let files: Vec<String> = (0..21).map(|number| format!("{number}.md")).collect();
        assert_eq!(check(&files).len(), 1);
    }
}
