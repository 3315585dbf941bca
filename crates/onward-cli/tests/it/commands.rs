//! Ends of commands, and their input.

use crate::harness::Place;

/// Shows: B9
#[test]
fn a_signal_from_elsewhere_is_told() {
    let ran = Place::new().onward_with(&["each", "--", "sh", "-c", "kill -9 $$"], "a\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("killed by signal 9"), "{}", ran.stderr);
}

fn worked(payload: &str, script: &str) -> serde_json::Value {
    let place = Place::new();
    place.write("payload", payload);
    place.onward(&["submit", "--kind", "k", "--payload-file", "payload"]);
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script]);
    place.json(&["task", "show", "1"]).remove(0)
}

/// Shows: T21
#[test]
fn a_payload_of_any_length_is_read_whole() {
    for length in [0, 1, 4096, 4097, 1_000_000] {
        let task = worked(&"x".repeat(length), "wc -c");
        assert_eq!(task["result"].as_str().unwrap().trim(), length.to_string(), "{task}");
    }
}

/// Shows: T21
#[test]
fn a_payload_that_the_command_does_not_read_is_no_failure() {
    for length in [1, 1_000_000] {
        assert_eq!(worked(&"x".repeat(length), "exit 0")["state"], "completed");
    }
}
