//! Checks that the files and directories in the code map of ARCHITECTURE.md exist.

use super::Finding;

const PATH: &str = "ARCHITECTURE.md";

/// Finds names below the headings of crates (`` ### `crates/onward` ``), such as `` `clock.rs` ``
/// and `` `rules/` ``, that are not in the `src` of the crate.
pub(crate) fn check(document: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut source = None;
    for (number, line) in document.lines().enumerate() {
        if let Some(heading) = line.strip_prefix('#') {
            source = heading.split('`').nth(1).map(|directory| format!("{directory}/src"));
            continue;
        }
        let Some(source) = &source else { continue };
        for name in line.split('`').skip(1).step_by(2).filter(|span| is_file_name(span)) {
            let path = format!("{source}/{name}");
            if !files.iter().any(|file| *file == path || (name.ends_with('/') && file.starts_with(&path))) {
                findings.push(Finding::line(PATH, number, format!("names `{name}`, and there is no {path}")));
            }
        }
    }
    findings
}

fn is_file_name(span: &str) -> bool {
    let is_plain = span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./".contains(&byte));
    is_plain && (span.ends_with(".rs") || span.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "## Code map\n\n### `crates/x`\n\n- `clock.rs`, `rules/`: what is `Pure`, or a `crate::path`.\n\n## Other\n\nA `gone.rs`.\n";

    fn findings(files: &[&str]) -> usize {
        check(DOCUMENT, &files.iter().map(ToString::to_string).collect::<Vec<_>>()).len()
    }

    #[test]
    fn files_and_directories_that_exist_pass() {
        assert_eq!(findings(&["crates/x/src/clock.rs", "crates/x/src/rules/mod.rs"]), 0);
    }

    #[test]
    fn a_file_or_a_directory_that_is_gone_is_found() {
        assert_eq!(findings(&["crates/x/src/clock.rs"]), 1);
        assert_eq!(findings(&["crates/x/src/rules/mod.rs", "crates/y/src/clock.rs"]), 1);
    }
}
