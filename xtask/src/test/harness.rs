//! Runs a program of the standard test harness and parses its output.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::command;

/// The most lines of a failed test's output that are repeated at the end.
const MAX_LINES: usize = 30;

/// The end of the line with which the harness announces a slow test.
const SLOW: &str = " has been running for over 60 seconds";

/// The most lines of a program's output that are buffered.
const MAX_WAITING: usize = 1000;

/// The result of one test program.
#[derive(Debug)]
pub(super) struct ProgramRun {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) report: Report,
    pub(super) status: ExitStatus,
}

/// The tests of a program, parsed from its output.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The tests that passed, each with its time if the harness prints it.
    pub(super) passed: Vec<Passed>,
    pub(super) ignored: usize,
    pub(super) failed: Vec<Failed>,
    /// The tests that have run for over a minute and have not ended.
    unended: Vec<String>,
    is_printing: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Passed {
    pub(super) name: String,
    pub(super) seconds: Option<f64>,
}

/// A failed test and its output.
#[derive(Debug)]
pub(super) struct Failed {
    name: String,
    printed: Vec<String>,
}

/// The form in which the output of a program is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The lines below a heading.
    Heading,
    /// The name of the program before each line, because another program runs at the same time.
    Prefix,
}

impl Style {
    fn begin(self, name: &str) {
        match self {
            Self::Heading => println!("\n{name}"),
            Self::Prefix => println!("{name}: started"),
        }
    }

    fn line(self, name: &str, line: &str) -> String {
        match self {
            Self::Heading => line.to_owned(),
            Self::Prefix => format!("{name}: {line}"),
        }
    }
}

/// Runs a test program. Shows its output, except the lines of tests that passed.
///
/// A program that prints nothing for `silence` is killed. The tests that the harness has announced
/// as slow and that have not ended are reported as failed. Without this limit one test that waits
/// for ever would block all later ones.
pub(super) fn run(name: &str, program: &mut Command, silence: Duration) -> Result<ProgramRun> {
    run_in_style(Style::Heading, name, program, silence)
}

/// Runs a test program as [`run`] does, and shows its output in a style.
pub(super) fn run_in_style(style: Style, name: &str, program: &mut Command, silence: Duration) -> Result<ProgramRun> {
    style.begin(name);
    let started = command::now();
    let mut child = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|error| anyhow::anyhow!("cannot start {name}: {error}"))?;
    let mut report = Report::default();
    let lines = lines_of(child.stdout.take().context("the output of the tests is not there")?);
    loop {
        match lines.recv_timeout(silence) {
            Ok(line) if report.read(&line) == Shown::Yes => println!("{}", style.line(name, &line)),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                report.end_unended(silence);
                break;
            }
        }
    }
    let status = child.wait()?;
    Ok(ProgramRun { name: name.to_owned(), took: started.elapsed(), report, status })
}

/// Reads the lines of a program on a thread of its own, because a read from a pipe has no timeout.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(MAX_WAITING);
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

/// The decision whether a line is shown while the tests run.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

impl Report {
    /// Parses the next line of the harness.
    fn read(&mut self, line: &str) -> Shown {
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            return self.read_result(name, result);
        }
        if let Some(slow) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(SLOW)) {
            self.unended.push(slow.to_owned());
        }
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = heading {
            self.begin_output(name);
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_printing = false;
        } else if let Some(failed) = self.failed.last_mut().filter(|_| self.is_printing && !line.is_empty()) {
            failed.printed.push(line.to_owned());
        }
        if line.is_empty() { Shown::No } else { Shown::Yes }
    }

    fn read_result(&mut self, name: &str, result: &str) -> Shown {
        self.unended.retain(|unended| unended != name);
        if result.starts_with("ok") {
            self.passed.push(Passed { name: name.to_owned(), seconds: seconds(result) });
            return Shown::No;
        }
        if result.starts_with("ignored") {
            self.ignored += 1;
            return Shown::No;
        }
        if result.starts_with("FAILED") {
            // The output of the test comes at the end, unless the program is killed before.
            self.failed.push(Failed { name: name.to_owned(), printed: Vec::new() });
        }
        Shown::Yes
    }

    /// Counts each test that has not ended as failed.
    fn end_unended(&mut self, silence: Duration) {
        let printed = format!("did not end; the program was killed after {} s without output", silence.as_secs());
        let failed = |name| Failed { name, printed: vec![printed.clone()] };
        self.failed.extend(self.unended.drain(..).map(failed));
    }

    /// Assigns the following output to the failed test `name`, which becomes the last one.
    fn begin_output(&mut self, name: &str) {
        self.failed.retain(|failed| failed.name != name);
        self.failed.push(Failed { name: name.to_owned(), printed: Vec::new() });
        self.is_printing = true;
    }
}

/// Returns the time in a result such as `ok <0.012s>`.
fn seconds(result: &str) -> Option<f64> {
    result.split_once('<')?.1.strip_suffix("s>")?.parse().ok()
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  {}", self.name)?;
        for line in self.printed.iter().take(MAX_LINES) {
            write!(f, "\n    {line}")?;
        }
        if self.printed.len() > MAX_LINES {
            write!(f, "\n    and {} more lines", self.printed.len() - MAX_LINES)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    const PRINTED: &str = "test one::is ... ok <0.250s>
test one::rests ... ignored, for a reason
test one::is_not ... FAILED <0.001s>

failures:

---- one::is_not stdout ----

thread 'one::is_not' panicked at src/one.rs:7:9:
1 is not 2

failures:
    one::is_not

test result: FAILED. 1 passed; 1 failed; 1 ignored
";

    fn ran() -> ProgramRun {
        run("one", Command::new("sh").args(["-c", &format!("cat <<'END'\n{PRINTED}END\nexit 101")]), MINUTE).unwrap()
    }

    #[test]
    fn lines_of_a_program_beside_another_have_its_name() {
        assert_eq!(Style::Prefix.line("sdk-ruby", "1 is not 2"), "sdk-ruby: 1 is not 2");
        assert_eq!(Style::Heading.line("sdk-ruby", "1 is not 2"), "1 is not 2");
    }

    #[test]
    fn a_test_that_never_ends_is_reported_and_its_program_killed() {
        let script = format!("echo 'test one::waits{SLOW}'; exec sleep 600");
        let ran = run("one", Command::new("sh").args(["-c", &script]), Duration::from_millis(200)).unwrap();
        let failed: String = ran.report.failed.iter().map(ToString::to_string).collect();
        assert!(failed.contains("one::waits\n    did not end") && !ran.status.success(), "{failed}");
    }

    #[test]
    fn a_slow_test_that_ends_is_no_failure() {
        let mut report = Report::default();
        report.read(&format!("test one::is{SLOW}"));
        report.read("test one::is ... ok <61.000s>");
        report.end_unended(MINUTE);
        assert!(report.failed.is_empty());
    }

    #[test]
    fn a_failed_test_is_kept_with_its_output() {
        let ran = ran();
        let failed: String = ran.report.failed.iter().map(ToString::to_string).collect();
        let expected = "\n  one::is_not\n    thread 'one::is_not' panicked at src/one.rs:7:9:\n    1 is not 2";
        assert_eq!((failed.as_str(), ran.status.success()), (expected, false));
    }

    #[test]
    fn a_failed_test_is_kept_also_where_its_output_never_comes() {
        let mut report = Report::default();
        report.read("test one::is_not ... FAILED <0.001s>");
        assert_eq!(report.failed.len(), 1);
    }

    #[test]
    fn a_passed_test_is_kept_with_its_time() {
        assert_eq!(ran().report.passed, [Passed { name: "one::is".to_owned(), seconds: Some(0.25) }]);
    }

    #[test]
    fn an_ignored_test_is_counted() {
        assert_eq!(ran().report.ignored, 1);
    }

    #[test]
    fn the_line_of_a_passed_test_is_not_shown() {
        let mut report = Report::default();
        assert_eq!(report.read("test one::is ... ok <0.250s>"), Shown::No);
        assert_eq!(report.read("test one::is_not ... FAILED <0.001s>"), Shown::Yes);
    }

    #[test]
    fn long_output_of_a_failed_test_is_cut() {
        let mut report = Report::default();
        report.read("---- talks stdout ----");
        for number in 0..MAX_LINES + 3 {
            report.read(&number.to_string());
        }
        let failed = report.failed[0].to_string();
        assert!(failed.ends_with("\n    and 3 more lines"), "{failed}");
    }
}
