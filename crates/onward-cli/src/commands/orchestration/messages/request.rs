//! The target, name and payload of an update or a query.

use clap::Args;
use onward_store::{Name, TaskId};
use serde_json::Value;

use crate::commands::orchestration::control::start::read_value;
use crate::commands::orchestration::selection::OneOrchestration;
use crate::exit_code::wrong_usage;

/// The target and the content of a request.
#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    /// Its number (not with --key), the name of the update or query, and the payload as JSON (- for
    /// stdin; default: null)
    #[arg(value_name = "ORCHESTRATION|NAME|PAYLOAD", required = true, num_args = 1..=3, allow_negative_numbers = true)]
    words: Vec<String>,
    /// The orchestration with this key, instead of a number: the live one, else the newest
    #[arg(long)]
    key: Option<String>,
    /// With --key: only of this kind
    #[arg(long, requires = "key")]
    kind: Option<Name>,
}

impl RequestArguments {
    /// Returns the orchestration, the name and the payload.
    ///
    /// # Errors
    /// Returns an error if words are missing, or the payload is not JSON.
    pub(in crate::commands::orchestration) fn read(self) -> anyhow::Result<(OneOrchestration, String, Value)> {
        let (number, name, payload) = self.what()?;
        let payload: Value = read_value("payload", payload)?;
        let name = name.to_owned();
        Ok((OneOrchestration::either(number, self.key, self.kind), name, payload))
    }

    fn what(&self) -> anyhow::Result<(Option<TaskId>, &str, &str)> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match (&self.key, words.as_slice()) {
            (Some(_), [name]) => Ok((None, name, "null")),
            (Some(_), [name, payload]) => Ok((None, name, payload)),
            (None, [number, name]) => Ok((Some(number_of(number)?), name, "null")),
            (None, [number, name, payload]) => Ok((Some(number_of(number)?), name, payload)),
            _ => Err(wrong_usage("give the orchestration (its number, or --key), a name and optionally a payload")),
        }
    }
}

fn number_of(text: &str) -> anyhow::Result<TaskId> {
    text.parse().map_err(|error| {
        wrong_usage(format!("`{text}` is not the number of an orchestration ({error}); or name it by --key"))
    })
}
