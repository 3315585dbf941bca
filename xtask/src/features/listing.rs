//! `cargo xtask features ID`: prints everything about one row of the page.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::catalogue::{Beat, Catalogue, Feature};
use super::evidence::Evidence;

/// Returns the sentence and the state of the feature or fault `id`, its tests with their files, and
/// its mutants.
///
/// # Errors
/// Returns an error if there is no such id; the message names those that exist.
pub(super) fn listing(catalogue: &Catalogue, evidence: &Evidence, id: &str) -> Result<String> {
    let mut text = head(catalogue, id).with_context(|| unknown(catalogue, id))?;
    let tests: Vec<_> = evidence.tests(id).collect();
    let _ = writeln!(text, "{}", counted(tests.len(), "test"));
    for shown in tests {
        let _ = writeln!(text, "  {}  {}", shown.test, shown.path);
    }
    let patches: Vec<_> = evidence.patches(id).collect();
    if !patches.is_empty() {
        let _ = writeln!(text, "{}", counted(patches.len(), "broken variant"));
    }
    for patch in patches {
        let _ = writeln!(text, "  {patch}  xtask/mutants/{patch}.patch");
    }
    Ok(text)
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn head(catalogue: &Catalogue, id: &str) -> Option<String> {
    if let Some(feature) = catalogue.feature.iter().find(|feature| feature.id == id) {
        let Feature { text, detail, later, .. } = feature;
        return Some(lines(id, feature.state(), text, detail.as_deref(), later.as_deref()));
    }
    let beat = catalogue.beat.iter().find(|beat| beat.name == id)?;
    let Beat { text, later, .. } = beat;
    Some(lines(id, beat.state(), text, None, later.as_deref()))
}

fn lines(id: &str, state: &str, text: &str, detail: Option<&str>, later: Option<&str>) -> String {
    let mut lines = format!("{id} ({state}): {text}\n");
    detail.into_iter().for_each(|detail| lines.push_str(&format!("  {detail}\n")));
    later.into_iter().for_each(|later| lines.push_str(&format!("  planned: {later}\n")));
    lines
}

fn unknown(catalogue: &Catalogue, id: &str) -> String {
    let features = catalogue.feature.iter().map(|feature| feature.id.as_str());
    let faults = catalogue.beat.iter().map(|beat| beat.name.as_str());
    let known: Vec<&str> = features.chain(faults).collect();
    format!("no feature or fault has the id `{id}`; known are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::tests::{catalogue, with_beat};
    use super::super::evidence::tests::{TEST, evidence};
    use super::*;

    #[test]
    fn a_row_lists_its_tests_with_their_files() {
        let catalogue = catalogue("claimed = true\ndetail = \"List and retry.\"\nlater = \"purge\"");
        let text = listing(&catalogue, &evidence(TEST), "T8").unwrap();
        let expected = "T8 (done): Dead letters\n  List and retry.\n  planned: purge\n1 test\n  \
                        a_dead_letter_can_be_retried  crates/x/tests/it/a.rs\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_fault_of_others_lists_the_variants_that_bring_it_back() {
        let text = listing(&with_beat(""), &evidence(TEST), "lost-letters").unwrap();
        let expected = "lost-letters (absent): letters are lost\n0 tests\n1 broken variant\n  \
                        no-retry  xtask/mutants/no-retry.patch\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_unknown_id_is_an_error_that_names_the_known_ones() {
        let error = listing(&with_beat(""), &evidence(TEST), "T99").unwrap_err().to_string();
        assert_eq!(error, "no feature or fault has the id `T99`; known are Q1, T8, lost-letters");
    }
}
