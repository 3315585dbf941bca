//! A store that the user of the program may not write, through the program.

use std::fs::{Permissions, read, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{CommandResult, Sandbox};

/// Commands that write.
const WRITES: &[&[&str]] = &[
    &["submit", "--kind", "k", "two"],
    &["work", "--kind", "k", "--until-idle", "--", "cat"],
    &["task", "cancel", "1"],
];

/// Commands that read.
const READS: &[&[&str]] = &[&["task", "list"]];

fn sandbox_with_task() -> Sandbox {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["submit", "--kind", "k", "one"]).code, Some(0));
    sandbox
}

fn allow(sandbox: &Sandbox, name: &str, mode: u32) {
    set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
}

/// Asserts that the commands fail, and that the store is unchanged to the byte.
fn assert_are_refused(sandbox: &Sandbox, commands: &[&[&str]]) {
    let before = read(sandbox.path("onward.db")).unwrap();
    for command in commands {
        let CommandResult { code, stderr, .. } = sandbox.onward_unprivileged(command);
        assert_eq!(code, Some(3), "{command:?}: {stderr}");
        assert!(stderr.contains("onward.db") && stderr.contains("check the permissions"), "{command:?}: {stderr}");
        assert!(read(sandbox.path("onward.db")).unwrap() == before, "{command:?} changed the store");
    }
}

/// Shows: B11, T21
#[test]
fn a_file_that_its_user_may_not_write_is_read_and_every_write_exits_with_3_and_the_remedy() {
    let sandbox = sandbox_with_task();
    allow(&sandbox, ".", 0o777);
    allow(&sandbox, "onward.db", 0o444);
    assert_are_refused(&sandbox, WRITES);
    let ran = sandbox.onward_unprivileged(READS[0]);
    assert!(ran.code == Some(0) && ran.stdout.contains("waiting"), "{}{}", ran.stdout, ran.stderr);
    assert_are_refused(&sandbox, WRITES);
}

/// Shows: B11, T21
#[test]
fn a_directory_that_its_user_may_not_write_exits_with_3_and_the_remedy_and_its_store_is_left_alone() {
    let sandbox = sandbox_with_task();
    allow(&sandbox, "onward.db", 0o666);
    allow(&sandbox, ".", 0o555);
    assert_are_refused(&sandbox, WRITES);
    assert_are_refused(&sandbox, READS);
}
