//! Checks that comments are plain technical English: they open with a verb or a noun, name the
//! actor, and are short and narrow.

use std::fmt;

use serde::Deserialize;

use super::prose_of_documents::faults_of_document;
use super::prose_of_scripts::faults_of_script;
use crate::source::{SourceFile, identifiers};
use crate::tidy::Finding;

/// The most columns of a line that is a comment.
const COLUMNS: usize = 100;

/// The most words of a sentence.
const WORDS: usize = 35;

/// Words with which a comment must not open, because the reader has to wait for the subject.
const OPENERS: &[&str] = &[
    "What", "Whatever", "Whoever", "Where", "Wherever", "Whether", "Who", "Of", "How", "Those", "The same", "Beside",
    "From",
];

/// Words that stand for an actor without naming it.
const ACTORS: &[&str] = &["somebody", "someone", "nobody", "anybody", "everybody", "whoever"];

/// Marks of lines that a tool reads and that are not prose.
const MARKS: &[&str] = &["Shows:", "Beats:"];

/// A way in which a comment is hard to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The comment opens with a word such as *What*.
    Opener,
    /// A line names no actor.
    Actor,
    /// The line is wider than [`COLUMNS`].
    Wide,
    /// A sentence has more than [`WORDS`] words.
    Long,
}

/// A fault and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultAt {
    /// The line, counted from 0.
    pub(crate) line: usize,
    /// The fault.
    pub(crate) fault: Fault,
}

/// The most faults that the comments of a folder have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Folder {
    folder: String,
    openers: usize,
    actors: usize,
    wide: usize,
    long: usize,
}

/// Finds folders whose comments have more faults than `xtask/tidy.toml` allows, and faults in files
/// outside these folders.
pub(crate) fn check(
    sources: &[SourceFile],
    documents: &[(String, String)],
    scripts: &[(String, String)],
    folders: &[Folder],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counts = vec![[0; 4]; folders.len()];
    let of_sources = sources.iter().map(|source| (&source.path, faults(source)));
    let of_documents = documents.iter().map(|(path, text)| (path, faults_of_document(text)));
    let of_scripts = scripts.iter().map(|(path, text)| (path, faults_of_script(path, text)));
    for (path, faults) in of_sources.chain(of_documents).chain(of_scripts) {
        match folders.iter().position(|folder| path.starts_with(&folder.folder)) {
            Some(at) => faults.iter().for_each(|found| counts[at][found.fault as usize] += 1),
            None => {
                findings.extend(faults.iter().map(|found| Finding::line(path, found.line, found.fault.to_string())))
            }
        }
    }
    for (folder, counts) in folders.iter().zip(counts) {
        findings.extend(folder.findings(counts));
    }
    findings
}

impl Folder {
    fn findings(&self, counts: [usize; 4]) -> Vec<Finding> {
        let limits = [self.openers, self.actors, self.wide, self.long];
        let faults = [Fault::Opener, Fault::Actor, Fault::Wide, Fault::Long];
        let exceeded = faults.into_iter().zip(counts).zip(limits).filter(|((_, count), limit)| count > limit);
        let finding = |((fault, count), limit): ((Fault, usize), usize)| {
            let message = format!(
                "{count} comments, and at most {limit}: {fault}; `cargo xtask prose {}` lists them",
                self.folder
            );
            Finding::file(&self.folder, message)
        };
        exceeded.map(finding).collect()
    }
}

/// Returns the faults of a file's comments, in their order.
pub(crate) fn faults(source: &SourceFile) -> Vec<FaultAt> {
    let mut faults = Vec::new();
    let (mut block, mut start, mut is_code) = (Vec::new(), 0, false);
    for (line, text) in source.comments.lines().enumerate() {
        let trimmed = text.trim_start();
        let Some(prose) = prose(trimmed) else {
            end_block(&mut block, start, &mut faults);
            is_code = false;
            continue;
        };
        if text.chars().count() > COLUMNS {
            faults.push(FaultAt { line, fault: Fault::Wide });
        }
        if block.is_empty() {
            start = line;
        }
        let is_fence = prose.starts_with("```");
        is_code ^= is_fence;
        // An example, a heading or a mark ends a paragraph and is not prose.
        let is_prose =
            !is_code && !is_fence && !prose.starts_with('#') && !MARKS.iter().any(|mark| prose.starts_with(mark));
        let prose = if is_prose { prose } else { "" };
        if names_no_actor(prose) {
            faults.push(FaultAt { line, fault: Fault::Actor });
        }
        block.push(prose);
    }
    end_block(&mut block, start, &mut faults);
    faults.sort_by_key(|at| at.line);
    faults
}

/// Returns the text of a line that is only a comment.
fn prose(line: &str) -> Option<&str> {
    let text = ["///", "//!", "//"].into_iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Returns whether a line has a word that stands for an actor.
pub(super) fn names_no_actor(line: &str) -> bool {
    identifiers(line).any(|(_, word)| ACTORS.contains(&word.to_lowercase().as_str()))
}

/// Ends a block of prose that begins at line `start`: adds the faults of its opening and sentences.
pub(super) fn end_block(block: &mut Vec<&str>, start: usize, faults: &mut Vec<FaultAt>) {
    let opening = block.iter().find(|line| !line.trim().is_empty()).map_or("", |line| line.trim_start());
    if OPENERS.iter().any(|word| opening.strip_prefix(word).is_some_and(|rest| rest.starts_with(' '))) {
        faults.push(FaultAt { line: start, fault: Fault::Opener });
    }
    for paragraph in block.split(|line| line.trim().is_empty()) {
        let long = sentences(paragraph).into_iter().filter(|words| *words > WORDS);
        faults.extend(long.map(|_| FaultAt { line: start, fault: Fault::Long }));
    }
    block.clear();
}

/// Returns the number of words of each sentence of a paragraph. A list item begins a new sentence.
fn sentences(paragraph: &[&str]) -> Vec<usize> {
    let mut counts = vec![0];
    for line in paragraph {
        let line = line.trim_start();
        if line.starts_with("* ") || line.starts_with("- ") || line.starts_with('|') {
            counts.push(0);
        }
        for word in line.split_whitespace() {
            if let Some(count) = counts.last_mut() {
                *count += 1;
            }
            if word.ends_with(['.', '!', '?', ':', ';']) {
                counts.push(0);
            }
        }
    }
    counts
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opener => f.write_str("open with a verb or a noun, not with a word such as What, Where or Of"),
            Self::Actor => f.write_str("name the actor instead of somebody, nobody or whoever"),
            Self::Wide => write!(f, "a comment is at most {COLUMNS} columns wide, and a document 120"),
            Self::Long => write!(f, "a sentence has at most {WORDS} words"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(usize, Fault)> {
        super::faults(&SourceFile::new("a.rs", text)).into_iter().map(|found| (found.line, found.fault)).collect()
    }

    #[test]
    fn an_opening_that_keeps_the_subject_back_is_found() {
        assert_eq!(faults("/// What came of it.\nfn a() {}\n"), [(0, Fault::Opener)]);
        assert_eq!(faults("/// Returns what came of it.\nfn a() {}\n"), []);
        assert_eq!(faults("// Offers are kept.\n"), []);
    }

    #[test]
    fn a_second_line_of_a_comment_may_begin_as_it_likes() {
        assert_eq!(faults("/// Returns the part\n/// of the task.\n"), []);
    }

    #[test]
    fn a_line_without_an_actor_is_found() {
        assert_eq!(faults("// Waits until Somebody writes.\nlet nobody = 1;\n"), [(0, Fault::Actor)]);
    }

    #[test]
    fn a_wide_comment_is_found_and_a_wide_line_of_code_is_not() {
        let comment = format!("    // {}\n", "a".repeat(94));
        assert_eq!(faults(&comment), [(0, Fault::Wide)]);
        assert_eq!(faults(&format!("let a = \"{}\";\n", "a".repeat(100))), []);
    }

    #[test]
    fn a_long_sentence_is_found_over_several_lines() {
        let half = "word ".repeat(18);
        assert_eq!(faults(&format!("// {half}\n// {half}\n")), [(0, Fault::Long)]);
        assert_eq!(faults(&format!("// {half}end.\n// {half}\n")), []);
    }

    #[test]
    fn examples_and_marks_are_no_prose() {
        assert_eq!(faults("/// ```\n/// // What nobody reads.\n/// ```\n"), []);
        assert_eq!(faults("/// Shows: T1\n"), []);
    }

    #[test]
    fn a_folder_may_have_as_many_faults_as_it_has_and_no_more() {
        let folder = |openers| Folder { folder: "a".into(), openers, actors: 0, wide: 0, long: 0 };
        let source = SourceFile::new("a/b.rs", "/// What came of it.\n");
        assert_eq!(check(std::slice::from_ref(&source), &[], &[], &[folder(1)]), []);
        assert!(check(&[source], &[], &[], &[folder(0)])[0].to_string().contains("cargo xtask prose a"));
    }

    #[test]
    fn a_file_in_no_folder_may_have_none() {
        assert_eq!(check(&[SourceFile::new("b.rs", "/// What came of it.\n")], &[], &[], &[]).len(), 1);
    }

    #[test]
    fn comments_of_other_languages_are_checked() {
        let script = ("a.py".to_owned(), "# What came of it.\n".to_owned());
        assert_eq!(check(&[], &[], &[script], &[]).len(), 1);
    }
}
