//! Findings about names that no test uses, and about names that are not in the catalogue.

use super::catalogue::{Catalogue, FILE, Feature};
use super::evidence::{Evidence, Shown};
use crate::tidy::Finding;

/// Finds unknown names, and claimed features and faults without a test. With `strict`, features
/// under way count as claimed.
pub(super) fn problems(catalogue: &Catalogue, evidence: &Evidence, strict: bool) -> Vec<Finding> {
    let mut findings = unknown(catalogue, evidence);
    let is_bare = |id: &str| evidence.tests(id).next().is_none();
    let is_claimed = |feature: &&Feature| feature.claimed == Some(true) || (strict && feature.claimed.is_some());
    for Feature { id, .. } in catalogue.feature.iter().filter(is_claimed).filter(|feature| is_bare(&feature.id)) {
        findings.push(Finding::file(FILE, format!("{id} is claimed and no test has the line `Shows: {id}`")));
    }
    for name in catalogue.beaten().iter().filter(|name| is_bare(name)) {
        findings.push(Finding::file(FILE, format!("no test has the line `Beats: {name}`")));
    }
    findings
}

fn unknown(catalogue: &Catalogue, evidence: &Evidence) -> Vec<Finding> {
    let known = catalogue.names();
    let message = |id: &str, it: &Shown| format!("`{}` names `{id}`, which {FILE} does not have", it.test);
    let unknown = evidence.names().filter(|id| !known.contains(*id));
    unknown.flat_map(|id| evidence.tests(id).map(move |it| Finding::file(&it.path, message(id, it)))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::tests::{catalogue, with_beat};
    use super::super::evidence::tests::{TEST, evidence};
    use super::*;

    #[test]
    fn a_claimed_feature_without_a_test_is_found() {
        assert_eq!(problems(&catalogue("claimed = true"), &Evidence::default(), false).len(), 1);
        assert_eq!(problems(&catalogue("claimed = true"), &evidence(TEST), false), []);
    }

    #[test]
    fn a_feature_under_way_needs_a_test_only_when_strict() {
        let catalogue = catalogue("claimed = false");
        assert_eq!(problems(&catalogue, &Evidence::default(), false), []);
        assert_eq!(problems(&catalogue, &Evidence::default(), true).len(), 1);
    }

    #[test]
    fn a_fault_of_others_without_a_test_is_found() {
        let test = TEST.replace("Shows: T8, Q1.", "Shows: T8\n/// Beats: lost-letters");
        assert_eq!(problems(&with_beat(""), &evidence(TEST), false).len(), 1);
        assert_eq!(problems(&with_beat(""), &evidence(&test), false), []);
        assert_eq!(problems(&with_beat("later = \"letters\""), &evidence(TEST), false), []);
    }

    #[test]
    fn an_unknown_id_is_found() {
        assert_eq!(problems(&catalogue(""), &evidence(&TEST.replace("T8", "T99")), false).len(), 1);
    }
}
