//! The command `onward import crontab`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use onward::{Engine, RetryPolicy};
use onward_store::rules::retry::Backoff;
use onward_store::{CatchUp, MemoryStore, Name, NewSchedule, NewTask, Overlap, Recurrence, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::file::{Crontab, Entry, LeftOut, read};
use super::script::script;
use crate::commands::submit::read_payload;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{moment, one_line, optional, print_json, print_line, remark};
use crate::store_file;
use crate::values::local_zone;

/// The columns that are shown of a line.
const LINE_COLUMNS: usize = 60;

/// The kind of the tasks. A user of a system crontab follows a colon.
const KIND: &str = "cron";

/// Arguments of `onward import crontab`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The crontab, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Each line names a user before its command, as in /etc/crontab and /etc/cron.d
    #[arg(long)]
    system: bool,
    /// The time zone of lines without CRON_TZ, such as Europe/Berlin; default: that of this machine
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

const AFTER_HELP: &str = "\
Each line becomes a schedule whose tasks have the kind `cron`, or with --system `cron:USER`. This runs them:
  onward work --kind cron -- sh
As with cron, a command runs once, in the home directory, with the variables of the crontab, also while the one before
runs, and moments without a worker are missed. `onward schedule set` changes that. Lines that cannot be carried over
are listed with the reason, and the exit code is 1 then. The name of a schedule comes from its line: the same crontab
again changes nothing, and a line that was removed has its schedule deleted by `onward schedule delete`.

Example:
  crontab -l | onward import crontab -";

/// Makes a schedule of each line, and lists the lines that are left out.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = (arguments.file.as_os_str() != "-").then_some(&*arguments.file);
    let bytes = read_payload("FILE", path, Some("-"))?;
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|_| wrong_usage("FILE: the crontab is not UTF-8; convert it, as with iconv"))?;
    let Crontab { entries, mut left_out } = read(&text, arguments.system);
    let zone = zone(arguments.zone)?;
    let engine = if arguments.dry_run {
        Engine::builder().store(std::sync::Arc::new(MemoryStore::new())).open().await?
    } else {
        Engine::builder().store(store_file::open_to_edit(options, true).await?).open().await?
    };
    let mut kinds = BTreeSet::new();
    for (name, entry) in named(&entries)? {
        match set(&engine, &name, entry, &zone).await {
            Ok(next) => {
                kinds.insert(kind(entry)?);
                print(options, &name, entry, next)?;
            }
            Err(error) if error.is_invalid() => left_out.push(LeftOut {
                number: entry.number,
                text: format!("{} {}", entry.expression, entry.command),
                reason: error.to_string(),
                is_entry: true,
            }),
            Err(error) => return Err(error.into()),
        }
    }
    left_out.sort_by_key(|line| line.number);
    report(options, &left_out)?;
    if !options.json {
        kinds.iter().for_each(|kind| remark(format_args!("to run its tasks: onward work --kind {kind} -- sh")));
    }
    Ok(ExitCode::Done.or_failed(left_out.iter().any(|line| line.is_entry)))
}

/// Returns the time zone of lines without one of their own.
fn zone(given: Option<String>) -> anyhow::Result<String> {
    let known = match given {
        Some(given) => Some(given),
        None => local_zone().map_err(wrong_usage)?.iana_name().map(str::to_owned),
    };
    known.ok_or_else(|| wrong_usage("the time zone of this machine has no name; give one by --zone Europe/Berlin"))
}

/// Returns the entries with the names of their schedules: the program, and a digest of the line.
/// Equal lines are numbered.
fn named(entries: &[Entry]) -> anyhow::Result<Vec<(Name, &Entry)>> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut named = Vec::with_capacity(entries.len());
    for entry in entries {
        let digest = Sha256::digest(format!("{}\n{:?}\n{}", entry.expression, entry.user, entry.command));
        let digits: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("cron-{}{digits}", program(&entry.command));
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name}-{count}") };
        named.push((Name::new(name)?, entry));
    }
    Ok(named)
}

/// Returns the name of the program of a command and `-`, or nothing if the command begins with
/// something else.
fn program(command: &str) -> String {
    let word = command.split_whitespace().next().unwrap_or_default();
    let word = word.rsplit('/').next().unwrap_or_default();
    let plain: String = word.chars().filter(|next| next.is_ascii_alphanumeric() || "._-".contains(*next)).collect();
    let plain: String = plain.trim_matches(['.', '-']).chars().take(40).collect();
    if plain.is_empty() { plain } else { plain + "-" }
}

fn kind(entry: &Entry) -> onward_store::Result<Name> {
    Name::new(entry.user.as_ref().map_or_else(|| KIND.to_owned(), |user| format!("{KIND}:{user}")))
}

async fn set(engine: &Engine, name: &Name, entry: &Entry, zone: &str) -> onward::Result<Option<Timestamp>> {
    let task = NewTask {
        payload: script(entry).into_bytes().into(),
        retry: Some(RetryPolicy { attempts: 1, backoff: Backoff::Constant { delay: std::time::Duration::ZERO } }),
        ..NewTask::of(kind(entry)?)
    };
    let zone = entry.zone.clone().unwrap_or_else(|| zone.to_owned());
    let recurrence = Recurrence::Cron { expression: entry.expression.clone(), zone };
    let (overlap, catch_up) = (Overlap::Allow, CatchUp::None);
    engine.set_schedule(NewSchedule { overlap, catch_up, ..NewSchedule::new(name.clone(), recurrence, task) }).await?;
    Ok(engine.find_schedule(name).await?.next.map(|next| next.at))
}

fn print(options: &GlobalOptions, name: &Name, entry: &Entry, next: Option<Timestamp>) -> anyhow::Result<()> {
    let Entry { number, expression, command, user, .. } = entry;
    if options.json {
        print_json(&json!({
            "line": number, "schedule": name, "cron": expression, "user": user, "command": command, "next": next
        }))?;
    } else {
        let (command, next) = (one_line(command, LINE_COLUMNS), optional(next, moment));
        print_line(format_args!("line {number}: schedule {name}: {expression} {command}; next at {next}"))?;
    }
    Ok(())
}

fn report(options: &GlobalOptions, left_out: &[LeftOut]) -> anyhow::Result<()> {
    for LeftOut { number, text, reason, .. } in left_out {
        if options.json {
            print_json(&json!({ "line": number, "left_out": text, "reason": reason }))?;
        } else {
            print_line(format_args!("line {number} is left out: {}: {reason}", one_line(text, LINE_COLUMNS)))?;
        }
    }
    Ok(())
}
