//! Checks that CHANGELOG.md has the shape of Keep a Changelog, with short entries for users.
//!
//! Every version opens with at least one sentence. Text before the first heading of a version
//! describes it as a whole, in a list by area of at most 20 lines. Changes stand under `### Added`,
//! `### Changed` and the like; an entry has at most two lines and starts with a verb.

use super::Finding;

const PATH: &str = "CHANGELOG.md";

/// The headings a section may have.
const GROUPS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The most lines of an entry.
const ENTRY_LINES: usize = 2;

/// The most lines of the list that describes a version by area.
const AREA_LINES: usize = 20;

/// The most columns of a line.
const LINE_COLUMNS: usize = 120;

/// The verbs an entry may start with, imperative so that all entries read alike.
const VERBS: &str = "\
     Accept Add Allow Apply Avoid Bind Bound Build Cancel Change Check Claim Close Commit Compile \
     Complete Compress Count Deliver Deprecate Detect Disable Document Drop Enable Encrypt \
     End Explain Expose Fix Forget Free Handle Ignore Improve Include Keep Limit List Log \
     Lower Make Measure Merge Migrate Mount Move Name Notify Offer Open Pass Prevent Print \
     Protect Prune Publish Raise Read Recover Reduce Refuse Reject Release Remove Rename \
     Replace Report Require Reserve Restore Retry Return Run Send Serve Set Ship Shorten Show \
     Split Start Stop Store Submit Support Take Test Upgrade Use Validate Verify Wait Wake \
     Warn Write";

/// A version's part of the file.
struct Section<'a> {
    line: usize,
    title: &'a str,
    body: Vec<(usize, &'a str)>,
}

/// Finds text that breaks the shape.
pub(crate) fn check(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        findings.push(Finding::line(PATH, 0, "must begin with `# Changelog`"));
    }
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.chars().count() > LINE_COLUMNS) {
        let length = line.chars().count();
        findings.push(Finding::line(PATH, number, format!("has {length} columns and the limit is {LINE_COLUMNS}")));
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
        _ => findings.push(Finding::line(PATH, section.line, "a section begins with a sentence for users")),
    }
    findings.extend(long_description(section));
    let mut groups = Vec::new();
    for (line, content) in &section.body {
        let Some(group) = content.strip_prefix("### ") else { continue };
        if !GROUPS.contains(&group) {
            findings.push(Finding::line(PATH, *line, format!("`{group}` is not one of {}", GROUPS.join(", "))));
        }
        if groups.contains(&group) {
            findings.push(Finding::line(PATH, *line, format!("`{group}` stands twice in one section; merge the two")));
        }
        groups.push(group);
    }
    entries(section).iter().for_each(|entry| findings.extend(check_entry(entry)));
    findings
}

/// Finds a list before the first heading of a section that is too long.
fn long_description(section: &Section<'_>) -> Option<Finding> {
    let before = section.body.iter().take_while(|(_, content)| !content.starts_with("### "));
    let list = before.skip_while(|(_, content)| !content.starts_with("- "));
    let lines = list.filter(|(_, content)| !content.trim().is_empty()).count();
    let message = format!("describes a version in {lines} lines and the limit is {AREA_LINES}; shorten the list");
    (lines > AREA_LINES).then(|| Finding::line(PATH, section.line, message))
}

/// A list item below a heading of its section: the line in which it begins and its text lines.
struct Entry<'a> {
    line: usize,
    lines: Vec<&'a str>,
}

/// Returns the list items below the first `###`; the text before it describes the version.
fn entries<'a>(section: &Section<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    let grouped = section.body.iter().skip_while(|(_, content)| !content.starts_with("### "));
    for (line, content) in grouped.filter(|(_, content)| !content.starts_with('#') && !content.trim().is_empty()) {
        match entries.last_mut() {
            Some(entry) if !content.starts_with("- ") => entry.lines.push(content),
            _ => entries.push(Entry { line: *line, lines: vec![content] }),
        }
    }
    entries
}

fn check_entry(entry: &Entry<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |message: String| findings.push(Finding::line(PATH, entry.line, message));
    let first = entry.lines.first().copied().unwrap_or_default();
    let Some(text) = first.strip_prefix("- ") else {
        find("only list items (`- Verb …`) stand below a heading".to_owned());
        return findings;
    };
    if entry.lines.len() > ENTRY_LINES {
        find(format!("an entry has {} lines and the limit is {ENTRY_LINES}; shorten it", entry.lines.len()));
    }
    let word = text.split([' ', ',', '.']).next().unwrap_or_default();
    if !VERBS.split(' ').any(|verb| verb == word) {
        find(format!(
            "an entry starts with a verb (`Add`, `Fix`, …), and `{word}` is none of VERBS in xtask/src/tidy/changelog.rs"
        ));
    }
    findings
}

/// Returns true for a title like `[1.2.3] - 2026-05-04`.
fn is_release(title: &str) -> bool {
    let Some((version, date)) = title.split_once(" - ") else { return false };
    let version = version.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    numbers(version, '.') == Some(3) && numbers(date, '-') == Some(3) && date.len() == 10
}

/// Counts the whole numbers in `text`. Returns `None` if a part is something else.
fn numbers(text: &str, separator: char) -> Option<usize> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split(separator).collect();
    parts.iter().all(|part| is_number(part)).then_some(parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "# Changelog\n\n## [Unreleased]\n\nWords.\n\n### Added\n\n- Add a thing.\n- Reject another\n  one.\n\n\
                        ## [0.1.0] - 2026-05-04\n\nWords.\n\n- **Tasks**: three\n  lines\n  here.\n";

    fn findings(from: &str, to: &str) -> usize {
        let text = VALID.replace(from, to);
        assert_ne!(text, VALID, "the test changes nothing");
        check(&text).len()
    }

    #[test]
    fn the_right_shape_passes() {
        assert_eq!(check(VALID), []);
    }

    #[test]
    fn a_file_without_its_headings_is_found() {
        assert_eq!(findings("# Changelog\n\n##", "# Changes\n\n##"), 1);
        assert_eq!(findings("## [Unreleased]\n\nWords.", "## [0.2.0] - 2026-06-01\n\nWords."), 1);
        assert_eq!(findings("[0.1.0] - 2026-05-04", "0.1.0 (May)"), 1);
    }

    #[test]
    fn a_section_without_a_sentence_for_users_is_found() {
        assert_eq!(findings("## [Unreleased]\n\nWords.\n", "## [Unreleased]\n"), 1);
    }

    #[test]
    fn an_unknown_group_and_one_that_stands_twice_are_found() {
        assert_eq!(findings("### Added", "### Improvements"), 1);
        assert_eq!(findings("- Reject", "### Added\n\n- Reject"), 1);
    }

    #[test]
    fn an_entry_of_three_lines_is_found() {
        assert_eq!(findings("  one.", "  one,\n  and another."), 1);
    }

    #[test]
    fn a_description_of_more_than_20_lines_is_found() {
        assert_eq!(findings("- **Tasks**: three\n", &"- **Tasks**: three\n".repeat(AREA_LINES - 2)), 0);
        assert_eq!(findings("- **Tasks**: three\n", &"- **Tasks**: three\n".repeat(AREA_LINES - 1)), 1);
    }

    #[test]
    fn verbs_are_sorted_and_stand_once() {
        let verbs: Vec<&str> = VERBS.split(' ').collect();
        assert!(verbs.is_sorted_by(|a, b| a < b), "{verbs:?}");
    }

    #[test]
    fn an_entry_that_does_not_start_with_a_verb_is_found() {
        assert_eq!(findings("- Add a thing.", "- A thing."), 1);
        assert_eq!(findings("- Add a thing.", "- `onward` adds a thing."), 1);
    }

    #[test]
    fn prose_below_a_heading_is_found() {
        assert_eq!(findings("- Add a thing.\n", "Things were added.\n"), 1);
    }

    #[test]
    fn a_line_of_more_than_120_columns_is_found() {
        assert_eq!(findings("a thing", &"a thing ".repeat(20)), 1);
    }
}
