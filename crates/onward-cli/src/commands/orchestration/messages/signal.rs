//! `onward orchestration signal`

use std::time::Duration;

use clap::Args;
use onward_store::bounds::RESERVED_SIGNAL_PREFIX;
use onward_store::{Name, Outcome, Recipient, Signal, TaskId, Write};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::commands::orchestration::control::start::read_json;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration signal`.
#[derive(Debug, Args)]
#[command(override_usage = "onward orchestration signal [OPTIONS] <ORCHESTRATION> <NAME> [PAYLOAD]\n       \
    onward orchestration signal [OPTIONS] --kind <KIND> --key <KEY> <NAME> [PAYLOAD]")]
pub(crate) struct Arguments {
    /// Its number (not with --key), the name of the signal, and the payload as JSON (- for stdin;
    /// default: null)
    #[arg(value_name = "ORCHESTRATION|NAME|PAYLOAD", required = true, num_args = 1..=3, allow_negative_numbers = true)]
    words: Vec<String>,
    /// Send to the active orchestration with this key, instead of a number
    #[arg(long, requires = "kind")]
    key: Option<String>,
    /// With --key: the kind of the orchestration
    #[arg(long, requires = "key")]
    kind: Option<Name>,
    /// With --key: if no orchestration has the key, keep the signal this long for one that starts
    /// with it
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration, requires = "key")]
    keep_for: Option<Duration>,
}

impl Arguments {
    /// Returns the recipient, and the remaining words: the name and perhaps a payload.
    fn recipient(&self) -> anyhow::Result<(Recipient, &[String])> {
        if let Some((kind, key)) = self.kind.clone().zip(self.key.clone()) {
            let to = match self.keep_for {
                Some(keep_for) => Recipient::KeyOrStart { kind, key, keep_for },
                None => Recipient::Key { kind, key },
            };
            return Ok((to, &self.words));
        }
        let Some((number, rest)) = self.words.split_first() else { return Err(incomplete()) };
        let task = number.parse::<TaskId>().map_err(|error| {
            wrong_usage(format!(
                "`{number}` is not the number of an orchestration ({error}); or name it by --kind and --key"
            ))
        })?;
        Ok((Recipient::Task(task), rest))
    }

    fn signal(&self) -> anyhow::Result<Signal> {
        let (to, words) = self.recipient()?;
        let (name, payload) = match words {
            [name] => (name, "null"),
            [name, payload] => (name, payload.as_str()),
            _ => return Err(incomplete()),
        };
        let name = Name::new(name).map_err(|error| wrong_usage(format!("`{name}` is no name of a signal: {error}")))?;
        if name.starts_with(RESERVED_SIGNAL_PREFIX) {
            return Err(wrong_usage(format!(
                "the signal `{name}` is reserved for Onward; choose a name that does not begin with `{RESERVED_SIGNAL_PREFIX}`"
            )));
        }
        Ok(Signal { to, name, payload: read_json("payload", payload)? })
    }
}

fn incomplete() -> anyhow::Error {
    wrong_usage(
        "give the orchestration (its number, or --kind and --key), the name of the signal and optionally a payload",
    )
}

/// Sends the signal.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let signal = arguments.signal()?;
    let (name, to) = (signal.name.clone(), recipient_text(&signal.to));
    let store = match &signal.to {
        Recipient::KeyOrStart { .. } => store_file::open_or_create(options).await?,
        Recipient::Task(_) | Recipient::Key { .. } => store_file::open_existing(options).await?,
    };
    match apply_one(&*store, Write::Signal(Box::new(signal))).await? {
        Outcome::Done => {}
        other => return Err(unexpected(other)),
    }
    if options.json {
        print_json(&json!({ "outcome": "sent", "name": name }))?;
    } else {
        print_line(format_args!("`{name}` was sent to {to}"))?;
    }
    Ok(ExitCode::Done)
}

fn recipient_text(to: &Recipient) -> String {
    match to {
        Recipient::Task(task) => format!("orchestration {task}"),
        Recipient::KeyOrStart { kind, key, .. } => {
            format!("the orchestration of the kind `{kind}` with the key `{key}`, now or when it starts")
        }
        Recipient::Key { kind, key } => format!("the orchestration of the kind `{kind}` with the key `{key}`"),
    }
}
