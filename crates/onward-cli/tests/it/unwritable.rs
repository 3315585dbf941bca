//! A store that the user of the program may not write, through the program.

use std::fs::{Permissions, read, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Place, Ran};

/// Commands that write, and one that reads.
const COMMANDS: &[&[&str]] =
    &[&["submit", "--kind", "k", "two"], &["work", "--kind", "k", "--until-idle", "--", "cat"], &["task", "list"]];

fn place_with_task() -> Place {
    let place = Place::new();
    assert_eq!(place.onward(&["submit", "--kind", "k", "one"]).code, Some(0));
    place
}

fn allow(place: &Place, name: &str, mode: u32) {
    set_permissions(place.path(name), Permissions::from_mode(mode)).unwrap();
}

/// Every command is refused, and the store is as it was, to the byte.
fn assert_is_refused(place: &Place) {
    let before = read(place.path("onward.db")).unwrap();
    for command in COMMANDS {
        let Ran { code, stderr, .. } = place.onward_unprivileged(command);
        assert_eq!(code, Some(3), "{command:?}: {stderr}");
        assert!(stderr.contains("onward.db") && stderr.contains("check the permissions"), "{command:?}: {stderr}");
        assert!(read(place.path("onward.db")).unwrap() == before, "{command:?} changed the store");
    }
}

/// Shows: B11, T21
#[test]
fn a_file_that_its_user_may_not_write_exits_with_3_and_the_remedy_and_is_left_alone() {
    let place = place_with_task();
    allow(&place, ".", 0o777);
    allow(&place, "onward.db", 0o444);
    assert_is_refused(&place);
}

/// Shows: B11, T21
#[test]
fn a_directory_that_its_user_may_not_write_exits_with_3_and_the_remedy_and_its_store_is_left_alone() {
    let place = place_with_task();
    allow(&place, "onward.db", 0o666);
    allow(&place, ".", 0o555);
    assert_is_refused(&place);
}
