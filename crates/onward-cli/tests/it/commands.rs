//! Ends of commands, and their input.

use crate::harness::Sandbox;

/// Shows: B9
#[test]
fn a_signal_from_another_process_is_reported() {
    let ran = Sandbox::new().onward_with(&["each", "--", "sh", "-c", "kill -9 $$"], "a\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("killed by signal 9"), "{}", ran.stderr);
}

fn worked(payload: &str, script: &str) -> serde_json::Value {
    let sandbox = Sandbox::new();
    sandbox.write("payload", payload);
    sandbox.onward(&["submit", "--kind", "k", "--payload-file", "payload"]);
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script]);
    sandbox.json(&["task", "show", "1"]).remove(0)
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
