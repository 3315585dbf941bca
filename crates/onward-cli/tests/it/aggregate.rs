//! Tasks that are batched, submitted and run by commands.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    a_command_gets_a_line_for_each_member_of_a_bundle,
    it_is_seen_what_is_collected_and_what_became_a_bundle,
    what_is_collected_is_listed,
    what_is_collected_in_a_queue_that_does_not_exist_is_an_error_that_names_it,
    a_size_without_a_delay_is_wrong_usage,
}

/// Submits one task for a batch of two.
fn submit(place: &Place, payload: &str) {
    let aggregate = ["--aggregate-size", "2", "--aggregate-delay", "1h", "--aggregate-grace", "10m"];
    let ran = place.onward(&[&["submit", "--kind", "k"], &aggregate[..], &[payload]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Shows: Q9, T20
fn a_command_gets_a_line_for_each_member_of_a_bundle(place: Place) {
    ["one", "two \"three\""].into_iter().for_each(|payload| submit(&place, payload));
    let script = "printf '%s %s\\n' $ONWARD_TASK_ID $ONWARD_MEMBERS; cat";
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script]);
    let task = &place.json(&["task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["bundle"]), (&"completed".into(), &3.into()));
    let expected = r#"3 2
{"payload":"one","task":1}
{"payload":"two \"three\"","task":2}
"#;
    assert_eq!(task["result"], expected);
}

/// Shows: Q9, B6
fn it_is_seen_what_is_collected_and_what_became_a_bundle(place: Place) {
    submit(&place, "one");
    let why = place.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("1 of 2 items"), "{why}");
    let shown = place.onward(&["task", "show", "1"]).stdout;
    assert!(shown.contains("collected    up to 2, for 1h00m and 10m00s after the newest"), "{shown}");
    submit(&place, "two");
    assert!(place.onward(&["task", "why", "1"]).stdout.contains("item of task 3"));
    let bundle = place.onward(&["task", "show", "3"]).stdout;
    assert!(bundle.contains("members      2"), "{bundle}");
    let members: Vec<_> =
        place.json(&["task", "list", "--bundle", "3"]).iter().map(|task| task["id"].clone()).collect();
    assert_eq!(members, [2, 1]);
    let events = place.onward(&["events"]).stdout;
    assert!(events.contains("was handed over as a member of task 3"), "{events}");
}

/// Shows: Q9, Q10
fn what_is_collected_is_listed(place: Place) {
    submit(&place, "one");
    let listed = place.json(&["queue", "collections", "default"]);
    let of = |field: &str| listed[0][field].clone();
    assert_eq!((listed.len(), of("kind"), of("members"), of("size")), (1, "k".into(), 1.into(), 2.into()));
    let shown = place.onward(&["queue", "collections"]).stdout;
    assert!(shown.contains("RIPE AT") && shown.contains("default"), "{shown}");
    submit(&place, "two");
    assert_eq!(place.onward(&["queue", "collections"]).stdout, "");
}

/// Shows: Q10
fn what_is_collected_in_a_queue_that_does_not_exist_is_an_error_that_names_it(place: Place) {
    submit(&place, "one");
    let ran = place.onward(&["queue", "collections", "nosuch"]);
    assert_eq!(ran.code, place.onward(&["queue", "show", "nosuch"]).code);
    assert!(ran.stderr.contains("nosuch"), "{}", ran.stderr);
}

/// Shows: Q9
fn a_size_without_a_delay_is_wrong_usage(place: Place) {
    let ran = place.onward(&["submit", "--kind", "k", "--aggregate-size", "2", "x"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--aggregate-delay"), "{}", ran.stderr);
}
