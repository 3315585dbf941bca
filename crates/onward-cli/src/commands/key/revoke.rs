//! `onward key revoke`

use clap::Args;
use onward_server::http::{KeyState, Keys};
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// Arguments of `onward key revoke`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id of the key, or its name if only one active key has it
    pub(super) key: String,
}

/// Revokes a key.
pub(super) async fn run(options: &GlobalOptions, keys: &Keys, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let id = id_of(keys, &arguments.key).await?;
    let record = keys.revoke(&id).await?.ok_or_else(|| unknown(&arguments.key))?;
    if options.json {
        print_json(&json!(record))?;
    } else {
        print_line(format_args!("key {} ({}) is revoked", record.id, record.name))?;
    }
    Ok(ExitCode::Done)
}

/// Returns the id of the key that the user named.
async fn id_of(keys: &Keys, named: &str) -> anyhow::Result<String> {
    let keys = keys.list().await?;
    if keys.iter().any(|key| key.id == named) {
        return Ok(named.to_owned());
    }
    let active: Vec<_> = keys.iter().filter(|key| key.name == named && key.state == KeyState::Active).collect();
    match active[..] {
        [] => Err(unknown(named)),
        [key] => Ok(key.id.clone()),
        _ => Err(wrong_usage(format!(
            "{} active keys have the name `{named}`; name one by its id, which onward key list shows",
            active.len()
        ))),
    }
}

fn unknown(named: &str) -> anyhow::Error {
    wrong_usage(format!("there is no active key `{named}`; onward key list shows the keys"))
}
