//! Which tests failed and what they said: read while their output passes, and said again in one place, which a long run's end shows.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::command;

/// How much of what one test printed is said again.
const MOST_LINES: usize = 30;

/// Runs `cargo test` with its output shown; the error names each test that failed.
pub(crate) fn run(test: &mut Command) -> Result<()> {
    let mut child = command::start(test.stdout(Stdio::piped()))?;
    let mut failures = Failures::default();
    for line in BufReader::new(child.stdout.take().context("the tests' output is not there")?).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        failures.read(&line);
    }
    match command::check(child.wait()?, test) {
        Err(error) if !failures.failed.is_empty() => bail!("{error}{failures}"),
        ended => ended,
    }
}

/// What the tests of several programs printed at their ends.
#[derive(Debug, Default)]
struct Failures {
    failed: Vec<Failed>,
    is_printing: bool,
}

#[derive(Debug)]
struct Failed {
    name: String,
    printed: Vec<String>,
}

impl Failures {
    /// Takes the next line of the standard test harness.
    fn read(&mut self, line: &str) {
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = heading {
            self.failed.push(Failed { name: name.to_owned(), printed: Vec::new() });
            self.is_printing = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_printing = false;
        } else if let Some(failed) = self.failed.last_mut().filter(|_| self.is_printing && !line.is_empty()) {
            failed.printed.push(line.to_owned());
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Failed { name, printed } in &self.failed {
            write!(f, "\n  {name}")?;
            for line in printed.iter().take(MOST_LINES) {
                write!(f, "\n    {line}")?;
            }
            if printed.len() > MOST_LINES {
                write!(f, "\n    and {} lines more", printed.len() - MOST_LINES)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "test one::is ... ok
test one::is_not ... FAILED

failures:

---- one::is_not stdout ----

thread 'one::is_not' panicked at src/one.rs:7:9:
1 is not 2

failures:
    one::is_not

test result: FAILED. 1 passed; 1 failed; 0 ignored
";

    #[test]
    fn a_failed_test_is_named_with_what_it_said() {
        let error = run(Command::new("sh").args(["-c", &format!("cat <<'END'\n{PRINTED}END\nexit 101")])).unwrap_err();
        let said = error.to_string();
        assert!(
            said.ends_with("\n  one::is_not\n    thread 'one::is_not' panicked at src/one.rs:7:9:\n    1 is not 2"),
            "{said}"
        );
    }

    #[test]
    fn what_a_test_said_at_length_is_cut() {
        let mut failures = Failures::default();
        failures.read("---- talks stdout ----");
        (0..MOST_LINES + 3).for_each(|number| failures.read(&number.to_string()));
        assert!(failures.to_string().ends_with("\n    and 3 lines more"), "{failures}");
    }
}
