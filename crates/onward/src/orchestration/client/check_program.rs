//! A program that checks its code on recorded histories.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

use super::recorded_history::RecordedHistory;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The argument before a query: its name, the question as JSON and the file of a history follow it.
const QUERY: &str = "--query";

/// The result of the check of one history: a line of the output of [`check_main`], as JSON.
#[derive(Debug, Serialize)]
struct Report<'a> {
    file: &'a Path,
    /// The kind of the orchestration, if the file could be read.
    kind: Option<String>,
    events: Option<usize>,
    /// True if the code can continue the history.
    agrees: bool,
    /// The reason if it cannot.
    error: Option<String>,
}

/// Runs a whole program that checks code on recorded histories. `onward orchestration check
/// --program` runs such a program, and so may a test or a script. `register` gets an engine and
/// [registers](Engine::orchestrate) the code with it; the arguments of the process are the files.
///
/// Each history is replayed; nothing else runs, and nothing is written. For each file a line of
/// JSON goes to stdout: `file`, `kind`, `events`, `agrees`, `error`.
///
/// With the arguments `--query NAME QUESTION FILE` (as `onward orchestration query --program`
/// passes them) it runs a [query](Engine::query) instead, with the question as JSON. The output is
/// a line of JSON with `answer`, or with `error` and the exit code 1.
///
/// The exit code is 0 if the code can continue every history, 1 if it cannot continue one of them,
/// and 2 if no file was named or a file could not be read.
///
/// ```no_run
/// # use onward::orchestration::OrchestrationContext;
/// # use onward::{Engine, Failure};
/// # async fn order(
/// #     _: serde_json::Value,
/// #     _: OrchestrationContext,
/// # ) -> Result<serde_json::Value, Failure> {
/// #     Ok(().into())
/// # }
/// fn register(engine: &Engine) {
///     engine.orchestrate_json("order", Default::default(), order);
/// }
///
/// #[tokio::main]
/// async fn main() -> std::process::ExitCode {
///     onward::orchestration::check_main(register).await
/// }
/// ```
pub async fn check_main(register: impl FnOnce(&Engine)) -> ExitCode {
    check_files(std::env::args_os().skip(1).map(PathBuf::from), register).await
}

/// Checks the given files as [`check_main`] does, for a program that has other functions too.
pub async fn check_files(files: impl IntoIterator<Item = PathBuf>, register: impl FnOnce(&Engine)) -> ExitCode {
    match checked(files.into_iter().collect(), register).await {
        Ok(code) => code,
        Err(error) => {
            tracing::error!(%error, "histories could not be checked");
            let _ = writeln!(std::io::stderr(), "histories could not be checked: {error}");
            ExitCode::from(2)
        }
    }
}

async fn checked(files: Vec<PathBuf>, register: impl FnOnce(&Engine)) -> Result<ExitCode> {
    let engine = Engine::builder().memory().open().await?;
    register(&engine);
    if let [word, name, question, file] = &files[..]
        && word.as_os_str() == QUERY
    {
        return run_query(&engine, [name, question], file);
    }
    let mut code = u8::from(files.is_empty()) * 2;
    for file in files {
        let report = check_file(&engine, &file);
        let this = if report.agrees { 0 } else { 1 + u8::from(report.kind.is_none()) };
        code = code.max(this);
        let line = serde_json::to_string(&report)
            .map_err(|error| Error::invalid(format!("a report cannot be written: {error}")))?;
        let _ = writeln!(std::io::stdout(), "{line}");
    }
    Ok(ExitCode::from(code))
}

/// Prints the code's answer to a query.
fn run_query(engine: &Engine, query: [&Path; 2], file: &Path) -> Result<ExitCode> {
    let [name, question] = query.map(|word| word.to_string_lossy());
    let wrong =
        |what: &str, error: &dyn std::fmt::Display| Error::invalid(format!("the {what} cannot be read: {error}"));
    let question: Value = serde_json::from_str(&question).map_err(|error| wrong("question", &error))?;
    let bytes = std::fs::read(file).map_err(|error| wrong("history", &error))?;
    let answer = engine.query_history::<_, Value>(&RecordedHistory::from_bytes(&bytes)?, &name, &question);
    let code = u8::from(answer.is_err());
    let said = answer.map_or_else(|error| json!({ "error": error.to_string() }), |answer| json!({ "answer": answer }));
    let _ = writeln!(std::io::stdout(), "{said}");
    Ok(ExitCode::from(code))
}

fn check_file<'a>(engine: &Engine, file: &'a Path) -> Report<'a> {
    let unread = |error: String| Report { file, kind: None, events: None, agrees: false, error: Some(error) };
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return unread(format!("the file could not be read: {error}")),
    };
    let history = match RecordedHistory::from_bytes(&bytes) {
        Ok(history) => history,
        Err(error) => return unread(error.to_string()),
    };
    let error = engine.check_history(&history).err().map(|failure| failure.to_string());
    let (kind, events) = (Some(history.kind.to_string()), Some(history.events.len()));
    Report { file, kind, events, agrees: error.is_none(), error }
}
