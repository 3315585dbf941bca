//! Checks that the commands in the documents, and each of their options, exist.
//!
//! The list of commands is the reference, which is generated from the program and checked to be
//! fresh.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::links::prose;
use crate::readme::RUN;

/// The options of each command, by the command's words: `onward task list`.
type Commands<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Options that every command has and that the reference does not list.
const BUILT_IN_OPTIONS: &[&str] = &["--help", "--version"];

/// Finds commands in documents that are missing from the reference. Planned commands appear only in
/// the list of features.
pub(crate) fn check(documents: &[(String, String)], reference: &str) -> Vec<Finding> {
    let commands = commands(reference);
    let is_checked = |path: &str| !path.starts_with("docs/reference/") && path != "docs/features.md";
    let mut findings = Vec::new();
    for (path, text) in documents.iter().filter(|(path, _)| is_checked(path)) {
        let blocks = typed_in_blocks(text).into_iter().filter_map(|typed| problem(&typed, &commands, false));
        let spans = typed_in_prose(text).into_iter().filter_map(|typed| problem(typed, &commands, true));
        findings.extend(blocks.chain(spans).map(|message| Finding::file(path, message)));
    }
    findings
}

/// Returns the problem with a command as typed, up to `--`. A group of commands cannot be run, but
/// a text may mention it.
fn problem(typed: &str, commands: &Commands<'_>, may_be_group: bool) -> Option<String> {
    let words: Vec<&str> = typed.split_whitespace().take_while(|word| *word != "--").collect();
    let is_run = |at: &usize| words[*at] == "onward" && (*at == 0 || words[*at - 1] == "xargs");
    let start = (0..words.len()).find(is_run)?;
    let words = &words[start + 1..];
    let path = words.iter().filter(|word| !word.starts_with('-')).fold("onward".to_owned(), |path, word| {
        let longer = format!("{path} {word}");
        if commands.contains_key(longer.as_str()) { longer } else { path }
    });
    let options: Vec<&str> = words.iter().filter(|word| word.starts_with("--")).map(|word| option(word)).collect();
    if let Some(unknown) = options.iter().find(|option| !is_option(option, &path, commands)) {
        return Some(format!("`{path}` has no option `{unknown}`"));
    }
    let group = format!("{path} ");
    let is_group = commands.keys().any(|command| command.starts_with(&group));
    let asks_for_help = options.iter().any(|option| BUILT_IN_OPTIONS.contains(option));
    let is_unknown = if may_be_group { path == "onward" && !words.is_empty() } else { is_group };
    (is_unknown && !asks_for_help).then(|| format!("there is no command `{}`", typed.trim()))
}

fn is_option(option: &str, path: &str, commands: &Commands<'_>) -> bool {
    let has = |command: &str| commands.get(command).is_some_and(|options| options.contains(option));
    BUILT_IN_OPTIONS.contains(&option) || has(path) || has("onward")
}

/// Returns `--option` of `--option=value`.
fn option(word: &str) -> &str {
    word.split(['=', ',', '.', ')']).next().unwrap_or(word)
}

/// Returns the headings of the reference that are commands, and the options in the tables below
/// them.
fn commands(reference: &str) -> Commands<'_> {
    let mut commands = Commands::new();
    let mut current = None;
    for line in reference.lines() {
        if line.starts_with('#') {
            current = Some(line.trim_start_matches('#').trim()).filter(|name| name.split(' ').next() == Some("onward"));
            commands.extend(current.map(|name| (name, BTreeSet::new())));
        } else if let Some(options) = current.and_then(|name| commands.get_mut(name)) {
            let cell = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()).unwrap_or_default();
            options.extend(cell.split([' ', ',']).filter(|word| word.starts_with("--")));
        }
    }
    commands
}

/// Returns the commands in a document's shell blocks, with continued lines joined and without
/// comments.
fn typed_in_blocks(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let joined = blocks.map(|block| block.replace("\\\n", " ").replace(RUN, "onward"));
    let lines: Vec<String> = joined.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let without_comment = lines.iter().map(|line| line.split(" #").next().unwrap_or(line));
    without_comment.flat_map(|line| line.split(['|', ';', '&'])).map(str::to_owned).collect()
}

/// Returns the texts between backticks in prose that begin with the program's name.
fn typed_in_prose(text: &str) -> Vec<&str> {
    let spans = prose(text).flat_map(|(_, line)| line.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with("onward ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "# Reference\n\n## onward\n\n| `--store STORE` | Where. |\n\n### onward each\n\n\
        | `-j, --jobs COUNT` | How many. |\n\n### onward task\n\n#### onward task list\n\n| `--state STATE` | Which. |\n";

    fn in_block(typed: &str) -> usize {
        check(&[("README.md".into(), format!("```sh\n{typed}\n```\n"))], REFERENCE).len()
    }

    fn in_prose(typed: &str) -> usize {
        check(&[("README.md".into(), format!("Type `{typed}`.\n"))], REFERENCE).len()
    }

    #[test]
    fn commands_that_exist_pass() {
        assert_eq!(in_block("ls | onward --store x.db each --jobs 4 -- tool --unknown {}   # a comment --with"), 0);
        assert_eq!(in_block("seq 9 | \\\n  cargo run --profile quick --bin onward -- task list --state=dead"), 0);
        assert_eq!(in_prose("onward task"), 0);
        assert_eq!(in_block("onward --help"), 0);
        assert_eq!(in_block("cargo test -p onward --doc"), 0);
    }

    #[test]
    fn an_option_that_does_not_exist_is_found() {
        assert_eq!(in_block("onward each --threads 4 -- true"), 1);
        assert_eq!(in_prose("onward task list --jobs 4"), 1);
    }

    #[test]
    fn a_command_that_does_not_exist_is_found() {
        assert_eq!(in_block("onward task drop 7"), 1);
        assert_eq!(in_block("echo 7 | xargs onward sing"), 1);
        assert_eq!(in_prose("onward sing"), 1);
    }
}
