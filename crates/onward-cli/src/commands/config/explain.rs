//! `onward config explain`

use clap::Args;
use serde_json::json;

#[cfg(feature = "serve")]
use crate::commands::serve;
use crate::exit_code::ExitCode;
use crate::location::Location;
use crate::output::{Align, Table, print_json, print_line, print_table};
use crate::settings::{Parsed, SETTINGS, Setting};

/// Arguments of `onward config explain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Flags of the server.
    #[cfg(feature = "serve")]
    #[command(flatten)]
    pub(crate) serve: serve::Settings,
}

/// Shows the settings.
pub(super) fn run(parsed: &Parsed) -> anyhow::Result<ExitCode> {
    if parsed.arguments.options.json {
        for setting in SETTINGS {
            let explained = parsed.explain(setting);
            let values: Vec<_> = explained.values.iter().map(|value| shown(setting, value)).collect();
            print_json(&json!({
                "key": setting.key, "values": values, "source": explained.source, "unit": setting.unit,
                "range": setting.range, "reloads": setting.reloads,
            }))?;
        }
        return Ok(ExitCode::Done);
    }
    match parsed.file() {
        Some(path) => print_line(format_args!("settings of {}", path.display()))?,
        None => print_line("no file of settings: there is no onward.toml here, and --config names none")?,
    }
    print_table(table(parsed))?;
    Ok(ExitCode::Done)
}

fn table(parsed: &Parsed) -> Table {
    let columns = ["SETTING", "VALUE", "SOURCE", "UNIT", "RANGE", "SIGHUP"];
    let mut table = Table::new(columns.map(|title| (title, Align::Left)));
    for setting in SETTINGS {
        let explained = parsed.explain(setting);
        let values: Vec<_> = explained.values.iter().map(|value| shown(setting, value)).collect();
        let values = if values.iter().all(String::is_empty) { "–".to_owned() } else { values.join(", ") };
        let reloads = if setting.reloads { "takes over" } else { "needs a restart" };
        let [unit, range] = [setting.unit, setting.range].map(str::to_owned);
        table.row([setting.key.to_owned(), values, explained.source, unit, range, reloads.to_owned()]);
    }
    table
}

/// Returns a value without its secrets: the URL of a store may have a password.
fn shown(setting: &Setting, value: &str) -> String {
    match (setting.key, value.parse::<Location>()) {
        ("store", Ok(location)) => location.to_string(),
        _ => value.to_owned(),
    }
}
