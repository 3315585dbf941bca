//! The runs of `onward each` in a store.

use rustix::process::Signal;

use crate::harness::{Sandbox, numbers};
use crate::stores::on_every_store;

on_every_store! {
    runs_are_listed_with_their_programs_and_how_far_they_are,
    a_run_that_is_forgotten_leaves_no_line_behind,
    a_run_with_a_line_that_runs_is_not_forgotten,
    a_run_that_is_not_there_is_not_forgotten,
    a_continued_run_remembers_its_lines_for_as_long_as_it_began_to,
    doctor_reports_lines_of_a_run_without_a_process,
}

/// Leaves a run whose first line is done and whose other lines wait.
fn abandon(sandbox: &Sandbox, name: &str) {
    let (begun, hold) = (format!("{name}-begun"), format!("{name}-hold"));
    sandbox.pipe(&begun);
    sandbox.pipe(&hold);
    let script = format!("test $0 = 1 || {{ echo > {begun}; exec cat {hold}; }}");
    let each = ["each", "--name", name, "--jobs", "1", "--", "sh", "-c", &script];
    let run = sandbox.start(&each, &numbers(3));
    sandbox.await_writer(&begun);
    run.signal(Signal::INT);
    assert_eq!(run.wait().code, Some(130));
}

/// Shows: B9
fn runs_are_listed_with_their_programs_and_how_far_they_are(sandbox: Sandbox) {
    abandon(&sandbox, "night");
    sandbox.onward_with(&["each", "--", "echo", "a secret"], "x\n\ny\n");
    let runs = sandbox.json(&["each", "--list"]);
    let night = runs.iter().find(|run| run["run"] == "night").unwrap();
    assert_eq!((&night["waiting"], &night["done"], &night["program"]), (&2.into(), &1.into(), &"sh".into()));
    assert_eq!((&night["running"], &night["processes"]), (&0.into(), &0.into()));
    let other = runs.iter().find(|run| run["run"] != "night").unwrap();
    assert_eq!((&other["done"], &other["waiting"], &other["program"]), (&2.into(), &0.into(), &"echo".into()));
    let output = sandbox.onward(&["each", "--list"]).stdout;
    assert!(output.starts_with("RUN ") && output.contains("\nnight ") && !output.contains("secret"), "{output}");
}

/// Shows: B9
fn a_run_that_is_forgotten_leaves_no_line_behind(sandbox: Sandbox) {
    abandon(&sandbox, "night");
    sandbox.onward(&["submit", "--kind", "k"]);
    let ran = sandbox.onward(&["each", "--forget", "night"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "forgot 3 lines of the run night\n"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["each", "--list"]), [serde_json::Value::Null; 0]);
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
    let again = sandbox.onward_with(&["each", "--name", "night", "--", "echo"], &numbers(3));
    assert_eq!(again.stdout, numbers(3));
}

/// Shows: B9
fn a_run_with_a_line_that_runs_is_not_forgotten(sandbox: Sandbox) {
    sandbox.pipe("begun");
    sandbox.pipe("hold");
    let run = sandbox.start(&["each", "--name", "night", "--", "sh", "-c", "echo > begun; cat hold"], "1\n");
    sandbox.await_writer("begun");
    assert_eq!(sandbox.json(&["each", "--list"])[0]["processes"], 1);
    let ran = sandbox.onward(&["each", "--forget", "night"]);
    assert!(
        ran.code == Some(1) && ran.stderr.contains("--forget: 1 line of the run `night` still running"),
        "{}",
        ran.stderr
    );
    sandbox.write("hold", "");
    assert_eq!(run.wait().code, Some(0));
}

/// Shows: B9
fn a_run_that_is_not_there_is_not_forgotten(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k"]);
    let ran = sandbox.onward(&["each", "--forget", "night"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--forget night: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("onward each --list"), "{}", ran.stderr);
}

/// Shows: B9, B11
fn doctor_reports_lines_of_a_run_without_a_process(sandbox: Sandbox) {
    abandon(&sandbox, "night");
    let output = sandbox.onward(&["doctor"]).stdout;
    assert!(
        output.contains("2 lines of the run night (of `sh`)") && output.contains("onward each --forget night"),
        "{output}"
    );
}

fn a_continued_run_remembers_its_lines_for_as_long_as_it_began_to(sandbox: Sandbox) {
    let each = |options: &[&str], last| {
        let words = [&["each", "--name", "night"], options, &["--", "echo"]].concat();
        sandbox.onward_with(&words, &numbers(last))
    };
    assert_eq!(each(&["--keep", "90d"], 1).stdout, "1\n");
    let other = each(&["--keep", "1d"], 2);
    assert_eq!((other.code, other.stdout.as_str()), (Some(2), ""), "{other:?}");
    assert!(other.stderr.contains("--keep 1d00h: this run remembers its lines for 90d00h since"), "{}", other.stderr);
    // Without the option, and with the same time, the run goes on.
    assert_eq!([each(&[], 2).stdout, each(&["--keep", "90d"], 3).stdout], [numbers(2), numbers(3)]);
    let again = each(&["--keep", "1d"], 3);
    assert!(again.stderr.contains("remembers its lines for 90d"), "the line without the option, too: {again:?}");
    assert_eq!(each(&["--keep", "1d", "--again"], 1).stdout, "1\n");
}
