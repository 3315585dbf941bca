//! `onward doctor`.

use crate::harness::Place;

fn levels(place: &Place) -> Vec<(String, String)> {
    let findings = place.json(&["doctor"]);
    let word = |finding: &serde_json::Value, field: &str| finding[field].as_str().unwrap().to_owned();
    findings.iter().map(|finding| (word(finding, "check"), word(finding, "level"))).collect()
}

fn level(place: &Place, check: &str) -> Option<String> {
    levels(place).into_iter().find(|(name, _)| name == check).map(|(_, level)| level)
}

/// Shows: B11
#[test]
fn a_healthy_store_passes_every_check() {
    let place = Place::new();
    place.onward(&["submit", "--kind", "k"]);
    assert_eq!(place.onward(&["doctor"]).code, Some(0));
    let checks: Vec<String> = levels(&place).into_iter().map(|(check, _)| check).collect();
    assert_eq!(
        checks,
        ["file", "wal", "integrity", "page-checksums", "unused", "durability", "sessions", "dead", "sync", "space"]
    );
    assert_eq!(level(&place, "integrity").as_deref(), Some("ok"));
}

/// Shows: B11, T8
#[test]
fn dead_letters_and_pauses_are_told_with_what_to_do() {
    let place = Place::new();
    place.onward(&["submit", "--kind", "k", "--retries", "0"]);
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "false"]);
    place.onward(&["queue", "pause", "--all"]);
    let ran = place.onward(&["doctor"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout.contains("onward task list --state dead") && ran.stdout.contains("onward queue resume"),
        "{}",
        ran.stdout
    );
}

/// Shows: B11
#[test]
fn a_missing_store_and_a_file_of_something_else_exit_with_3() {
    let place = Place::new();
    assert_eq!(place.onward(&["doctor"]).code, Some(3));
    place.write("onward.db", &"not a database ".repeat(1000));
    assert_eq!(place.onward(&["doctor"]).code, Some(3));
    assert_eq!(level(&place, "open").as_deref(), Some("bad"));
}
