//! Runs other programs.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Returns the cargo that runs this program, or the one in the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the time, to measure durations.
#[expect(clippy::disallowed_methods, reason = "measures how long steps take; decides nothing")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs a command and shows its output. Returns an error if the command fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = start(command)?.wait()?;
    check(status, command)
}

/// Starts a command and prints it.
pub(crate) fn start(command: &mut Command) -> Result<Child> {
    let shown = show(command);
    println!("$ {shown}");
    command.spawn().with_context(|| format!("cannot start `{shown}`"))
}

/// Runs a command. Kills it and returns an error if it does not end within `limit`.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    println!("$ {}", show(command));
    match status_within(command, limit)? {
        Some(status) => check(status, command),
        None => bail!(
            "`{}` had not ended after {} s and was killed; run it alone to see where it waits",
            show(command),
            limit.as_secs()
        ),
    }
}

/// Returns whether a command succeeds within `limit`. Kills it if it does not end by then.
pub(crate) fn succeeds_within(command: &mut Command, limit: Duration) -> Result<bool> {
    Ok(status_within(command, limit)?.is_some_and(|status| status.success()))
}

/// Returns the exit status of a command, or `None` if it did not end within `limit` and was killed.
fn status_within(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>> {
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", show(command)))?;
    let started = now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        pause(POLL_INTERVAL);
    }
}

#[expect(clippy::disallowed_methods, reason = "the standard library offers no wait with a limit for a child process")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Returns what a command writes to standard output. Returns an error if the command fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
}

/// Returns an error if a command that has ended did not succeed.
pub(crate) fn check(status: ExitStatus, command: &Command) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

/// Returns a command as a person would type it, with the variables that were set for it.
fn show(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quote(&value?.to_string_lossy()))));
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let arguments = command.get_args().map(|argument| quote(&argument.to_string_lossy()));
    let words: Vec<String> =
        variables.chain(std::iter::once(program.to_string_lossy().into_owned())).chain(arguments).collect();
    words.join(" ")
}

fn quote(word: &str) -> String {
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"$|&;<>*".contains(c)) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_an_error_that_names_it() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().contains("`false` failed"), "{error}");
    }

    #[test]
    fn a_command_that_does_not_end_is_killed() {
        let error = run_within(Command::new("sleep").arg("600"), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("had not ended"), "{error}");
    }

    #[test]
    fn a_shown_command_can_be_typed_again() {
        let mut command = Command::new("/usr/bin/echo");
        command.env("NAME", "a b").args(["it's", "plain"]);
        assert_eq!(show(&command), r"NAME='a b' echo 'it'\''s' plain");
    }
}
