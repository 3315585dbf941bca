//! The runs of `onward each` in a store.

use rustix::process::Signal;

use crate::harness::{Place, numbers};
use crate::stores::on_every_store;

on_every_store! {
    runs_are_listed_with_their_programs_and_how_far_they_are,
    a_run_that_is_forgotten_leaves_no_line_behind,
    a_run_with_a_line_that_runs_is_not_forgotten,
    a_run_that_is_not_there_is_not_forgotten,
    lines_of_a_run_on_which_nobody_works_are_told_by_doctor,
}

/// Leaves a run whose first line is done and whose other lines wait.
fn abandon(place: &Place, name: &str) {
    let (begun, hold) = (format!("{name}-begun"), format!("{name}-hold"));
    place.pipe(&begun);
    place.pipe(&hold);
    let script = format!("test $0 = 1 || {{ echo > {begun}; exec cat {hold}; }}");
    let each = ["each", "--name", name, "--jobs", "1", "--", "sh", "-c", &script];
    let run = place.start(&each, &numbers(3));
    place.await_writer(&begun);
    run.signal(Signal::INT);
    assert_eq!(run.wait().code, Some(130));
}

/// Shows: B9
fn runs_are_listed_with_their_programs_and_how_far_they_are(place: Place) {
    abandon(&place, "night");
    place.onward_with(&["each", "--", "echo", "a secret"], "x\n\ny\n");
    let runs = place.json(&["each", "--list"]);
    let night = runs.iter().find(|run| run["run"] == "night").unwrap();
    assert_eq!((&night["waiting"], &night["done"], &night["program"]), (&2.into(), &1.into(), &"sh".into()));
    assert_eq!((&night["running"], &night["processes"]), (&0.into(), &0.into()));
    let other = runs.iter().find(|run| run["run"] != "night").unwrap();
    assert_eq!((&other["done"], &other["waiting"], &other["program"]), (&2.into(), &0.into(), &"echo".into()));
    let said = place.onward(&["each", "--list"]).stdout;
    assert!(said.starts_with("RUN ") && said.contains("\nnight ") && !said.contains("secret"), "{said}");
}

/// Shows: B9
fn a_run_that_is_forgotten_leaves_no_line_behind(place: Place) {
    abandon(&place, "night");
    place.onward(&["submit", "--kind", "k"]);
    let ran = place.onward(&["each", "--forget", "night"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "forgot 3 lines of the run night\n"), "{}", ran.stderr);
    assert_eq!(place.json(&["each", "--list"]), [serde_json::Value::Null; 0]);
    assert_eq!(place.json(&["task", "list"]).len(), 1);
    let again = place.onward_with(&["each", "--name", "night", "--", "echo"], &numbers(3));
    assert_eq!(again.stdout, numbers(3));
}

/// Shows: B9
fn a_run_with_a_line_that_runs_is_not_forgotten(place: Place) {
    place.pipe("begun");
    place.pipe("hold");
    let run = place.start(&["each", "--name", "night", "--", "sh", "-c", "echo > begun; cat hold"], "1\n");
    place.await_writer("begun");
    assert_eq!(place.json(&["each", "--list"])[0]["processes"], 1);
    let ran = place.onward(&["each", "--forget", "night"]);
    assert!(
        ran.code == Some(1) && ran.stderr.contains("--forget: 1 line of the run `night` still running"),
        "{}",
        ran.stderr
    );
    place.write("hold", "");
    assert_eq!(run.wait().code, Some(0));
}

/// Shows: B9
fn a_run_that_is_not_there_is_not_forgotten(place: Place) {
    place.onward(&["submit", "--kind", "k"]);
    let ran = place.onward(&["each", "--forget", "night"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--forget night: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("onward each --list"), "{}", ran.stderr);
}

/// Shows: B9, B11
fn lines_of_a_run_on_which_nobody_works_are_told_by_doctor(place: Place) {
    abandon(&place, "night");
    let said = place.onward(&["doctor"]).stdout;
    assert!(
        said.contains("2 lines of the run night (of `sh`)") && said.contains("onward each --forget night"),
        "{said}"
    );
}
