//! `onward workflow test`

use std::path::PathBuf;

use clap::Args;
use onward::testing::{CaseReport, WorkflowTest, WorkflowTestReport};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// The arguments.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Test files; each names its template, relative to itself
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

const AFTER_HELP: &str = "\
A test file states what each step returns, and what the run comes to:
  workflow: order.yaml
  cases:
    no reply comes:
      input: {order: A-17}
      steps:
        charge: {result: {}}
        undo.charge: {fail: network away, times: 2, then: {result: {}}}
      expect: {state: failed, took: 3d..3d1m, steps: {charge: undone}}

A step has one of result, fail (no effect) and dead (attempts used up), and may have takes (a duration). A step that
waits for a signal gets its result as the reply. expect has state, result, events, took and steps.";

/// Plays the cases of test files.
pub(crate) async fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // All files are read before the first case is played.
    let tests: Vec<WorkflowTest> = arguments.files.iter().map(WorkflowTest::read).collect::<onward::Result<_>>()?;
    let mut failed = false;
    for test in &tests {
        let report = test.run().await?;
        print(options, &report)?;
        failed |= !report.is_ok();
    }
    Ok(ExitCode::Done.or_failed(failed))
}

fn print(options: &GlobalOptions, report: &WorkflowTestReport) -> anyhow::Result<()> {
    if !options.json {
        return Ok(print_line(report)?);
    }
    for case in &report.cases {
        print_json(&as_json(&report.file, case))?;
    }
    Ok(())
}

fn as_json(file: &str, case: &CaseReport) -> serde_json::Value {
    json!({
        "file": file,
        "case": case.name,
        "ok": case.is_ok(),
        "mismatches": case.mismatches,
        "state": case.state,
        "took": case.took.as_secs_f64(),
        "steps": case.steps,
    })
}
