//! `onward workflow import-tasker`

use std::path::PathBuf;

use clap::Args;
use onward::workflow::template::{TaskerImport, TemplateFile};
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, print_raw, remark};

/// The arguments.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A template of Tasker
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the new template into this file, which must not exist; default: standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
The kind of each step is the `callable` of its handler, and the handler gets the input, the results of the steps before,
and its `initialization` as `settings`. Every line that is left out, or that has to be completed by hand, is listed with
the reason. The exit code is 1 if the new template has errors, which are listed too.";

/// Prints a template of Tasker as one of Onward.
pub(crate) fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let path = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| wrong_usage(format!("cannot read {path}: {error}; name a template of Tasker")))?;
    let import = TaskerImport::read(&path.to_string(), &text)
        .map_err(|errors| wrong_usage(format!("the file cannot be read:\n{errors}")))?;
    let errors = TemplateFile::read("the new template", &import.yaml).err();
    let errors: Vec<String> = errors.iter().flat_map(|errors| errors.as_slice()).map(ToString::to_string).collect();
    let has_errors = !errors.is_empty();
    if let Some(output) = &arguments.output {
        write_new(output, &import.yaml)?;
    }
    if options.json {
        let left_out = import.left_out.iter();
        let left_out = left_out.map(|note| json!({ "line": note.line, "field": note.field, "reason": note.reason }));
        let left_out: Vec<serde_json::Value> = left_out.collect();
        print_json(&json!({ "template": import.yaml, "left_out": left_out, "errors": errors }))?;
        return Ok(ExitCode::Done.or_failed(has_errors));
    }
    match &arguments.output {
        None => print_raw(import.yaml.as_bytes())?,
        Some(output) => print_line(format_args!("{} was written", output.display()))?,
    }
    for note in &import.left_out {
        remark(format_args!("{path}:{}: {}: {}", note.line, note.field, note.reason));
    }
    errors.iter().for_each(remark);
    Ok(ExitCode::Done.or_failed(has_errors))
}

fn write_new(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    let written =
        std::fs::File::create_new(path).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|error| wrong_usage(format!("--output {}: {error}; name a new file", path.display())))
}
