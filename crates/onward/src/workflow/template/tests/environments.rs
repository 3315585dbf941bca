//! Environments.

use std::time::Duration;

use super::super::{StepAction, TemplateFile, Wait};
use super::examples::EXAMPLES;
use super::reading::{error_of, errors_of};

fn file(text: &str) -> TemplateFile {
    TemplateFile::read("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn maps_are_merged_and_all_else_is_replaced() {
    let text =
        "vars: {a: {b: 1, c: [1, 2]}}\nsteps: {s: {task: t}}\nenvironments: {test: {vars: {a: {c: [3], d: 4}}}}\n";
    let file = file(text);
    let vars = &file.in_environment("test").unwrap().vars;
    assert_eq!(serde_json::to_string(vars).unwrap(), r#"{"a":{"b":1,"c":[3],"d":4}}"#);
    assert_eq!(serde_json::to_string(&file.template().vars).unwrap(), r#"{"a":{"b":1,"c":[1,2]}}"#);
}

#[test]
fn null_removes() {
    let (name, text) = EXAMPLES[5];
    let file = TemplateFile::read(name, text).unwrap();
    assert_eq!(file.environments().collect::<Vec<_>>(), ["production", "test"]);
    let after = |environment: &str| file.in_environment(environment).unwrap().step("announce").unwrap().after;
    assert_eq!((after("test"), after("production")), (None, Some(Duration::from_secs(300))));
}

#[test]
fn steps_of_a_list_are_changed_by_name() {
    let text = "steps:\n- wait: 1h\nenvironments: {test: {steps: {step_1: {wait: 1s}}}}\n";
    let file = file(text);
    let wait = &file.in_environment("test").unwrap().steps[0].action;
    assert!(matches!(wait, StepAction::Wait(Wait::Time(time)) if *time == Duration::from_secs(1)));
}

#[test]
fn steps_are_neither_added_nor_removed() {
    let text = |steps: &str| format!("steps: {{build: {{task: t}}}}\nenvironments: {{e: {{steps: {steps}}}}}\n");
    let unknown = error_of(&text("{biuld: {task: u}}")).message;
    assert_eq!(unknown, "an environment cannot add steps, and there is no step `biuld`; did you mean `build`?");
    assert!(error_of(&text("{build: null}")).message.contains("cannot remove the step `build`"));
    assert!(errors_of("test.yaml", &text("[build]")).to_string().contains("so its `steps` is a map"));
    assert!(
        errors_of("test.yaml", "steps: {a: {task: t}}\nenvironments: {e: {steps: null}}\n")
            .to_string()
            .contains("steps")
    );
}

#[test]
fn what_selects_a_template_is_the_same_everywhere() {
    for field in ["name: other", "version: '2'", "description: d", "environments: {}"] {
        let text = format!("version: '1'\nsteps: {{a: {{task: t}}}}\nenvironments: {{e: {{{field}}}}}\n");
        let name = field.split(':').next().unwrap();
        assert!(errors_of("test.yaml", &text).to_string().contains(&format!("cannot change `{name}`")));
    }
}

#[test]
fn a_null_that_removes_nothing_is_refused() {
    let text = "steps: {a: {task: t, after: 1s}}\nenvironments: {e: {steps: {a: {aftr: null}}}}\n";
    let message = error_of(text).message;
    assert_eq!(message, "`aftr: null` removes nothing, because there is no `aftr`; did you mean `after`?");
}

#[test]
fn errors_of_an_environment_name_it() {
    let text = "steps: {a: {task: t}, b: {task: t, depends_on: [a]}}\nenvironments:\n  e:\n    steps: {a: {depends_on: [b]}}\n";
    insta::assert_snapshot!(error_of(text), @r"
    test.yaml:4:29: step `a` depends on itself: a → b → a (in environment `e`)
    4 |     steps: {a: {depends_on: [b]}}
      |                             ^^^
    ");
}

#[test]
fn errors_of_the_template_are_reported_once() {
    let text = "steps: {a: {task: t, depends_on: [b]}}\nenvironments: {e: {timeout: 1s}, f: {timeout: 2s}}\n";
    assert!(error_of(text).message.contains("which is no step"));
}
