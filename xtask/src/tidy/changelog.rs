//! CHANGELOG.md has the shape of Keep a Changelog, with prose for users first in every section.

use super::Finding;

const PATH: &str = "CHANGELOG.md";

/// The headings a section may have.
const GROUPS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// A version's part of the file.
struct Section<'a> {
    line: usize,
    title: &'a str,
    body: Vec<(usize, &'a str)>,
}

/// Finds what breaks the shape.
pub(crate) fn check(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        findings.push(Finding::line(PATH, 0, "must begin with `# Changelog`"));
    }
    let sections = sections(text);
    if sections.first().map(|section| section.title) != Some("[Unreleased]") {
        findings.push(Finding::file(PATH, "the first section must be `## [Unreleased]`"));
    }
    for section in &sections {
        findings.extend(check_section(section));
    }
    findings
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        if let Some(title) = content.strip_prefix("## ") {
            sections.push(Section { line, title, body: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.body.push((line, content));
        }
    }
    sections
}

fn check_section(section: &Section<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if section.title != "[Unreleased]" && !is_release(section.title) {
        findings.push(Finding::line(PATH, section.line, "a release is headed `## [1.2.3] - 2026-05-04`"));
    }
    match section.body.iter().find(|(_, content)| !content.trim().is_empty()) {
        Some((_, first)) if first.starts_with(char::is_alphanumeric) => {}
        _ => findings.push(Finding::line(PATH, section.line, "a section begins with a few sentences for users")),
    }
    for (line, content) in &section.body {
        let Some(group) = content.strip_prefix("### ") else { continue };
        if !GROUPS.contains(&group) {
            findings.push(Finding::line(PATH, *line, format!("`{group}` is not one of {}", GROUPS.join(", "))));
        }
    }
    findings
}

/// Whether a title is `[1.2.3] - 2026-05-04`.
fn is_release(title: &str) -> bool {
    let Some((version, date)) = title.split_once(" - ") else { return false };
    let version = version.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    numbers(version, '.') == Some(3) && numbers(date, '-') == Some(3) && date.len() == 10
}

/// How many whole numbers `text` consists of; `None` if a part is something else.
fn numbers(text: &str, separator: char) -> Option<usize> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split(separator).collect();
    parts.iter().all(|part| is_number(part)).then_some(parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "# Changelog\n\n## [Unreleased]\n\nWords.\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-05-04\n\nWords.\n";

    fn findings(from: &str, to: &str) -> usize {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "the test changes nothing");
        check(&text).len()
    }

    #[test]
    fn the_right_shape_passes() {
        assert_eq!(check(GOOD), []);
    }

    #[test]
    fn each_broken_rule_is_found() {
        assert_eq!(findings("# Changelog\n\n##", "# Changes\n\n##"), 1);
        assert_eq!(findings("## [Unreleased]\n\nWords.", "## [0.2.0] - 2026-06-01\n\nWords."), 1);
        assert_eq!(findings("## [Unreleased]\n\nWords.\n", "## [Unreleased]\n"), 1);
        assert_eq!(findings("### Added", "### Improvements"), 1);
        assert_eq!(findings("[0.1.0] - 2026-05-04", "0.1.0 (May)"), 1);
    }
}
