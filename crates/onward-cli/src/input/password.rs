//! A password: from a file, from standard input, or typed without being shown.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::exit_code::wrong_usage;

/// The longest password that is read, in bytes.
const PASSWORD_BYTES: usize = 4096;

/// The source of a password. It is no argument, because every user of the machine can read those.
#[derive(Debug, Clone, Args)]
pub(crate) struct PasswordSource {
    /// File with the password in its first line; - reads it from standard input. Without it, the
    /// terminal asks
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordSource {
    /// Reads the password.
    ///
    /// # Errors
    /// Returns an error if it cannot be read. Returns a usage error if it is empty or too long, if
    /// the second entry differs from the first, or if there is neither a file nor a terminal.
    pub(crate) fn read(&self) -> anyhow::Result<String> {
        let password = match &self.password_file {
            Some(path) if path == Path::new("-") => {
                first_line(io::stdin().lock()).context("cannot read the password")?
            }
            Some(path) => {
                let wrong = || format!("cannot read the password in {}", path.display());
                first_line(File::open(path).with_context(wrong)?).with_context(wrong)?
            }
            None => typed()?,
        };
        match password.len() {
            0 => Err(wrong_usage("the password is empty; write it in the first line of the file")),
            1..=PASSWORD_BYTES => Ok(password),
            _ => Err(wrong_usage(format!("the password has more than {PASSWORD_BYTES} bytes; choose a shorter one"))),
        }
    }
}

/// Returns the first line, or more than any password if it is too long.
fn first_line(source: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(PASSWORD_BYTES as u64 + 2).read_to_string(&mut text)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Asks for a password twice.
fn typed() -> anyhow::Result<String> {
    if !io::stdin().is_terminal() {
        return Err(wrong_usage(
            "there is no terminal to ask for the password; give --password-file FILE, or - for stdin",
        ));
    }
    let password = ask("password: ").context("cannot read the password")?;
    if ask("again: ").context("cannot read the password")? != password {
        return Err(wrong_usage("the two passwords differ; try again"));
    }
    Ok(password)
}

/// Asks on the terminal, which shows nothing of what is typed.
fn ask(question: &str) -> io::Result<String> {
    let mut error = io::stderr().lock();
    let mut line = String::new();
    let read = {
        // Before the question: a reply that is typed at once is neither shown nor discarded.
        let _quiet = HiddenInput::new()?;
        error.write_all(question.as_bytes())?;
        error.flush()?;
        io::stdin().read_line(&mut line)
    };
    error.write_all(b"\n")?;
    read?;
    match line.trim_end_matches(['\n', '\r']) {
        // Ctrl-C is a character while nothing is shown, so that it cannot leave the terminal mute.
        line if line.contains('\u{3}') => Err(io::Error::new(io::ErrorKind::Interrupted, "it was interrupted")),
        line => Ok(line.to_owned()),
    }
}

/// A terminal that shows nothing, until it is dropped. Ctrl-C ends the line.
struct HiddenInput(Termios);

impl HiddenInput {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        // With ISIG off, Ctrl-C is the character 3. As an additional end of line it ends the read,
        // so that `ask` sees it.
        quiet.special_codes[rustix::termios::SpecialCodeIndex::VEOL] = 3;
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // A terminal that is gone needs no change.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
