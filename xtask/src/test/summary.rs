//! The table after the tests: the time of each program, the slowest tests, the failures.

use std::fmt::Write as _;
use std::time::Duration;

use super::harness::ProgramRun;

/// The number of slowest tests that are listed.
const SLOWEST: usize = 20;

/// Returns the times of the programs and the slowest tests.
pub(super) fn table(built: Duration, ran: &[ProgramRun]) -> String {
    let mut text = format!("\n{:24} {:>8} {:>7} {:>7} {:>8}\n", "program", "seconds", "passed", "failed", "ignored");
    let _ = writeln!(text, "{:24} {:8.1}", "(build)", built.as_secs_f64());
    for ProgramRun { name, took, report, .. } in ran {
        let (passed, failed) = (report.passed.len(), report.failed.len());
        let seconds = took.as_secs_f64();
        let _ = writeln!(text, "{name:24} {seconds:8.1} {passed:7} {failed:7} {:8}", report.ignored);
    }
    text.push_str(&slowest(ran));
    let count = |counted: fn(&ProgramRun) -> usize| ran.iter().map(counted).sum::<usize>();
    let passed = count(|ran| ran.report.passed.len());
    let (failed, ignored) = (count(|ran| ran.report.failed.len()), count(|ran| ran.report.ignored));
    let _ = writeln!(text, "\n{passed} passed, {failed} failed, {ignored} ignored");
    text
}

fn slowest(ran: &[ProgramRun]) -> String {
    let tests = ran.iter().flat_map(|ran| ran.report.passed.iter().map(move |test| (&ran.name, test)));
    let mut tests: Vec<(f64, &String, &String)> =
        tests.filter_map(|(program, test)| Some((test.seconds?, program, &test.name))).collect();
    tests.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut text = format!("\nthe {} slowest tests\n", SLOWEST.min(tests.len()));
    for (seconds, program, test) in tests.into_iter().take(SLOWEST) {
        let _ = writeln!(text, "{seconds:8.1} s  {program}  {test}");
    }
    text
}

/// Returns the failed tests, and the programs that failed without naming a test.
pub(super) fn failures(ran: &[ProgramRun]) -> String {
    let mut text = String::new();
    for ProgramRun { name, report, status, .. } in ran {
        for failed in &report.failed {
            let _ = write!(text, "{failed}");
        }
        if report.failed.is_empty() && !status.success() {
            let _ = write!(text, "\n  {name} ended with {status}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;
    use crate::test::harness::{Passed, Report};

    fn ran(seconds: &[f64], code: i32) -> ProgramRun {
        let test = |&seconds: &f64| Passed { name: format!("takes_{seconds}"), seconds: Some(seconds) };
        let mut report = Report::default();
        report.passed.extend(seconds.iter().map(test));
        let status = ExitStatus::from_raw(code << 8);
        ProgramRun { name: "onward it".to_owned(), took: Duration::from_secs(3), report, status }
    }

    #[test]
    fn the_slowest_test_is_listed_first() {
        let text = slowest(&[ran(&[0.5, 7.0, 2.0], 0)]);
        let lines: Vec<&str> = text.trim().lines().skip(1).collect();
        assert_eq!(lines[0].trim(), "7.0 s  onward it  takes_7", "{text}");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn the_last_line_counts_all_tests() {
        let text = table(Duration::from_secs(9), &[ran(&[1.0, 2.0], 0), ran(&[1.0], 0)]);
        assert!(text.ends_with("\n3 passed, 0 failed, 0 ignored\n"), "{text}");
    }

    #[test]
    fn a_program_that_dies_without_a_failed_test_is_a_failure() {
        assert!(failures(&[ran(&[1.0], 101)]).contains("onward it ended with"));
        assert_eq!(failures(&[ran(&[1.0], 0)]), "");
    }
}
