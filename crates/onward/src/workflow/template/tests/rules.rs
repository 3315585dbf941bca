//! The rules of steps among each other.

use super::reading::{error_of, errors_of, read};

/// Returns the message of the only error of some steps.
#[track_caller]
fn message(steps: &str) -> String {
    error_of(&format!("steps:\n{steps}")).message
}

#[test]
fn an_unknown_dependency_has_the_nearest_name() {
    let steps = "  build: {task: t}\n  ship: {task: t, depends_on: [biuld]}\n";
    assert_eq!(message(steps), "step `ship` depends on `biuld`, which is no step; did you mean `build`?");
}

#[test]
fn a_dependency_stands_once() {
    let steps = "  a: {task: t}\n  b: {task: t, depends_on: [a, {a: failed}]}\n";
    assert_eq!(message(steps), "`a` stands twice in `depends_on` of step `b`");
}

#[test]
fn a_step_does_not_depend_on_itself() {
    assert_eq!(message("  a: {task: t, depends_on: [a]}\n"), "step `a` depends on itself");
    assert_eq!(message("  a: {value: a, chooses: [a]}\n"), "step `a` chooses itself");
}

#[test]
fn a_cycle_is_named_in_full() {
    let steps = "  a: {task: t, depends_on: [c]}\n  b: {task: t, depends_on: [a]}\n  c: {task: t, depends_on: [b]}\n  d: {task: t, depends_on: [c]}\n";
    assert_eq!(message(steps), "step `a` depends on itself: a → c → b → a");
}

#[test]
fn a_choice_can_close_a_cycle() {
    let steps = "  a: {value: b, chooses: [b], depends_on: [b]}\n  b: {task: t}\n";
    assert_eq!(message(steps), "step `a` depends on itself: a → b → a");
}

#[test]
fn a_step_has_one_chooser() {
    let steps = "  a: {value: c, chooses: [c]}\n  b: {value: c, chooses: [c]}\n  c: {task: t}\n";
    assert_eq!(message(steps), "step `c` has two choosers, `a` and `b`; it can have one");
    let steps = "  a: {value: c, chooses: [c]}\n  c: {task: t, depends_on: [{a: failed}]}\n";
    assert!(message(steps).contains("depends on it with a condition"));
}

#[test]
fn a_step_has_exactly_one_kind() {
    assert_eq!(message("  a: {task: t, run: x}\n"), "step `a` has both `task` and `run`; it has exactly one kind");
    let none = message("  a: {if: 'true'}\n");
    assert!(none.starts_with("step `a` has no kind; give it one of `task`, `run`"), "{none}");
}

#[test]
fn a_misspelt_kind_is_reported_once() {
    assert_eq!(message("  a: {taks: t}\n"), "unknown field `taks` in step `a`; did you mean `task`?");
}

#[test]
fn names_of_steps_are_checked() {
    assert!(message("  Build: {task: t}\n").ends_with("; `build`, for example"));
}

#[test]
fn only_ancestors_can_be_named() {
    let steps = "  a: {task: t, with: '${{ steps.b.result }}'}\n  b: {task: t, depends_on: [a]}\n";
    assert_eq!(message(steps), "step `a` uses steps.b, which it does not depend on; `b` comes after it");
    assert!(message("  a: {task: t, with: '${{ steps.a.result }}'}\n").contains("uses its own result"));
    let steps = "  a: {task: t}\n  b: {task: t, if: steps.aa.result}\n";
    assert_eq!(message(steps), "step `b` uses steps.aa, which is no step; did you mean `a`?");
}

#[test]
fn the_dependency_to_add_keeps_those_that_are_there() {
    let steps = "  a: {task: t}\n  b: {task: t}\n  c: {task: t, depends_on: [{a: failed}], if: steps.b.result}\n";
    assert!(message(steps).ends_with("add `depends_on: [{a: failed}, b]`"));
}

#[test]
fn ancestors_of_ancestors_can_be_named() {
    read(
        "steps:\n  a: {task: t}\n  b: {task: t, depends_on: [a]}\n  c: {task: t, depends_on: [b], if: steps.a.result}\n",
    );
    read("steps:\n  a: {value: b, chooses: [b]}\n  b: {task: t, if: steps.a.result}\n");
}

#[test]
fn a_misspelt_depends_on_leaves_no_further_errors() {
    let steps = "  a: {task: t}\n  b: {task: t, dependson: [a], if: steps.a.result}\n  c: {task: t, depends_on: [b], if: steps.a.result}\n";
    assert!(message(steps).contains("did you mean `depends_on`?"));
    let steps = "  a: {task: t}\n  b: {task: t, depends_on: a, if: steps.a.result}\n";
    assert!(message(steps).ends_with("write: depends_on: [a]"));
}

#[test]
fn an_undo_and_a_result_can_name_every_step() {
    let undo = "undo: {task: u, with: '${{ [steps.a.state, steps.b.result] }}'}";
    read(&format!("steps:\n  a: {{task: t, {undo}}}\n  b: {{task: t}}\nresult: '${{{{ steps.b.result }}}}'\n"));
    let steps = "  a: {task: t, undo: {task: u, with: '${{ steps.x.result }}'}}\n";
    assert!(message(steps).contains("uses steps.x, which is no step"));
}

#[test]
fn an_item_is_there_only_for_payloads_of_each() {
    read(
        "steps: {a: {task: t, each: input.a, with: '${{ item }}', key: '${{ index }}', undo: {task: u, with: '${{ item }}'}}}",
    );
    read("steps: {a: {run: t, each: input.a, env: {A: '${{ item }}'}}}");
    for field in ["if: item > 1", "affinity: '${{ item }}'", "each: item", "tags: {a: '${{ index }}'}"] {
        let each = if field.starts_with("each") { "" } else { ", each: input.a" };
        assert!(
            message(&format!("  a: {{task: t, {field}{each}}}\n")).contains("stand only in `with`, `env` and `key`")
        );
    }
    assert!(message("  a: {task: t, with: '${{ item }}'}\n").contains("stand only in"));
}

#[test]
fn the_key_of_a_run_depends_on_its_input_alone() {
    for name in ["steps.a.result", "run.id", "vars.a"] {
        let error = error_of(&format!("key: '${{{{ {name} }}}}'\nsteps: {{a: {{task: t}}}}\n"));
        assert!(error.message.contains("can use `input` alone"), "{error}");
    }
}

#[test]
fn signals_of_one_name_come_one_after_the_other() {
    let steps = "  a: {signal: go}\n  b: {signal: go}\n";
    assert!(message(steps).starts_with("steps `a` and `b` wait for one signal"));
    read(
        "steps:\n  b: {signal: go}\n  m: {wait: 1s, depends_on: [b]}\n  a: {signal: go, depends_on: [m]}\n  c: {signal: other}\n",
    );
}

#[test]
fn undo_needs_a_step_that_can_be_undone() {
    let policy = "on_failure: undo\nsteps:\n  a: ";
    assert!(error_of(&format!("{policy}{{task: t}}\n")).message.contains("no step has an `undo`"));
    read(&format!("{policy}{{task: t, undo: {{task: u}}}}\n"));
    // A workflow brings the undo of its own template.
    read(&format!("{policy}{{workflow: w}}\n"));
}

#[test]
fn schemas_are_bounded_and_refer_to_themselves() {
    let schema = |schema: &str| format!("input_schema: {schema}\nsteps: {{a: {{task: t}}}}\n");
    read(&schema(
        "{$ref: '#/$defs/a', $defs: {a: {enum: [{$ref: 'http://data'}]}}, properties: {$ref: {type: string}}}",
    ));
    let remote = error_of(&schema("{properties: {a: {$ref: 'file:///etc/passwd'}}}"));
    assert!(remote.message.contains("is in another document"), "{remote}");
    assert_eq!(remote.position.to_string(), "1:39");
    let large = error_of(&schema(&format!("{{title: {}}}", "x".repeat(70_000))));
    assert!(large.message.contains("a schema has at most 65536"), "{}", large.message);
}

#[test]
fn at_most_twenty_errors_are_reported() {
    let fields: String = (0..50).map(|number| format!("  f{number}: 1\n")).collect();
    let errors = errors_of("test.yaml", &format!("steps:\n{fields}"));
    assert_eq!((errors.as_slice().len(), errors.left_out()), (20, 30));
    assert!(errors.to_string().ends_with("\nand 30 more"));
    assert!(errors.as_slice().is_sorted_by_key(|error| error.position));
}

#[test]
fn limits_of_attempts_stand_only_where_there_are_attempts() {
    let cases = [
        ("orchestration: o, timeout: 1m", "`timeout` does not stand beside `orchestration`"),
        ("orchestration: o, deadline: 1m", "`deadline` does not stand beside `orchestration`"),
        ("orchestration: o, heartbeat: 1m", "`heartbeat` does not stand beside `orchestration`"),
        ("workflow: w, heartbeat: 1m", "`heartbeat` does not stand beside `workflow`"),
        ("task: t, undo: {workflow: w, retry: 2}", "`retry` does not stand beside `workflow` in `undo`"),
        ("task: t, undo: {orchestration: o, timeout: 1m}", "`timeout` does not stand beside `orchestration` in `undo`"),
    ];
    for (step, part) in cases {
        let message = message(&format!("  a: {{{step}}}\n"));
        assert!(message.contains(part), "{step}: {message}");
    }
}
