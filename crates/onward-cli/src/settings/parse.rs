//! Parsing the command line over the settings of the file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};

use super::file::FileSettings;
use super::table::{SETTINGS, Setting};
use crate::arguments::{Arguments, explained, program};
use crate::exit_code::wrong_usage;

/// The command line, and where each of its values comes from.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) arguments: Arguments,
    matches: ArgMatches,
    file: FileSettings,
}

/// The value of a setting and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    pub(crate) values: Vec<String>,
    /// `default`, the name of the file, the variable, or the flag.
    pub(crate) source: String,
}

/// Parses the command line of this process. Ends the process on wrong usage, and to print help.
///
/// # Errors
/// Returns a usage error if the file of settings is not right.
pub(crate) fn parse() -> anyhow::Result<Parsed> {
    let (commands, file) = with_file()?;
    let matches = commands.try_get_matches().unwrap_or_else(|error| explained(error).exit());
    parsed(matches, file)
}

/// Parses the command line of this process again, over the file as it is now.
///
/// # Errors
/// Returns a usage error if the file of settings is not right.
#[cfg(feature = "serve")]
pub(crate) fn parse_again() -> anyhow::Result<Parsed> {
    let (commands, file) = with_file()?;
    let matches = commands.try_get_matches().map_err(|error| wrong_usage(error.to_string()))?;
    parsed(matches, file)
}

fn parsed(matches: ArgMatches, file: FileSettings) -> anyhow::Result<Parsed> {
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| wrong_usage(error.to_string()))?;
    Ok(Parsed { arguments, matches, file })
}

/// Returns the definition of the command line, with the values of the file as its defaults.
fn with_file() -> anyhow::Result<(Command, FileSettings)> {
    let file = FileSettings::read(named_file().as_deref())?;
    let mut commands = program();
    for setting in SETTINGS {
        if let Some(values) = file.get(setting.key) {
            check(setting, &commands, values, &file)?;
            commands = with_default(commands, setting, values);
        }
    }
    Ok((commands, file))
}

/// Returns the file that the command line or the environment names.
fn named_file() -> Option<PathBuf> {
    // A command line that is wrong elsewhere is refused later.
    let matches = program().ignore_errors(true).try_get_matches().ok()?;
    matches.get_one::<PathBuf>("config").cloned()
}

/// Checks the values of the file as the command line would. clap takes defaults for right.
fn check(setting: &Setting, commands: &Command, values: &[String], file: &FileSettings) -> anyhow::Result<()> {
    let Some(argument) = setting.argument(commands) else { return Ok(()) };
    let path = file.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
    let line = std::iter::once(OsString::from("onward"))
        .chain(values.iter().map(|value| format!("--{}={value}", setting.flag()).into()));
    let argument = argument.clone().global(false);
    let checked = Command::new("onward").no_binary_name(false).arg(argument).try_get_matches_from(line);
    checked.map(drop).map_err(|error| {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").replace('\n', " ");
        wrong_usage(format!("{path}: `{}`: {text}", setting.key))
    })
}

fn with_default(commands: Command, setting: &Setting, values: &[String]) -> Command {
    let id = setting.id();
    let values = values.to_vec();
    // The help shows defaults, and the URL of a store may have a password.
    let hides = setting.key == "store";
    let set = move |command: Command| {
        command.mut_arg(&id, |argument| argument.default_values(values).hide_default_value(hides))
    };
    match setting.command() {
        None => set(commands),
        Some(name) => {
            let explain = set.clone();
            let commands = commands.mut_subcommand(name, set);
            commands.mut_subcommand("config", |config| config.mut_subcommand("explain", explain))
        }
    }
}

impl Parsed {
    /// Returns the file of settings that was read.
    pub(crate) fn file(&self) -> Option<&std::path::Path> {
        self.file.path.as_deref()
    }

    /// Returns the value of a setting in the command line of `onward config explain`.
    pub(crate) fn explain(&self, setting: &Setting) -> Explained {
        let id = setting.id();
        let innermost = innermost(&self.matches);
        let raw = innermost.try_get_raw(&id).ok().flatten();
        let values = raw.into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect();
        let source = match innermost.value_source(&id) {
            Some(ValueSource::CommandLine) => format!("--{}", setting.flag()),
            Some(ValueSource::EnvVariable) => format!("ONWARD_{}", id.to_uppercase()),
            _ => match (&self.file.path, self.file.get(setting.key)) {
                (Some(path), Some(_)) => path.display().to_string(),
                _ => "default".to_owned(),
            },
        };
        Explained { values, source }
    }
}

/// Returns the matches of the last command, which has the flags of every command as well.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}
