//! The program on a store in a PostgreSQL database; `cargo xtask test` starts a server.

#![expect(clippy::print_stdout, reason = "a test that does not run says so")]

use std::sync::atomic::{AtomicU64, Ordering};

use onward_store::tokio_postgres;

use crate::harness::Place;

/// A place whose store is in a schema of its own; where there is no server, that is said, and the test is over.
fn place() -> Option<(Place, String)> {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var("ONWARD_POSTGRES_URL").ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
    assert!(url.is_some() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
    if url.is_none() {
        println!("not tested: ONWARD_POSTGRES_URL is not set; `cargo xtask test` starts PostgreSQL");
    }
    let schema = format!("c{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Some((Place::new(), format!("{}#{schema}", url?)))
}

/// Shows: B2
#[test]
fn a_task_is_submitted_worked_and_shown() {
    let Some((place, store)) = place() else { return };
    let submitted = place.onward(&["--store", &store, "submit", "--kind", "greet", "world"]);
    assert_eq!(submitted.code, Some(0), "{}", submitted.stderr);
    let worked = place.onward(&["--store", &store, "work", "--kind", "greet", "--until-idle", "--", "cat"]);
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    let tasks = place.json(&["--store", &store, "task", "list"]);
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0]["state"], "completed");
}

/// Shows: B2
#[test]
fn a_look_at_a_store_that_is_not_there_makes_none() {
    let Some((place, store)) = place() else { return };
    let looked = place.onward(&["--store", &store, "stats"]);
    assert_eq!(looked.code, Some(3), "{}", looked.stderr);
    assert!(looked.stderr.contains("no store in the schema"), "{}", looked.stderr);
}

/// Shows: B11
#[test]
fn doctor_looks_at_the_server_and_the_way_to_it() {
    let Some((place, store)) = place() else { return };
    place.onward(&["--store", &store, "submit", "--kind", "k"]);
    let findings = place.json(&["--store", &store, "doctor"]);
    let word = |finding: &serde_json::Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let levels: Vec<(String, String)> =
        findings.iter().map(|finding| (word(finding, "check"), word(finding, "level"))).collect();
    let level = |check: &str| levels.iter().find(|(name, _)| name == check).map(|(_, level)| level.as_str());
    for check in ["server", "rights", "connection", "messages", "connections", "vacuum"] {
        assert_eq!(level(check), Some("ok"), "{check}: {findings:#?}");
    }
    assert_eq!(level("commit"), Some("warn"), "the server of the tests does not sync, and that is said");
}

/// Runs statements on the server as the owner.
fn as_owner(statements: &str) {
    let url = std::env::var("ONWARD_POSTGRES_URL").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

/// Shows: B11
#[test]
fn doctor_says_how_a_role_gets_the_rights_without_which_the_store_does_not_open() {
    let Some((place, store)) = place() else { return };
    place.onward(&["--store", &store, "submit", "--kind", "k"]);
    let role = format!("role_{}", store.rsplit_once('#').unwrap().1);
    as_owner(&format!("CREATE ROLE {role} LOGIN"));
    let as_role = store.replace("onward@", &format!("{role}@"));
    let ran = place.onward(&["--store", &as_role, "--json", "doctor"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let rights: serde_json::Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((rights["check"].as_str(), rights["level"].as_str()), (Some("rights"), Some("bad")), "{rights}");
    as_owner(rights["remedy"].as_str().unwrap().strip_prefix("as the owner: ").unwrap());
    let submitted = place.onward(&["--store", &as_role, "submit", "--kind", "k"]);
    assert_eq!(submitted.code, Some(0), "{}", submitted.stderr);
}

/// Shows: B2
#[test]
fn a_store_moves_from_a_file_to_the_server_and_back() {
    let Some((place, store)) = place() else { return };
    place.onward(&["submit", "--kind", "k", "--tag", "customer=42", "precious"]);
    let copied = place.onward(&["store", "copy", "onward.db", &store]);
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    assert!(copied.stdout.contains("with 1 task to postgres://"), "{}", copied.stdout);
    let worked = place.onward(&["--store", &store, "work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    let back = place.json(&["store", "copy", &store, "back.db"]);
    assert_eq!(back[0]["tasks"], 1);
    let task = &place.json(&["--store", "back.db", "task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"precious".into()), "{task}");
    assert_eq!(task["tags"]["customer"], "42", "{task}");
}

/// Shows: B2
#[test]
fn a_copy_writes_over_nothing_and_makes_none_of_nothing() {
    let Some((place, store)) = place() else { return };
    place.onward(&["submit", "--kind", "k"]);
    place.onward(&["--store", &store, "submit", "--kind", "k"]);
    for (to, code) in [("onward.db", 2), (store.as_str(), 2)] {
        let ran = place.onward(&["store", "copy", "onward.db", to]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    }
    assert_eq!(place.onward(&["store", "copy", "none.db", "new.db"]).code, Some(3));
    assert!(!place.path("new.db").exists());
}

/// Shows: B11
#[test]
fn a_command_about_a_file_names_what_a_database_has() {
    let Some((place, store)) = place() else { return };
    let ran = place.onward(&["--store", &store, "store", "compact"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("pg_dump"), "{}", ran.stderr);
}
