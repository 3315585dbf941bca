//! `onward doctor`.

use onward_store::rusqlite::Connection;
use onward_testkit::mount::Mount;

use crate::harness::{CommandResult, Sandbox};

fn levels(sandbox: &Sandbox) -> Vec<(String, String)> {
    let findings = sandbox.json(&["doctor"]);
    let word = |finding: &serde_json::Value, field: &str| finding[field].as_str().unwrap().to_owned();
    findings.iter().map(|finding| (word(finding, "check"), word(finding, "level"))).collect()
}

fn level(sandbox: &Sandbox, check: &str) -> Option<String> {
    levels(sandbox).into_iter().find(|(name, _)| name == check).map(|(_, level)| level)
}

/// Shows: B11
#[test]
fn a_healthy_store_passes_every_check() {
    let sandbox = Sandbox::new();
    sandbox.onward(&["submit", "--kind", "k"]);
    assert_eq!(sandbox.onward(&["doctor"]).code, Some(0));
    // The speed and the free space of the disk depend on the machine.
    let (of_disk, of_store): (Vec<_>, Vec<_>) =
        levels(&sandbox).into_iter().partition(|(check, _)| check == "sync" || check == "space");
    assert_eq!(of_disk.len(), 2);
    let all_fine = [
        "file",
        "wal",
        "lock",
        "watch",
        "schema",
        "integrity",
        "page-checksums",
        "unused",
        "durability",
        "sessions",
        "dead",
    ];
    assert_eq!(of_store, all_fine.map(|check| (check.to_owned(), "ok".to_owned())));
}

/// Shows: B11, T21
#[test]
fn a_store_of_a_development_version_is_bad_and_stays_as_it_is() {
    let sandbox = Sandbox::with_development_store();
    let before = std::fs::read(sandbox.path("onward.db")).unwrap();
    let CommandResult { code, stdout, stderr } = sandbox.onward(&["doctor"]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    for part in ["bad   open", "schema 21 of a development version", "supports schema 1", "start a new store"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(std::fs::read(sandbox.path("onward.db")).unwrap() == before, "the file was changed");
}

/// Shows: B11, T21
#[test]
fn a_store_of_a_newer_schema_is_bad_and_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.onward(&["submit", "--kind", "k"]);
    Connection::open(sandbox.path("onward.db")).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    let before = std::fs::read(sandbox.path("onward.db")).unwrap();
    let CommandResult { code, stdout, stderr } = sandbox.onward(&["doctor"]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stdout.contains("bad   schema") && stdout.contains("use the newer program"), "{stdout}");
    assert!(std::fs::read(sandbox.path("onward.db")).unwrap() == before, "the file was changed");
}

/// Shows: B11
#[test]
fn a_disk_that_is_nearly_full_is_bad() {
    let Some(mount) = Mount::new("16m") else { return };
    let store = mount.path().join("onward.db").display().to_string();
    let sandbox = Sandbox::new();
    sandbox.onward(&["--store", &store, "submit", "--kind", "k"]);
    let ran = sandbox.onward(&["--store", &store, "doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("bad   space") && ran.stdout.contains("make room"), "{}", ran.stdout);
}

/// Shows: B11
#[test]
fn a_directory_in_place_of_a_store_is_reported_as_one() {
    let ran = Sandbox::new().onward(&["--store", ".", "doctor"]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(". is not a file") && ran.stdout.contains("--store"), "{}", ran.stdout);
}

/// Shows: B11
#[test]
fn a_missing_store_and_a_file_of_something_else_exit_with_3() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["doctor"]).code, Some(3));
    sandbox.write("onward.db", &"not a database ".repeat(1000));
    assert_eq!(sandbox.onward(&["doctor"]).code, Some(3));
    assert_eq!(level(&sandbox, "open").as_deref(), Some("bad"));
}
