//! Tags on the command line.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    tasks_are_listed_and_counted_by_their_tags,
    a_task_is_shown_with_its_tags,
    keys_and_values_of_tags_are_listed_with_counts,
    a_page_of_values_prints_how_to_get_the_next,
    a_tag_that_is_wrong_is_wrong_usage,
}

fn with_tags(sandbox: Sandbox) -> Sandbox {
    for tags in [["customer=42", "region=eu"], ["customer=43", "region=eu"], ["customer=42", "region=us"]] {
        sandbox.onward(&["submit", "--kind", "mail", "--tag", tags[0], "--tag", tags[1]]);
    }
    sandbox
}

fn ids(sandbox: &Sandbox, flags: &[&str]) -> Vec<serde_json::Value> {
    sandbox.json(&[&["task", "list"], flags].concat()).iter().map(|task| task["id"].clone()).collect()
}

/// Shows: T10
fn tasks_are_listed_and_counted_by_their_tags(sandbox: Sandbox) {
    let sandbox = with_tags(sandbox);
    assert_eq!(ids(&sandbox, &["--tag", "customer=42"]), [3, 1]);
    assert_eq!(ids(&sandbox, &["--tag", "customer=42", "--tag", "region=eu"]), [1]);
    assert_eq!(ids(&sandbox, &["--tag-key-prefix", "reg"]), [3, 2, 1]);
    assert_eq!(sandbox.onward(&["task", "count", "--tag", "region=eu"]).stdout, "2\n");
    assert_eq!(sandbox.json(&["task", "count", "--tag", "region=asia"])[0]["tasks"], 0);
}

/// Shows: T10
fn a_task_is_shown_with_its_tags(sandbox: Sandbox) {
    let sandbox = with_tags(sandbox);
    let shown = sandbox.onward(&["task", "show", "1"]).stdout;
    assert!(shown.contains("tag          customer=42\ntag          region=eu"), "{shown}");
    assert_eq!(
        sandbox.json(&["task", "show", "1"])[0]["tags"],
        serde_json::json!({ "customer": "42", "region": "eu" })
    );
}

/// Shows: T10
fn keys_and_values_of_tags_are_listed_with_counts(sandbox: Sandbox) {
    let sandbox = with_tags(sandbox);
    assert_eq!(sandbox.onward(&["tag", "keys"]).stdout, "customer\nregion\n");
    assert_eq!(sandbox.onward(&["tag", "keys", "reg"]).stdout, "region\n");
    insta::assert_snapshot!(sandbox.onward(&["tag", "values", "customer"]).stdout, @r"
    VALUE  TASKS
    42         2
    43         1
    ");
    let in_us = sandbox.json(&["tag", "values", "customer", "--tag", "region=us"]);
    assert_eq!(in_us, [serde_json::json!({ "value": "42", "tasks": 1 })]);
}

fn a_page_of_values_prints_how_to_get_the_next(sandbox: Sandbox) {
    let ran = with_tags(sandbox).onward(&["tag", "values", "customer", "--limit", "1"]);
    assert_eq!(ran.stderr, "there are more: --after \"42\"\n");
}

fn a_tag_that_is_wrong_is_wrong_usage(sandbox: Sandbox) {
    for tags in [&["--tag", "customer"][..], &["--tag", "a=1", "--tag", "a=2"]] {
        assert_eq!(sandbox.onward(&[&["submit", "--kind", "mail"], tags].concat()).code, Some(2), "{tags:?}");
    }
}
