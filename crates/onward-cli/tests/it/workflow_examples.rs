//! The workflows in `examples`, run as a user runs them.

use serde_json::{Value, json};

use crate::harness::Sandbox;

const BACKUP: &str = include_str!("../../examples/nightly-backup.yaml");
const VIDEOS: &str = include_str!("../../examples/convert-videos.yaml");

/// Writes a file, and the directories above it.
fn write(sandbox: &Sandbox, name: &str, text: &str) {
    std::fs::create_dir_all(sandbox.path(name).parent().unwrap()).unwrap();
    sandbox.write(name, text);
}

/// Runs a workflow with input, and returns its exit code, its result and what it said.
fn run(sandbox: &Sandbox, file: &str, input: &Value) -> (Option<i32>, Value, String) {
    let ran = sandbox.onward(&["run", file, "--again", "--input", &input.to_string()]);
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_default(), ran.stderr)
}

/// Shows: B9
#[test]
fn a_backup_is_checked_and_the_oldest_are_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("backup.yaml", BACKUP);
    write(&sandbox, "data/one", "1");
    write(&sandbox, "data/below/two", "2");
    let input = json!({"from": "data", "to": "kept", "keep": 2});
    for _ in 0..3 {
        let (code, result, said) = run(&sandbox, "backup.yaml", &input);
        assert_eq!((code, &result["files"]), (Some(0), &json!(2)), "{said}");
    }
    let kept = std::fs::read_dir(sandbox.path("kept")).unwrap().count();
    assert_eq!(kept, 2);
}

/// Shows: B9
#[test]
fn a_backup_that_is_not_complete_is_undone() {
    let sandbox = Sandbox::new();
    // The archive lacks what the check counts.
    sandbox.write("backup.yaml", &BACKUP.replace("-C \"$FROM\" .", "-C \"$FROM\" one"));
    write(&sandbox, "data/one", "1");
    write(&sandbox, "data/two", "2");
    let (code, _, said) = run(&sandbox, "backup.yaml", &json!({"from": "data", "to": "kept"}));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("1 of 2 files are in the archive"), "{said}");
    assert_eq!(std::fs::read_dir(sandbox.path("kept")).unwrap().count(), 0);
}

/// Shows: B9, W4
#[test]
fn videos_are_converted_and_a_bad_one_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("convert.sh", "grep -q broken \"$1\" && exit 100\ntr a-z A-Z < \"$1\" > \"$2\"\n");
    for name in ["a", "b", "c d"] {
        write(&sandbox, &format!("raw/{name}.mov"), "frames");
    }
    write(&sandbox, "raw/e.mov", "broken");
    let videos = VIDEOS.replace("\"$CONVERTER\" ", "sh \"$CONVERTER\" ");
    sandbox.write("videos.yaml", &videos);
    let input = json!({"from": "raw", "to": "web", "converter": "./convert.sh"});
    let (code, result, said) = run(&sandbox, "videos.yaml", &input);
    assert_eq!((code, &result), (Some(0), &json!({"converted": 3, "failed": ["e"]})), "{said}");
    assert_eq!(std::fs::read_to_string(sandbox.path("web/c d.mp4")).unwrap(), "FRAMES");
    let events = sandbox.json(&["workflow", "events"]);
    assert_eq!((&events[0]["name"], &events[0]["payload"]), (&json!("videos.converted"), &json!({"count": 4})));
}
