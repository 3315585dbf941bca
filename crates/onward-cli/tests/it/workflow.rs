//! `onward workflow`.

use crate::harness::{Sandbox, settings};
use crate::stores::on_every_store;

on_every_store! {
    templates_are_put_listed_and_shown,
    a_template_is_json_for_programs,
    a_template_is_put_again_and_becomes_the_newest,
    a_label_of_another_content_is_refused_with_both_hashes,
    if_one_file_has_errors_none_is_put,
    the_lines_that_differ_are_shown,
    a_stored_template_is_drawn,
    a_template_that_is_not_stored_is_named,
}

fn write(sandbox: &Sandbox, file: &str, version: u32, task: &str) {
    let text = format!("name: order\nversion: '{version}'\nsteps:\n  pack: {{task: {task}}}\n");
    sandbox.write(file, &text);
}

/// Stores two contents of one name.
fn with_templates(sandbox: Sandbox) -> Sandbox {
    write(&sandbox, "one.yaml", 1, "pack");
    write(&sandbox, "two.yaml", 2, "wrap");
    let ran = sandbox.onward(&["workflow", "put", "one.yaml", "two.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(lines, ["order@1", "order@2"]);
    sandbox
}

/// Shows: W1
fn templates_are_put_listed_and_shown(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    let shown = sandbox.onward(&["workflow", "show", "order@1"]);
    let mut settings = settings();
    settings.add_filter(r"\b[0-9a-f]{64}\b", "[hash]");
    settings.bind(|| {
        insta::assert_snapshot!(shown.stdout, @r#"
        workflow     order
        label        1
        newest       no
        put          [time]
        hash         [hash]

        {
          "name": "order",
          "steps": {
            "pack": {
              "task": "pack"
            }
          },
          "version": "1"
        }
        "#);
    });
    let listed = sandbox.json(&["workflow", "list"]);
    let newest: Vec<_> = listed.iter().map(|template| (&template["label"], &template["is_newest"])).collect();
    assert!(newest.contains(&(&"2".into(), &true.into())) && newest.contains(&(&"1".into(), &false.into())));
    assert_eq!(sandbox.onward(&["workflow", "list"]).stdout.lines().count(), 3);
}

/// Shows: W1, B11
fn a_template_is_json_for_programs(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    let shown = sandbox.json(&["workflow", "show", "order"]).remove(0);
    assert_eq!((&shown["label"], &shown["is_newest"]), (&"2".into(), &true.into()));
    assert_eq!(shown["template"]["steps"]["pack"]["task"], "wrap");
    let checked = sandbox.json(&["workflow", "check", "two.yaml"]).remove(0);
    assert_eq!(checked["hash"], shown["hash"]);
}

fn a_template_is_put_again_and_becomes_the_newest(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    assert_eq!(sandbox.onward(&["workflow", "put", "one.yaml"]).code, Some(0));
    assert_eq!(sandbox.json(&["workflow", "show", "order"])[0]["label"], "1");
    assert_eq!(sandbox.json(&["workflow", "list"]).len(), 2);
}

fn a_label_of_another_content_is_refused_with_both_hashes(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    write(&sandbox, "other.yaml", 1, "burn");
    let hash = |file: &str| sandbox.json(&["workflow", "check", file])[0]["hash"].as_str().unwrap().to_owned();
    let ran = sandbox.onward(&["workflow", "put", "other.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for part in [hash("one.yaml"), hash("other.yaml"), "give it another `version`".to_owned()] {
        assert!(ran.stderr.contains(&part), "{part}: {}", ran.stderr);
    }
}

fn if_one_file_has_errors_none_is_put(sandbox: Sandbox) {
    write(&sandbox, "one.yaml", 1, "pack");
    sandbox.write("wrong.yaml", "stepz: []\n");
    let ran = sandbox.onward(&["workflow", "put", "one.yaml", "wrong.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("wrong.yaml:1:1: "), "{}", ran.stderr);
    assert_ne!(sandbox.onward(&["workflow", "show", "order"]).code, Some(0));
}

fn the_lines_that_differ_are_shown(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    let ran = sandbox.onward(&["workflow", "diff", "order@1", "order@2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let changed: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with(['-', '+'])).map(str::trim).collect();
    assert!(
        changed.contains(&"-      \"task\": \"pack\"") && changed.contains(&"+      \"task\": \"wrap\""),
        "{changed:?}"
    );
    let same = sandbox.onward(&["workflow", "diff", "order@2", "order"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""));
    assert!(same.stderr.contains("the same content"), "{}", same.stderr);
}

fn a_stored_template_is_drawn(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    let (stored, file) =
        (sandbox.onward(&["workflow", "graph", "order@1"]), sandbox.onward(&["workflow", "graph", "one.yaml"]));
    assert!(stored.code == Some(0) && stored.stdout.starts_with("flowchart TD\n"), "{stored:?}");
    assert_eq!(stored.stdout, file.stdout);
}

/// Shows: B9
fn a_template_that_is_not_stored_is_named(sandbox: Sandbox) {
    let sandbox = with_templates(sandbox);
    for (reference, part) in
        [("order@3", "`order@3`"), ("orders", "`orders`"), ("order@", "leave `@` out for the newest")]
    {
        let ran = sandbox.onward(&["workflow", "show", reference]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// Shows: W1, B9
#[test]
fn errors_of_a_file_have_their_place_and_the_code_of_wrong_usage() {
    let sandbox = Sandbox::new();
    sandbox.write("order.yaml", "name: order\nsteps:\n  pack: {tusk: pack}\n");
    let ran = sandbox.onward(&["workflow", "check", "order.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.starts_with("order.yaml:3:") && ran.stdout.contains("`tusk`"), "{}", ran.stdout);
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: W1, B11
#[test]
fn errors_of_a_file_are_json_on_request_one_a_line() {
    let sandbox = Sandbox::new();
    sandbox.write("order.yaml", "name: order\nsteps:\n  pack: {tusk: pack}\n  send: {tisk: send}\n");
    let errors = sandbox.json(&["workflow", "check", "order.yaml"]);
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert!(lines.contains(&3) && lines.contains(&4), "{errors:?}");
    assert!(errors.iter().all(|error| error["file"] == "order.yaml" && error["column"].is_u64()), "{errors:?}");
    assert!(errors.iter().all(|error| error["message"].is_string()), "{errors:?}");
}

/// Shows: B9
#[test]
fn a_file_that_cannot_be_read_is_named() {
    let ran = Sandbox::new().onward(&["workflow", "check", "missing.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("missing.yaml"), "{}", ran.stderr);
}

/// A template that takes three days unless it is approved.
const APPROVAL: &str = "steps: {ask: {signal: s, deadline: 3d, otherwise: no}, mail: {run: exit 1, depends_on: [ask]}}";

fn test_file(sandbox: &Sandbox, expect: &str) {
    sandbox.write("approval.yaml", APPROVAL);
    let cases = format!("cases: {{late: {{steps: {{mail: {{result: sent}}}}, expect: {expect}}}}}");
    sandbox.write("approval.test.yaml", &format!("workflow: approval.yaml\n{cases}\n"));
}

/// Shows: W13
#[test]
fn the_cases_of_a_test_file_are_played_without_a_store() {
    let sandbox = Sandbox::new();
    test_file(&sandbox, "{state: completed, took: 3d, result: sent}");
    let ran = sandbox.onward(&["workflow", "test", "approval.test.yaml"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "ok late\napproval.test.yaml: 1 passed, 0 failed\n"), "{ran:?}");
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: W13
#[test]
fn a_case_that_fails_has_its_differences_and_exit_code_1() {
    let sandbox = Sandbox::new();
    test_file(&sandbox, "{state: failed}");
    let ran = sandbox.onward(&["workflow", "test", "approval.test.yaml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("FAILED late\n    the run is completed, and failed was expected"), "{}", ran.stdout);
    let case = sandbox.json(&["workflow", "test", "approval.test.yaml"]).remove(0);
    assert_eq!((&case["ok"], &case["took"]), (&false.into(), &259_200.0.into()));
}

/// Shows: W13
#[test]
fn a_template_of_tasker_is_printed_as_one_that_can_be_checked() {
    let sandbox = Sandbox::new();
    let text = "name: ship\nnamespace_name: shop\nmetadata: {author: Ada}\nsteps:\n  - {name: pack, handler: {callable: pack}}\n";
    sandbox.write("tasker.yaml", text);
    let imported = sandbox.onward(&["workflow", "import-tasker", "tasker.yaml", "--output", "ship.yaml"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(imported.stderr.contains("tasker.yaml:3: metadata: "), "{}", imported.stderr);
    assert_eq!(sandbox.onward(&["workflow", "check", "ship.yaml"]).code, Some(0));
    let again = sandbox.onward(&["workflow", "import-tasker", "tasker.yaml", "--output", "ship.yaml"]);
    assert!(again.code == Some(2) && again.stderr.contains("name a new file"), "{}", again.stderr);
}

/// Shows: W13
#[test]
fn an_import_with_errors_prints_them_and_fails() {
    let sandbox = Sandbox::new();
    sandbox.write("tasker.yaml", "name: ship\nsteps: [{name: pack, dependencies: [pick]}]\n");
    let imported = sandbox.onward(&["workflow", "import-tasker", "tasker.yaml"]);
    assert_eq!(imported.code, Some(1));
    assert!(imported.stderr.contains("`pick`"), "{}", imported.stderr);
}
