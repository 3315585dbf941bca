//! Checks that names and comments avoid words without meaning.

use crate::source::{SourceFile, identifiers};
use crate::tidy::Finding;

/// Names that could stand for anything, and the remedy for each.
const NAMES: &[(&str, &str)] = &[
    ("common", "name it after what it holds"),
    ("helpers", "name the module after what they do, or put each beside its one caller"),
    ("misc", "give each thing a place of its own"),
    ("util", "name it after what it does"),
    ("utils", "name the module after what they do, or put each beside its one caller"),
];

/// Marks of postponed work, and the remedy for each.
const MARKS: &[(&str, &str)] = &[
    ("FIXME", "fix it, or open an issue"),
    ("HACK", "say why it has to be so"),
    ("TODO", "do it, or open an issue"),
    ("XXX", "say what is meant"),
];

/// Finds banned names in code and file names, and banned marks in comments.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    sources.iter().flat_map(|source| in_path(source).into_iter().chain(in_layers(source))).collect()
}

fn in_path(source: &SourceFile) -> Option<Finding> {
    let mut parts = source.path.trim_end_matches(".rs").split('/');
    let (word, remedy) = parts.find_map(|part| banned(part, NAMES))?;
    Some(Finding::file(&source.path, format!("a file or directory is called `{word}`; {remedy}")))
}

fn in_layers(source: &SourceFile) -> Vec<Finding> {
    let layers = [(&source.code, NAMES), (&source.comments, MARKS)];
    layers.into_iter().flat_map(|(layer, list)| in_layer(&source.path, layer, list)).collect()
}

fn in_layer(path: &str, layer: &str, list: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in layer.lines().enumerate() {
        for (word, remedy) in identifiers(line).filter_map(|(_, word)| banned(word, list)) {
            findings.push(Finding::line(path, number, format!("`{word}`: {remedy}")));
        }
    }
    findings
}

fn banned<'a>(word: &str, list: &[(&'a str, &'a str)]) -> Option<(&'a str, &'a str)> {
    list.iter().find(|(banned, _)| *banned == word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&[SourceFile::new(path, text)]).len()
    }

    #[test]
    fn a_module_that_could_hold_anything_is_found_by_name_and_by_file() {
        assert_eq!(findings("a.rs", "mod utils;"), 1);
        assert_eq!(findings("src/common/mod.rs", ""), 1);
    }

    #[test]
    fn a_longer_name_that_contains_one_passes() {
        assert_eq!(findings("a.rs", "use tokio_util::sync; let uncommon = 1;"), 0);
    }

    #[test]
    fn a_mark_of_work_put_off_is_found_in_comments_alone() {
        assert_eq!(findings("a.rs", "// TODO: later\nlet a = \"TODO\";"), 1);
    }
}
