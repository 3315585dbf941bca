//! The target, name and payload of an update or a query.

use clap::Args;
use onward_store::{Name, TaskId};
use serde_json::Value;

use super::named::One;
use super::start::read_json;
use crate::exit_code::wrong_usage;

/// The target and the content of a request.
#[derive(Debug, Args)]
pub(crate) struct Asked {
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

impl Asked {
    /// Returns the orchestration, the name and the payload.
    ///
    /// # Errors
    /// If words are missing, or the payload is not JSON.
    pub(super) fn read(self) -> anyhow::Result<(One, String, Value)> {
        let (number, name, payload) = self.what()?;
        let payload: Value = serde_json::from_slice(&read_json("payload", payload)?)?;
        let name = name.to_owned();
        Ok((One::either(number, self.key, self.kind), name, payload))
    }

    fn what(&self) -> anyhow::Result<(Option<TaskId>, &str, &str)> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match (&self.key, words.as_slice()) {
            (Some(_), [name]) => Ok((None, name, "null")),
            (Some(_), [name, payload]) => Ok((None, name, payload)),
            (None, [number, name]) => Ok((Some(number_of(number)?), name, "null")),
            (None, [number, name, payload]) => Ok((Some(number_of(number)?), name, payload)),
            _ => Err(wrong_usage(
                "say of which orchestration (its number, or --key), under which name, and perhaps a payload",
            )),
        }
    }
}

fn number_of(text: &str) -> anyhow::Result<TaskId> {
    text.parse().map_err(|error| {
        wrong_usage(format!("`{text}` is not the number of an orchestration ({error}); or name it by --key"))
    })
}
