//! Tests of templates, from a program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use onward::testing::{WorkflowTest, WorkflowTestReport};
use onward::workflow::RunPhase;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflows").join(name)
}

/// Plays the one case of a test.
async fn play(template: &str, case: &str) -> WorkflowTestReport {
    let test = format!("workflow: w.yaml\ncases:\n  one:\n    {}\n", case.replace('\n', "\n    "));
    WorkflowTest::of("w.test.yaml", &test, "w.yaml", template).unwrap().run().await.unwrap()
}

/// Returns the differences of the one case.
async fn mismatches(template: &str, case: &str) -> Vec<String> {
    play(template, case).await.cases.remove(0).mismatches
}

/// Shows: W13
#[tokio::test]
async fn the_saga_of_the_documentation_is_played_in_no_time() {
    let report = WorkflowTest::read(example("5-saga.test.yaml")).unwrap().run().await.unwrap();
    assert!(report.is_ok(), "{report}");
    let undone = &report.cases[0];
    assert_eq!((undone.state, undone.took >= Duration::from_secs(3 * 24 * 3600)), (RunPhase::Failed, true));
}

/// Shows: W5, W13
#[tokio::test]
async fn the_example_that_waits_for_a_person_is_played() {
    let report = WorkflowTest::read(example("7-approval.test.yaml")).unwrap().run().await.unwrap();
    assert!(report.is_ok(), "{report}");
}

/// Shows: W13
#[tokio::test]
async fn each_difference_is_reported() {
    let template = "steps: {a: {task: t, publishes: [{name: done}]}, b: {wait: 1h, depends_on: [a]}}";
    let case =
        "steps: {a: {result: 1}}\nexpect: {state: failed, result: 2, events: [sent], took: 2h, steps: {b: skipped}}";
    assert_eq!(
        mismatches(template, case).await,
        [
            "the run is completed, and failed was expected",
            "step `b` is completed, and skipped was expected",
            "the result is null, and 2 was expected",
            "the events are [done], and [sent] were expected",
            "the run took 3600s, and 7200s was expected",
        ]
    );
}

/// Shows: W13
#[tokio::test]
async fn a_step_that_runs_without_a_result_is_named_with_the_line_to_add() {
    let found = mismatches("steps: {a: {task: t}}", "expect: {}").await;
    assert_eq!(found, ["step `a` has no result in the test file; add under `steps`: a: {result: null}"]);
    let found = mismatches("steps: {a: {signal: s}}", "expect: {}").await;
    assert!(found[0].contains("step `a` has no result"), "{found:?}");
}

/// Shows: W13
#[tokio::test]
async fn a_step_takes_its_time_and_fails_as_often_as_the_file_says() {
    let template = "steps: {a: {task: t, retry: {attempts: 3, backoff: constant, first: 10s}}}";
    let case = "steps: {a: {fail: away, times: 2, then: {result: 7, takes: 1h}}}\nexpect: {state: completed, result: 7, took: 1h20s}";
    assert_eq!(mismatches(template, case).await, [""; 0]);
    let case = "steps: {a: {dead: away}}\nexpect: {state: dead, took: 20s, steps: {a: dead}}";
    assert_eq!(mismatches(template, case).await, [""; 0]);
}

/// Shows: W13
#[tokio::test]
async fn steps_of_every_kind_take_their_result_from_the_file() {
    let template = r"
environments: {test: {vars: {day: Monday}}}
vars: {day: Sunday}
steps:
  script: {run: 'echo $DAY', env: {DAY: '${{ vars.day }}'}}
  below: {workflow: other, with: 1, depends_on: [script]}
  code: {orchestration: o, with: 2, depends_on: [below]}
result: ['${{ steps.script.result }}', '${{ steps.below.result }}', '${{ steps.code.result }}', '${{ run.environment }}', '${{ vars.day }}']";
    let case = "env: test\nsteps: {script: {result: a}, below: {result: b}, code: {result: c}}\nexpect: {result: [a, b, c, test, Monday]}";
    assert_eq!(mismatches(template, case).await, [""; 0]);
}

/// Shows: W13
#[test]
fn errors_of_a_test_file_name_the_case_and_the_remedy() {
    let error = |test: &str| {
        let test = format!("workflow: w.yaml\ncases: {{one: {test}}}\n");
        WorkflowTest::of("w.test.yaml", &test, "w.yaml", "steps: {ship: {task: t}}").unwrap_err().to_string()
    };
    for (test, part) in [
        ("{steps: {shop: {result: 1}}, expect: {}}", "did you mean `ship`?"),
        ("{steps: {undo.ship: {result: 1}}, expect: {}}", "`undo.ship` has no task"),
        ("{steps: {ship: {result: 1, fail: no}}, expect: {}}", "exactly one of `result`, `fail` and `dead`"),
        ("{steps: {ship: {fail: no, times: 2}}, expect: {}}", "`times` and `then` stand together"),
        ("{steps: {ship: {result: 1}}, expect: {stat: failed}}", "unknown field `stat`"),
        ("{steps: {ship: {result: 1}}, expect: {state: complete}}", "did you mean `completed`?"),
        ("{steps: {ship: {result: 1}}, expect: {steps: {ship: done}}}", "`done` is no state of step `ship`"),
        ("{env: test, expect: {}}", "no environment `test`"),
        ("{expect: {took: soon}}", "is not a duration"),
    ] {
        assert!(error(test).contains(part), "{test}: {}", error(test));
    }
}
