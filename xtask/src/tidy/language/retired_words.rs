//! Checks that retired words do not return: each concept has one word, and these are not it.

use serde::Deserialize;

use super::script_comments::comments;
use crate::source::{SourceFile, identifiers};
use crate::tidy::Finding;

/// Words that may be no part of an identifier in Rust or SQL, and the remedy for each.
const IN_IDENTIFIERS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "the actor"),
    ("bundle", "batch"),
    ("bundles", "batches"),
    ("grp", "task_group"),
    ("hear", "receive"),
    ("heard", "received"),
    ("hears", "receives"),
    ("interference", "invalidation"),
    ("lane", "sub_queue"),
    ("lanes", "sub_queues"),
    ("memo", "checkpoint"),
    ("memos", "checkpoints"),
    ("news", "notifications"),
    ("nobody", "the actor"),
    ("ripe", "ready"),
    ("seam", "interface"),
    ("series", "affinity_key"),
    ("somebody", "the actor"),
    ("tell", "notify or report"),
    ("tells", "notifies or reports"),
    ("told", "notified or reported"),
    ("turnstile", "ticket_lock"),
    ("unsettled", "unpropagated"),
    ("untold", "unnotified or unreported"),
    ("vain", "without success"),
    ("whoever", "the actor"),
];

/// Words and phrases that may not stand in comments and documents, and the remedy for each.
const IN_PROSE: &[(&str, &str)] = &[
    ("all the same", "anyway"),
    ("anew", "again"),
    ("at the most", "at most"),
    ("bundle", "batch"),
    ("bundles", "batches"),
    ("how-manieth", "the number"),
    ("in vain", "without success"),
    ("interference", "invalidation"),
    ("lane", "sub-queue"),
    ("lanes", "sub-queues"),
    ("memo", "checkpoint"),
    ("memos", "checkpoints"),
    ("news", "notifications"),
    ("ripe", "ready"),
    ("seam", "interface"),
    ("turnstile", "ticket lock"),
    ("unsettled", "not propagated"),
];

/// A folder or file in which a retired word has a meaning of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetiredWord {
    word: String,
    folder: String,
    /// The reason, for people. It is required so that there is one.
    #[serde(rename = "reason")]
    _reason: String,
}

/// Finds retired words in identifiers, comments and documents beyond those that `xtask/tidy.toml`
/// allows. `scripts` are files of other languages; of SQL the identifiers are checked too.
pub(crate) fn check(
    sources: &[SourceFile],
    scripts: &[(String, String)],
    documents: &[(String, String)],
    exceptions: &[RetiredWord],
) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources {
        found.extend(in_path(&source.path));
        found.extend(in_identifiers(&source.path, &source.code));
        found.extend(in_prose(&source.path, &source.comments));
    }
    for (path, text) in scripts {
        if path.ends_with(".sql") {
            let (code, comments) = separated(text);
            found.extend(in_identifiers(path, &code));
            found.extend(in_prose(path, &comments));
        } else {
            found.extend(in_script(path, text));
        }
    }
    documents.iter().for_each(|(path, text)| found.extend(in_prose(path, text)));
    let mut needed = vec![false; exceptions.len()];
    found.retain(|one| !is_allowed(one, exceptions, &mut needed));
    let stale = exceptions.iter().zip(needed).filter(|(_, needed)| !needed).map(|(exception, _)| {
        let message = format!("`{}` is not in `{}`; remove its exception", exception.word, exception.folder);
        Finding::file("xtask/tidy.toml", message)
    });
    let found: Vec<Finding> = found.into_iter().map(Found::into_finding).collect();
    found.into_iter().chain(stale).collect()
}

/// A retired word and its place. The line is counted from 0; a name of a file has none.
struct Found<'a> {
    path: &'a str,
    line: Option<usize>,
    word: &'static str,
    remedy: &'static str,
}

impl Found<'_> {
    fn into_finding(self) -> Finding {
        let message = format!("`{}` is a retired word; write {}", self.word, self.remedy);
        match self.line {
            Some(line) => Finding::line(self.path, line, message),
            None => Finding::file(self.path, message),
        }
    }
}

fn is_allowed(found: &Found<'_>, exceptions: &[RetiredWord], needed: &mut [bool]) -> bool {
    let at = exceptions.iter().position(|it| it.word == found.word && found.path.starts_with(&it.folder));
    at.map(|at| needed[at] = true).is_some()
}

fn in_path(path: &str) -> Option<Found<'_>> {
    let name = path.rsplit('/').next()?.trim_end_matches(".rs");
    let (word, remedy) = parts(name).find_map(|part| retired(part, IN_IDENTIFIERS))?;
    Some(Found { path, line: None, word, remedy })
}

fn in_identifiers<'p, 'c>(path: &'p str, code: &'c str) -> impl Iterator<Item = Found<'p>> + use<'p, 'c> {
    code.lines().enumerate().flat_map(move |(line, text)| {
        let words = identifiers(text).flat_map(|(_, word)| parts(word));
        let retired = words.filter_map(|part| retired(part, IN_IDENTIFIERS));
        retired.map(move |(word, remedy)| Found { path, line: Some(line), word, remedy })
    })
}

fn in_prose<'p, 't>(path: &'p str, text: &'t str) -> impl Iterator<Item = Found<'p>> + use<'p, 't> {
    text.lines().enumerate().flat_map(move |(line, text)| {
        let text = text.to_lowercase();
        let retired = IN_PROSE.iter().filter(move |(word, _)| has_word(&text, word));
        retired.map(move |&(word, remedy)| Found { path, line: Some(line), word, remedy })
    })
}

fn in_script<'p>(path: &'p str, text: &str) -> Vec<Found<'p>> {
    let lines = comments(path, text).into_iter().flatten();
    let found =
        lines.flat_map(|(line, text)| in_prose(path, text).map(move |found| Found { line: Some(line), ..found }));
    found.collect()
}

/// Returns the lower and upper case words of which an identifier is made: `TaskNews` and
/// `task_news` both have two.
fn parts(identifier: &str) -> impl Iterator<Item = &str> {
    identifier.split('_').flat_map(|part| {
        let humps = part.char_indices().skip(1).filter(|(at, letter)| {
            letter.is_uppercase() && part[..*at].ends_with(|before: char| before.is_lowercase())
        });
        let ends: Vec<usize> = humps.map(|(at, _)| at).chain([part.len()]).collect();
        let starts = [0].into_iter().chain(ends.clone());
        starts.zip(ends).map(|(start, end)| &part[start..end]).collect::<Vec<_>>()
    })
}

fn retired(word: &str, list: &[(&'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
    list.iter().find(|(retired, _)| retired.eq_ignore_ascii_case(word)).copied()
}

/// Returns whether a text has a word, or a phrase, that is no part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        !is_letter(before) && !is_letter(text.as_bytes().get(at + word.len()))
    })
}

/// Returns the statements and the comments of a file of SQL, each with the lines of the file.
fn separated(text: &str) -> (String, String) {
    text.lines()
        .map(|line| line.split_once("--").unwrap_or((line, "")))
        .fold((String::new(), String::new()), |(code, comments), (statement, comment)| {
            (code + statement + "\n", comments + comment + "\n")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::exceptions::Exceptions;

    fn findings(path: &str, text: &str, exceptions: &str) -> Vec<String> {
        let exceptions = Exceptions::parse(exceptions).unwrap();
        let found = check(&[SourceFile::new(path, text)], &[], &[], &exceptions.retired_word);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_retired_word_is_found_in_every_form_of_an_identifier() {
        for name in ["news", "task_news", "TaskNews", "NEWS", "NewsSender"] {
            assert_eq!(findings("a.rs", &format!("fn f() {{ {name}; }}"), "").len(), 1, "{name}");
        }
        assert_eq!(findings("src/news.rs", "", "").len(), 1);
    }

    #[test]
    fn a_longer_word_and_a_literal_pass() {
        assert_eq!(findings("a.rs", "fn renews(memory: u8) { say(\"news\") }", ""), [""; 0]);
    }

    #[test]
    fn a_retired_word_is_found_in_comments_and_documents_with_its_line() {
        assert_eq!(findings("a.rs", "\n// It starts Anew.\n", ""), ["a.rs:2: `anew` is a retired word; write again"]);
        assert_eq!(findings("a.rs", "// It waits in vain.\n", "").len(), 1);
        let document = [("a.md".to_owned(), "The members of a bundle.".to_owned())];
        assert_eq!(check(&[], &[], &document, &[]).len(), 1);
    }

    #[test]
    fn a_retired_word_is_found_in_columns_and_comments_of_sql() {
        let statements = [("a.sql".to_owned(), "grp text, -- in each lane\n".to_owned())];
        assert_eq!(check(&[], &statements, &[], &[]).len(), 2);
    }

    #[test]
    fn a_retired_word_is_found_in_comments_of_other_languages_with_its_line() {
        let script = [("a.rb".to_owned(), "x = 1\n# It starts anew.\nanew = 2\n".to_owned())];
        let found = check(&[], &script, &[], &[]);
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["a.rb:2: `anew` is a retired word; write again"]
        );
    }

    #[test]
    fn a_word_with_a_reason_passes_until_it_is_gone() {
        let allowed = "[[retired_word]]\nword = \"series\"\nfolder = \"bench/\"\nreason = \"a plot has series\"\n";
        assert_eq!(findings("bench/plot.rs", "let series = 1;", allowed), [""; 0]);
        assert_eq!(findings("crates/plot.rs", "let series = 1;", allowed).len(), 2);
    }
}
