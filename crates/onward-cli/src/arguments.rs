//! The command line: its commands and the errors of reading them.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

#[cfg(feature = "top")]
use crate::commands::top;
#[cfg(feature = "serve")]
use crate::commands::{account, key, mcp, serve};
use crate::commands::{
    completions, config, each, events, generate, import, limit, orchestration, queue, run, schedule, store, submit,
    tag, task, work, workflow,
};
use crate::exit_code::EXPLANATION;
use crate::options::GlobalOptions;
use crate::output::cleaned;

/// Runs work that must not get lost: durable tasks and orchestrations, on a SQLite file or in
/// PostgreSQL
#[derive(Debug, Parser)]
#[command(name = "onward", version, after_help = EXPLANATION, max_term_width = 100, propagate_version = true)]
pub(crate) struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the workflow of a file, durably: a second run resumes where the first stopped
    Run(Box<run::Arguments>),
    /// Run a command once per line of input, durably: a second run resumes where the first stopped
    Each(Box<each::Arguments>),
    /// Run a command once per task of a kind: payload on stdin, result on stdout
    Work(work::Arguments),
    /// Submit tasks
    Submit(Box<submit::Arguments>),
    /// List, count, show, explain, cancel, retry, delete and await tasks
    #[command(subcommand)]
    Task(task::Command),
    /// Start, list, show, signal, cancel, retry and await orchestrations: durable functions that
    /// survive crashes
    #[command(subcommand)]
    Orchestration(orchestration::Command),
    /// List the keys and values of tags
    #[command(subcommand)]
    Tag(tag::Command),
    /// List, show, set, pause, resume, purge and delete queues
    #[command(subcommand)]
    Queue(queue::Command),
    /// Limit how many tasks run at once and how fast they start: in total, per queue, kind or group
    #[command(subcommand)]
    Limit(limit::Command),
    /// Create, list, show, pause, resume, trigger, backfill and delete schedules: recurring tasks
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Make schedules of the lines of a crontab
    #[command(subcommand)]
    Import(import::Command),
    /// Check, test, store, list, compare and draw templates of workflows; start and operate runs
    #[command(subcommand)]
    Workflow(workflow::Command),
    /// Serve the store over HTTP
    #[cfg(feature = "serve")]
    Serve(Box<serve::Arguments>),
    /// Create, list, change, disable and delete accounts: people who sign in with a password
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Account(account::Command),
    /// Create, list and revoke the keys of the HTTP API
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Key(key::Command),
    /// Serve tools of the Model Context Protocol on stdin and stdout, for a program with a language
    /// model
    #[cfg(feature = "serve")]
    Mcp(mcp::Arguments),
    /// Explain the settings of onward.toml, of variables and of flags
    #[command(subcommand)]
    Config(config::Command),
    /// Show counts and statistics: queues, kinds, sessions, pauses
    Stats,
    /// Show live activity on a terminal: queues, running tasks, dead letters, limits, sessions,
    /// groups
    #[cfg(feature = "top")]
    Top(top::Arguments),
    /// Check a store and report problems with their remedies
    Doctor,
    /// Back up, restore, prune, compact and migrate the store
    #[command(subcommand)]
    Store(store::Command),
    /// Show events in order
    Events(events::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Print the manual page
    Man,
    /// Write generated documentation into a directory
    #[command(hide = true, subcommand)]
    Generate(generate::Command),
}

/// Returns the definition of the command line. Texts after the options flow: clap wraps them at
/// the width of the terminal, so their own line ends within a paragraph are removed.
pub(crate) fn program() -> clap::Command {
    with_flowing_texts(Arguments::command())
}

fn with_flowing_texts(command: clap::Command) -> clap::Command {
    let text = command.get_after_help().map(|text| flowing(&text.to_string()));
    let command = command.mut_subcommands(with_flowing_texts);
    match text {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Joins the lines of each paragraph. Indented lines, and what a colon announces, stay lines.
fn flowing(text: &str) -> String {
    let is_fixed = |line: &str| line.is_empty() || line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut before: Option<&str> = None;
    for line in text.lines() {
        if let Some(before) = before {
            let flows = !is_fixed(before) && !is_fixed(line) && !before.ends_with(':');
            joined.push(if flows { ' ' } else { '\n' });
        }
        joined.push_str(line);
        before = Some(line);
    }
    joined
}

/// The commands that run another program, which is given after `--`.
const WITH_A_COMMAND: [&str; 2] = ["each", "work"];

/// The commands that take a payload without an option.
const WITH_A_PAYLOAD: [&str; 3] = ["submit", "schedule", "orchestration"];

/// Completes an error of argument parsing. Adds a hint where the `--` before a command may be
/// missing, and escapes control characters in what the user typed.
pub(crate) fn explained(error: clap::Error) -> clap::Error {
    with_explanation(error, std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()))
}

fn with_explanation(mut error: clap::Error, typed: impl Iterator<Item = String>) -> clap::Error {
    let typed: Vec<String> = typed.collect();
    let has_command = WITH_A_COMMAND.iter().any(|command| typed.iter().any(|argument| argument == command));
    if let (ErrorKind::UnknownArgument, true) =
        (error.kind(), has_command && !typed.iter().any(|argument| argument == "--"))
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg).cloned()
        && !unknown.starts_with('-')
    {
        let hint = format!("the command goes after `--`: -- {unknown} …");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg).cloned()
        && error.kind() == ErrorKind::UnknownArgument
        && is_negative_number(&unknown)
    {
        let payload = format!("; as a payload it goes after `--`: -- {unknown}");
        let has_payload = WITH_A_PAYLOAD.iter().any(|command| typed.iter().any(|argument| argument == command));
        let hint = format!("no option takes a negative number{}", if has_payload { &payload } else { "" });
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    if let Some(hint) = hint_for_work(&error, &typed) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    clean(&mut error);
    error
}

/// Returns true if an argument is a number with a minus, which clap takes for an option.
fn is_negative_number(argument: &str) -> bool {
    argument.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the hint for an `onward work` that names no program, or a program without quotes.
fn hint_for_work(error: &clap::Error, typed: &[String]) -> Option<&'static str> {
    let is_work = typed.iter().any(|argument| argument == "work");
    let has_app = typed.iter().any(|argument| argument == "--app");
    match error.kind() {
        ErrorKind::MissingRequiredArgument if is_work && !typed.iter().any(|argument| argument == "--kind") => {
            Some("or give --app \"python app.py\", --listen ADDRESS or --workflows instead of a kind and a command")
        }
        ErrorKind::UnknownArgument if is_work && has_app => {
            Some("quote a program with its arguments: --app \"python app.py\"")
        }
        _ => None,
    }
}

/// Escapes what the user typed wherever the error shows it.
fn clean(error: &mut clap::Error) {
    let shown = |text: &String| cleaned(text).into_owned();
    let texts: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(shown(text)))),
            ContextValue::Strings(texts) => Some((kind, ContextValue::Strings(texts.iter().map(shown).collect()))),
            _ => None,
        })
        .collect();
    for (kind, text) in texts {
        error.insert(kind, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_agree_with_each_other() {
        program().debug_assert();
    }

    #[test]
    fn paragraphs_flow_and_examples_stay_lines() {
        let text = "One sentence that\ngoes on.\n\nExamples:\n  onward one\n  onward two\nThe end\nof it.";
        assert_eq!(
            flowing(text),
            "One sentence that goes on.\n\nExamples:\n  onward one\n  onward two\nThe end of it."
        );
    }
}
