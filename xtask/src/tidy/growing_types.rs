//! Checks that public types which later versions extend are marked `#[non_exhaustive]`.

use super::Finding;
use crate::source::SourceFile;

/// The crates whose types programs match and read. The enums of the worker protocol are not among
/// them: each implementation must handle every variant of a message.
const CRATES: &[&str] = &["crates/onward-store/src/", "crates/onward/src/", "crates/onward-zmtp/src/"];

/// The last words of the names of enums that get further variants.
const ENUMS: &[&str] = &["Change", "Error", "Event", "Interruption", "Outcome", "Refusal", "Verdict", "WaitReason"];

/// The last words of the names of structs that only these crates make, and that get further fields.
const STRUCTS: &[&str] = &["Comparison", "Overview", "Snapshot", "Summary", "TestReport", "View"];

/// Returns a finding for each such type without the attribute.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    let published = sources.iter().filter(|source| CRATES.iter().any(|of| source.path.starts_with(of)));
    published.flat_map(in_file).collect()
}

fn in_file(source: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_marked = false;
    for (number, line) in source.code.lines().enumerate() {
        match growing_type(line) {
            Some(name) if !is_marked => {
                let text =
                    format!("`{name}` will grow; mark it `#[non_exhaustive]`, so that a new part breaks no program");
                findings.push(Finding::line(&source.path, number, text));
            }
            _ => {}
        }
        // Attributes and blanked comments stand between the mark and the type.
        let continues = line.trim().is_empty() || line.starts_with("#[");
        is_marked = continues && (is_marked || line.starts_with("#[non_exhaustive]"));
    }
    findings
}

/// Returns the name of the type that a line begins to define, if it is public and will grow.
fn growing_type(line: &str) -> Option<&str> {
    let (rest, words) = match (line.strip_prefix("pub enum "), line.strip_prefix("pub struct ")) {
        (Some(rest), _) => (rest, ENUMS),
        (_, Some(rest)) => (rest, STRUCTS),
        _ => return None,
    };
    let (name, body) = rest.split_at(rest.find(|character: char| !character.is_alphanumeric())?);
    // The fields of a tuple struct are private here, so it is opaque already.
    (body.contains('{') && words.iter().any(|word| name.ends_with(word))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&[SourceFile::new("crates/onward/src/a.rs", text)]).len()
    }

    #[test]
    fn an_enum_of_errors_without_the_mark_is_found() {
        assert_eq!(findings("#[derive(Debug)]\npub enum TaskError {\n}"), 1);
    }

    #[test]
    fn a_mark_before_or_between_other_attributes_passes() {
        assert_eq!(findings("#[non_exhaustive]\n#[derive(Debug)]\n/// An error.\npub enum TaskError {\n}"), 0);
        assert_eq!(findings("#[derive(Debug)]\n#[non_exhaustive]\npub struct RunSummary {\n}"), 0);
    }

    #[test]
    fn the_mark_of_an_earlier_type_does_not_count() {
        assert_eq!(findings("#[non_exhaustive]\npub enum A {}\npub enum TaskError {\n}"), 1);
    }

    #[test]
    fn opaque_and_private_types_pass() {
        assert_eq!(findings("pub struct RunView(u8);\npub(crate) enum ReplayError {\n}"), 0);
    }
}
