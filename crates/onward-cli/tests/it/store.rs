//! `onward store`.

use crate::harness::Place;

fn place_with_task() -> Place {
    let place = Place::new();
    place.onward(&["submit", "--kind", "k", "precious"]);
    place
}

/// Shows: T21
#[test]
fn a_backup_becomes_a_store_again() {
    let place = place_with_task();
    assert_eq!(place.onward(&["store", "backup", "copy.db"]).code, Some(0));
    let restored = place.onward(&["--store", "new.db", "store", "restore", "copy.db"]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(place.json(&["--store", "new.db", "task", "show", "1"])[0]["payload"], "precious");
}

/// Shows: T21
#[test]
fn neither_backup_nor_restore_writes_over_anything() {
    let place = place_with_task();
    place.write("copy.db", "mine");
    assert_eq!(place.onward(&["store", "backup", "copy.db"]).code, Some(2));
    assert_eq!(place.onward(&["store", "restore", "copy.db"]).code, Some(2));
    assert_eq!(place.read("copy.db"), "mine");
}

/// Shows: T21
#[test]
fn what_is_no_backup_is_not_restored() {
    let place = Place::new();
    place.write("copy.db", &"not a database ".repeat(1000));
    assert_eq!(place.onward(&["store", "restore", "copy.db"]).code, Some(3));
    assert!(!place.path("onward.db").exists());
}

/// Shows: T17
#[test]
fn prune_forgets_ended_tasks_and_keeps_as_many_as_told() {
    let place = Place::new();
    place.onward_with(&["submit", "--kind", "k", "--lines"], "a\nb\nc\n");
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(place.onward(&["store", "prune", "--keep", "1"]).stdout, "removed 2 ended tasks\n");
    assert_eq!(place.onward(&["store", "prune", "--older-than", "1h"]).stdout, "removed 0 ended tasks\n");
    assert_eq!(place.json(&["task", "list"]).len(), 1);
}

/// Shows: T17
#[test]
fn prune_needs_to_be_told_what() {
    assert_eq!(place_with_task().onward(&["store", "prune"]).code, Some(2));
}

/// Shows: B8
#[test]
fn compact_and_migrate_leave_the_tasks_as_they_are() {
    let place = place_with_task();
    assert_eq!(place.onward(&["store", "compact"]).code, Some(0));
    assert_eq!(place.onward(&["store", "migrate"]).code, Some(0));
    assert_eq!(place.json(&["task", "show", "1"])[0]["payload"], "precious");
}

/// What another program does to a store: a table of its own, and the file closed as the last.
fn write_by_hand(place: &Place) {
    let connection = onward_store::rusqlite::Connection::open(place.path("onward.db")).unwrap();
    connection.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('by hand')").unwrap();
}

/// Shows: T21
#[test]
fn a_store_with_checksums_names_the_remedy_where_another_program_has_written_to_it() {
    let place = Place::new();
    assert_eq!(place.onward(&["store", "create", "--page-checksums"]).code, Some(0));
    write_by_hand(&place);
    let refused = place.onward(&["submit", "--kind", "k", "precious"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("onward store rebuild"), "{}", refused.stderr);
}

/// Shows: T21
#[test]
fn a_rebuilt_store_has_the_tasks_and_the_checksums_that_were_asked_for() {
    let place = place_with_task();
    let rebuilt = place.onward(&["--store", "new.db", "store", "rebuild", "onward.db", "--page-checksums"]);
    assert_eq!(rebuilt.code, Some(0), "{}", rebuilt.stderr);
    assert_eq!(place.json(&["--store", "new.db", "task", "show", "1"])[0]["payload"], "precious");
    let findings = place.json(&["--store", "new.db", "doctor"]);
    let finding = findings.iter().find(|finding| finding["check"] == "page-checksums").unwrap();
    assert!(finding["found"].as_str().unwrap().starts_with("each page has one"), "{finding}");
}
