//! `docs/features.md`: one row for each feature and for each fault of other systems.

use std::fmt::Write as _;

use super::catalogue::{Beat, Catalogue, Feature, Section};
use super::evidence::Evidence;

pub(super) const FILE: &str = "docs/features.md";

const HEAD: &str = "\
# Features

<!-- Written by `cargo xtask features` from docs/features.toml and the tests; do not edit. -->

A feature is *done* (CI fails without a test), *under way* or *planned*. The last column is the number of its tests;
`cargo xtask features T4` lists them. Each part ends with faults that were seen in other systems: the tests in that
row fail if Onward has the fault, and `cargo xtask mutants` brings each fault back to prove it.
";

/// Returns the text of the page.
pub(super) fn page(catalogue: &Catalogue, evidence: &Evidence) -> String {
    let mut text = HEAD.to_owned();
    for section in &catalogue.section {
        let _ = write!(text, "\n## {} · {}\n\n", section.letter, section.title);
        text.push_str("| id | feature | state | tests |\n|---|---|---|---|\n");
        for feature in catalogue.feature.iter().filter(|feature| feature.id.starts_with(&section.letter)) {
            text.push_str(&row(feature, evidence));
        }
        text.push_str(&faults(catalogue, section, evidence));
    }
    text
}

fn row(feature: &Feature, evidence: &Evidence) -> String {
    let Feature { id, text, later, .. } = feature;
    let later = later.as_ref().map(|later| format!("; *planned:* {later}")).unwrap_or_default();
    format!("| {id} | {text}{later} | {} | {} |\n", feature.state(), number(evidence, id))
}

/// Returns the table of the faults of other systems in a section, or an empty text if there are
/// none.
fn faults(catalogue: &Catalogue, section: &Section, evidence: &Evidence) -> String {
    let beats: Vec<&Beat> = catalogue.beat.iter().filter(|beat| beat.section == section.letter).collect();
    if beats.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n| fault of others | description | tests |\n|---|---|---|\n");
    for Beat { name, text: description, later, .. } in beats {
        let later = later.as_ref().map(|later| format!("; *planned:* {later}")).unwrap_or_default();
        let _ = writeln!(text, "| {name} | {description}{later} | {} |", number(evidence, name));
    }
    text
}

fn number(evidence: &Evidence, id: &str) -> String {
    match evidence.tests(id).count() {
        0 => "–".to_owned(),
        number => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{
        self,
        tests::{catalogue, with_beat},
    };
    use super::super::evidence::tests::{TEST, evidence};
    use super::*;
    use crate::project::Project;
    use crate::tidy::FEATURES_BYTES;

    #[test]
    fn a_row_has_the_number_of_tests() {
        let text = page(&catalogue("claimed = true"), &evidence(TEST));
        assert!(text.contains("| T8 | Dead letters | done | 1 |\n"), "{text}");
    }

    #[test]
    fn a_row_says_what_is_left_for_later() {
        let text = page(&catalogue("claimed = true\nlater = \"purge\""), &Evidence::default());
        assert!(text.contains("| Dead letters; *planned:* purge | done | – |"), "{text}");
    }

    #[test]
    fn a_fault_of_others_has_a_row_with_the_number_of_tests() {
        let evidence = evidence(&TEST.replace("Shows: T8, Q1.", "Beats: lost-letters"));
        let text = page(&with_beat(""), &evidence);
        assert!(text.contains("| lost-letters | letters are lost | 1 |\n"), "{text}");
    }

    #[test]
    fn the_page_is_short_enough_to_be_read() {
        let project = Project::open().unwrap();
        let catalogue = Catalogue::parse(&project.read(catalogue::FILE).unwrap()).unwrap();
        let text = page(&catalogue, &Evidence::read(&project).unwrap());
        assert!(text.len() <= FEATURES_BYTES, "{} bytes", text.len());
    }
}
