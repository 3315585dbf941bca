//! Checks that documents are short enough to be read.

use super::Finding;

const DESIGN: &str = "docs/design/";

/// The end of the name of a page about rejected experiments.
const REJECTED: &str = "-rejected.md";

/// The most bytes of the page of features.
pub(crate) const FEATURES_BYTES: usize = 12_000;

/// The most bytes of a design note.
const NOTE_BYTES: usize = 6_000;

/// The most bytes of the page beside a design note that lists rejected experiments.
const REJECTED_BYTES: usize = 12_000;

/// Finds documents that are too long, and pages of rejected experiments without a design note.
pub(crate) fn check(documents: &[(String, String)]) -> Vec<Finding> {
    let long = documents.iter().filter_map(|(path, text)| too_long(path, text));
    long.chain(documents.iter().filter_map(|(path, _)| alone(path, documents))).collect()
}

fn too_long(path: &str, text: &str) -> Option<Finding> {
    let (limit, remedy) = limit(path)?;
    let size = text.len();
    (size > limit).then(|| Finding::file(path, format!("has {size} bytes and the limit is {limit}; {remedy}")))
}

fn limit(path: &str) -> Option<(usize, &'static str)> {
    if path == "docs/features.md" {
        return Some((FEATURES_BYTES, "shorten the sentences in docs/features.toml, and move the rest to `detail`"));
    }
    let note = path.strip_prefix(DESIGN)?;
    Some(if note.ends_with(REJECTED) {
        (REJECTED_BYTES, "keep the experiments that a reader might repeat")
    } else {
        (NOTE_BYTES, "split it by subject, and move what was rejected to a page beside it, NAME-rejected.md")
    })
}

fn alone(path: &str, documents: &[(String, String)]) -> Option<Finding> {
    let note = format!("{}.md", path.strip_prefix(DESIGN)?.strip_suffix(REJECTED)?);
    let exists = documents.iter().any(|(path, _)| path.strip_prefix(DESIGN) == Some(&note));
    (!exists).then(|| Finding::file(path, format!("belongs to the design note {DESIGN}{note}, which does not exist")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(documents: &[(&str, usize)]) -> usize {
        let documents: Vec<_> = documents.iter().map(|(path, size)| ((*path).to_owned(), "x".repeat(*size))).collect();
        check(&documents).len()
    }

    #[test]
    fn a_document_at_its_limit_passes_and_one_beyond_it_is_found() {
        for (path, limit) in [("docs/features.md", FEATURES_BYTES), ("docs/design/0001-rows.md", NOTE_BYTES)] {
            assert_eq!(findings(&[(path, limit)]), 0, "{path}");
            assert_eq!(findings(&[(path, limit + 1)]), 1, "{path}");
        }
    }

    #[test]
    fn a_page_of_rejected_experiments_may_be_longer_than_its_note() {
        let note = ("docs/design/0001-rows.md", 1);
        assert_eq!(findings(&[note, ("docs/design/0001-rows-rejected.md", REJECTED_BYTES)]), 0);
        assert_eq!(findings(&[note, ("docs/design/0001-rows-rejected.md", REJECTED_BYTES + 1)]), 1);
    }

    #[test]
    fn a_page_of_rejected_experiments_without_its_note_is_found() {
        assert_eq!(findings(&[("docs/design/0001-rows-rejected.md", 1)]), 1);
    }

    #[test]
    fn other_documents_have_no_limit() {
        assert_eq!(findings(&[("docs/benchmarks.md", 1_000_000), ("README.md", 1_000_000)]), 0);
    }
}
