//! `onward workflow show`

use clap::Args;
use onward::workflow::library::StoredTemplate;
use serde_json::{Value, json};

use super::command::open_to_read;
use super::reference::Reference;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{moment, print_json, print_line};

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The name, and a label unless the newest template is meant
    #[arg(value_name = "NAME[@LABEL]")]
    template: Reference,
}

/// Shows a stored template.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let stored = arguments.template.find(&open_to_read(options).await?).await?;
    if options.json {
        print_json(&as_json(&stored)?)?;
    } else {
        print_line(described(&stored))?;
    }
    Ok(ExitCode::Done)
}

fn as_json(stored: &StoredTemplate) -> anyhow::Result<Value> {
    let record = &stored.record;
    let template: Value = serde_json::from_str(&stored.canonical)?;
    Ok(json!({
        "name": record.name,
        "label": record.label,
        "hash": record.hash,
        "put_at": record.put_at,
        "is_newest": record.is_newest,
        "template": template,
    }))
}

/// Returns one fact per line, and then the template as JSON.
fn described(stored: &StoredTemplate) -> String {
    let record = &stored.record;
    let facts = [
        ("workflow", record.name.clone()),
        ("label", record.label.clone()),
        ("newest", if record.is_newest { "yes" } else { "no" }.to_owned()),
        ("put", moment(record.put_at)),
        ("hash", record.hash.to_string()),
    ];
    let facts: String = facts.into_iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect();
    format!("{facts}\n{}", stored.pretty().trim_end())
}
