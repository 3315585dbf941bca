//! Tags on the command line.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    tasks_are_listed_and_counted_by_their_tags,
    a_task_is_shown_with_its_tags,
    keys_and_values_of_tags_are_listed_with_counts,
    a_page_of_values_says_how_to_get_the_next,
    a_tag_that_is_wrong_is_wrong_usage,
}

fn with_tags(place: Place) -> Place {
    for tags in [["customer=42", "region=eu"], ["customer=43", "region=eu"], ["customer=42", "region=us"]] {
        place.onward(&["submit", "--kind", "mail", "--tag", tags[0], "--tag", tags[1]]);
    }
    place
}

fn ids(place: &Place, flags: &[&str]) -> Vec<serde_json::Value> {
    place.json(&[&["task", "list"], flags].concat()).iter().map(|task| task["id"].clone()).collect()
}

/// Shows: T10
fn tasks_are_listed_and_counted_by_their_tags(place: Place) {
    let place = with_tags(place);
    assert_eq!(ids(&place, &["--tag", "customer=42"]), [3, 1]);
    assert_eq!(ids(&place, &["--tag", "customer=42", "--tag", "region=eu"]), [1]);
    assert_eq!(ids(&place, &["--tag-key-prefix", "reg"]), [3, 2, 1]);
    assert_eq!(place.onward(&["task", "count", "--tag", "region=eu"]).stdout, "2\n");
    assert_eq!(place.json(&["task", "count", "--tag", "region=asia"])[0]["tasks"], 0);
}

/// Shows: T10
fn a_task_is_shown_with_its_tags(place: Place) {
    let place = with_tags(place);
    let shown = place.onward(&["task", "show", "1"]).stdout;
    assert!(shown.contains("tag          customer=42\ntag          region=eu"), "{shown}");
    assert_eq!(place.json(&["task", "show", "1"])[0]["tags"], serde_json::json!({ "customer": "42", "region": "eu" }));
}

/// Shows: T10
fn keys_and_values_of_tags_are_listed_with_counts(place: Place) {
    let place = with_tags(place);
    assert_eq!(place.onward(&["tag", "keys"]).stdout, "customer\nregion\n");
    assert_eq!(place.onward(&["tag", "keys", "reg"]).stdout, "region\n");
    insta::assert_snapshot!(place.onward(&["tag", "values", "customer"]).stdout, @r"
    VALUE  TASKS
    42         2
    43         1
    ");
    let in_us = place.json(&["tag", "values", "customer", "--tag", "region=us"]);
    assert_eq!(in_us, [serde_json::json!({ "value": "42", "tasks": 1 })]);
}

fn a_page_of_values_says_how_to_get_the_next(place: Place) {
    let ran = with_tags(place).onward(&["tag", "values", "customer", "--limit", "1"]);
    assert_eq!(ran.stderr, "there are more: --after \"42\"\n");
}

fn a_tag_that_is_wrong_is_wrong_usage(place: Place) {
    for tags in [&["--tag", "customer"][..], &["--tag", "a=1", "--tag", "a=2"]] {
        assert_eq!(place.onward(&[&["submit", "--kind", "mail"], tags].concat()).code, Some(2), "{tags:?}");
    }
}
