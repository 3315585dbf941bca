//! Checks that relative links in documents lead to a file of the project, and to a heading that
//! exists.

use super::Finding;

/// Finds links whose file or heading does not exist. `documents` are paths and texts; `files` are
/// all files of the project.
pub(crate) fn check(documents: &[(String, String)], files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in documents {
        for (line, target) in links(text) {
            if let Some(problem) = problem(path, target, documents, files) {
                findings.push(Finding::line(path, line, problem));
            }
        }
    }
    findings
}

fn problem(path: &str, target: &str, documents: &[(String, String)], files: &[String]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let resolved = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
    if !exists(&resolved, files) {
        return Some(format!("the link to `{target}` leads nowhere: there is no `{resolved}`"));
    }
    let heading = heading?;
    let (_, text) = documents.iter().find(|(document, _)| *document == resolved)?;
    let known = prose(text).filter_map(|(_, line)| line.strip_prefix('#')).any(|line| slug(line) == heading);
    (!known).then(|| format!("`{resolved}` has no heading for `#{heading}`"))
}

fn exists(path: &str, files: &[String]) -> bool {
    let directory = format!("{}/", path.trim_end_matches('/'));
    files.iter().any(|file| file == path || file.starts_with(&directory))
}

/// Returns a target as a path from the root of the project.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the lines of a document outside code blocks.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns the targets of `[text](target)` with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let spans = line.split('`').step_by(2);
        for after in spans.flat_map(|span| span.split("](").skip(1)) {
            let target = after.split([')', ' ']).next().unwrap_or(after);
            links.push((number, target));
        }
    }
    links
}

/// Returns the anchor of a heading, as the usual hosts make it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(link: &str) -> usize {
        let documents = [
            ("docs/a.md".to_owned(), format!("# A `b` & c\n\nSee [this]({link}).\n")),
            ("README.md".to_owned(), "# Top\n\n```sh\n# not a heading\n```\n".to_owned()),
        ];
        let files = ["docs/a.md", "README.md", "crates/x/src/lib.rs"].map(str::to_owned);
        check(&documents, &files).len()
    }

    #[test]
    fn links_to_files_directories_headings_and_the_web_pass() {
        for link in ["../README.md", "../crates/x", "#a-b--c", "../README.md#top", "https://example.org/x"] {
            assert_eq!(findings(link), 0, "{link}");
        }
    }

    #[test]
    fn a_missing_file_or_heading_is_found() {
        for link in ["README.md", "../crates/y", "#nothing", "../README.md#not-a-heading"] {
            assert_eq!(findings(link), 1, "{link}");
        }
    }

    #[test]
    fn what_stands_in_code_is_no_link() {
        assert!(links("```\n[a](b)\n```\nand `[a](b)` too").is_empty());
    }
}
