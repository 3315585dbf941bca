//! Finds hunks of a patch that fit in more than one place. Once lines are added above, such a hunk
//! could apply to the wrong place.

use std::path::Path;

use anyhow::{Context as _, Result};

/// The lines that a hunk expects, in the file that it changes.
#[derive(Debug, PartialEq, Eq)]
struct Hunk<'a> {
    file: &'a str,
    expected: Vec<&'a str>,
}

/// Returns a message for each hunk of this patch that fits in more than one place of its file below
/// `root`.
pub(super) fn messages(root: &Path, patch: &str) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    for (number, hunk) in hunks(patch).iter().enumerate() {
        let path = root.join(hunk.file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let places = occurrences(&text.lines().collect::<Vec<_>>(), &hunk.expected);
        if places > 1 {
            let (number, file) = (number + 1, hunk.file);
            messages.push(format!("hunk {number} fits in {places} places of {file}; give it more lines around it"));
        }
    }
    Ok(messages)
}

/// Returns the hunks of the changed files. Files that a patch adds or removes have only one place.
fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let (mut file, mut left) = (None, 0);
    for line in patch.lines() {
        if left > 0 {
            if let (Some(hunk), Some(expected)) = (hunks.last_mut(), expected(line)) {
                hunk.expected.push(expected);
                left -= 1;
            }
        } else if let Some(path) = line.strip_prefix("--- a/") {
            file = Some(path);
        } else if let (Some(file), Some(count)) = (file, old_lines(line)) {
            hunks.push(Hunk { file, expected: Vec::with_capacity(count) });
            left = count;
        }
    }
    hunks
}

/// Returns the line of the file that a hunk's line stands for, or `None` if the patch adds it. An
/// empty line of a hunk may have lost its leading space.
fn expected(line: &str) -> Option<&str> {
    if line.is_empty() { Some(line) } else { line.strip_prefix(' ').or_else(|| line.strip_prefix('-')) }
}

/// Returns the number of the file's lines in a hunk's header: 7 of `@@ -3,7 +3,6 @@`, and 1 if the
/// header has no count.
fn old_lines(line: &str) -> Option<usize> {
    let range = line.strip_prefix("@@ -")?.split(' ').next()?;
    range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
}

fn occurrences(lines: &[&str], expected: &[&str]) -> usize {
    if expected.is_empty() { 1 } else { lines.windows(expected.len()).filter(|window| *window == expected).count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Why.\n\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn one() {\n one\n-two\n+three\n@@ -5 +5,2 @@\n-five\n+six\n--- a/y.rs\n+++ b/y.rs\n@@ -1,2 +1 @@\n-one\n\n";

    fn messages_with(x: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("x.rs"), x).unwrap();
        std::fs::write(root.path().join("y.rs"), "one\n\n").unwrap();
        messages(root.path(), PATCH).unwrap()
    }

    #[test]
    fn a_hunk_is_what_the_file_has_of_it() {
        let hunk = |file, expected| Hunk { file, expected };
        let expected = [hunk("x.rs", vec!["one", "two"]), hunk("x.rs", vec!["five"]), hunk("y.rs", vec!["one", ""])];
        assert_eq!(hunks(PATCH), expected);
    }

    #[test]
    fn a_patch_each_of_whose_hunks_fits_in_one_place_is_not_ambiguous() {
        assert_eq!(messages_with("one\ntwo\none\nfour\nfive\n"), Vec::<String>::new());
    }

    #[test]
    fn a_hunk_that_fits_in_two_places_is_ambiguous() {
        let [message] = &messages_with("one\ntwo\none\ntwo\nfive\n")[..] else { panic!("there is one such hunk") };
        assert!(message.starts_with("hunk 1 fits in 2 places of x.rs"), "{message}");
    }
}
