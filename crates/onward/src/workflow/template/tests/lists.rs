//! Lists and maps of steps.

use super::super::{Condition, StepAction, Template, TemplateFile, WorkKind};
use super::reading::{error_of, read};

/// Returns the steps with the names of those that they depend on.
fn order(template: &Template) -> Vec<(&str, Vec<&str>)> {
    let name = |step: usize| template.steps[step].name.as_str();
    let needed = |step: &super::super::Step| step.depends_on.iter().map(|needed| needed.step).map(name).collect();
    template.steps.iter().map(|step| (step.name.as_str(), needed(step))).collect()
}

#[test]
fn a_list_of_texts_is_a_chain_of_scripts() {
    let template = read("- a\n- b\n- c\n");
    let expected = [("step_1", vec![]), ("step_2", vec!["step_1"]), ("step_3", vec!["step_2"])];
    assert_eq!(order(&template), expected);
    let StepAction::Work(work) = &template.steps[1].action else { panic!() };
    assert!(matches!(&work.kind, WorkKind::Run { script, .. } if script == "b"));
    assert_eq!(template.name, "test");
}

#[test]
fn a_step_of_a_list_depends_on_the_one_before_unless_it_says_otherwise() {
    let template =
        read("steps:\n- {name: x, task: t}\n- echo\n- {task: t, depends_on: []}\n- {task: t, depends_on: [x]}\n");
    let expected = [("step_2", vec!["x"]), ("step_3", vec![]), ("step_4", vec!["x"]), ("x", vec![])];
    assert_eq!(order(&template), expected);
}

#[test]
fn a_list_and_the_map_with_its_names_and_dependencies_are_the_same_template() {
    let list = "name: n\nsteps:\n- cargo build\n- {name: test, run: cargo test}\n";
    let map = "name: n\nsteps:\n  test: {run: cargo test, depends_on: [step_1]}\n  step_1: {run: cargo build}\n";
    let hash = |text| TemplateFile::read("x.yaml", text).unwrap().hash();
    assert_eq!(hash(list), hash(map));
}

#[test]
fn names_of_a_list_stand_once() {
    let error = error_of("- {name: step_2, task: t}\n- {task: t}\n");
    assert_eq!(error.message, "two steps are called `step_2`; a name stands once");
    assert_eq!(error.position.to_string(), "2:3");
}

#[test]
fn a_name_stands_only_in_a_list() {
    assert!(error_of("steps: {a: {name: b, task: t}}").message.contains("stands only in a list"));
}

#[test]
fn what_is_chosen_depends_on_its_chooser() {
    let template =
        read("steps:\n  a: {value: [b], chooses: [b, c]}\n  b: {task: t, depends_on: [a]}\n  c: {task: t}\n");
    let conditions: Vec<_> = template.steps[1..].iter().flat_map(|step| &step.depends_on).collect();
    assert_eq!(conditions.len(), 2);
    assert!(conditions.iter().all(|needed| needed.step == 0 && needed.condition == Condition::Chosen));
}

#[test]
fn a_file_whose_name_is_no_name_of_a_template_needs_one() {
    let errors = TemplateFile::read("dir/My Shop.yaml", "- a\n").map(|file| file.label()).unwrap_err();
    assert!(errors.to_string().contains("add one: name: my-shop"), "{errors}");
    assert_eq!(TemplateFile::read("dir/my-shop.yml", "- a\n").unwrap().template().name, "my-shop");
}

#[test]
fn a_command_that_yaml_splits_is_to_be_quoted() {
    let error = error_of("- echo \"it's: done\"\n").to_string();
    let correction = r#"- 'echo "it''s: done"'"#;
    assert!(error.contains("put the command in quotes") && error.contains(correction), "{error}");
    let template = read(correction);
    let StepAction::Work(work) = &template.steps[0].action else { panic!() };
    assert!(matches!(&work.kind, WorkKind::Run { script, .. } if script == r#"echo "it's: done""#));
}
