//! `onward key create`

use std::time::Duration;

use clap::Args;
use onward_server::http::{Keys, NewKey, Role};

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::values::parse_positive_duration;

/// Arguments of `onward key create`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the key, for people
    pub(super) name: String,
    /// Role: viewer, operator, developer or admin; each may do what those before it may
    #[arg(long)]
    role: Role,
    /// Time after which the key is refused, such as 90d; default: never
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    expires: Option<Duration>,
}

/// Creates a key.
pub(super) async fn run(options: &GlobalOptions, keys: &Keys, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, role, expires } = arguments;
    let (key, record) = keys.create(NewKey { name, role, expires_after: expires }).await?;
    if options.json {
        print_json(&serde_json::json!({ "key": key, "record": record }))?;
    } else {
        print_line(&key)?;
        remark(format_args!("keep it: it is not shown again; onward key revoke {} revokes it", record.id));
    }
    Ok(ExitCode::Done)
}
