//! The program on a store in a PostgreSQL database; `cargo xtask test` starts a server.

#![expect(clippy::print_stdout, reason = "a test that does not run says so")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::tokio_postgres;

use crate::harness::Place;
use crate::processes::taken_over_after;

/// A place whose store is in a schema of its own; where there is no server, that is said, and the test is over.
pub(crate) fn place() -> Option<(Place, String)> {
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

/// How much later than it may, on a busy machine, a program is started that tells the time.
const LATE: Duration = Duration::from_secs(4);

/// Shows: T21, B4
#[test]
fn the_task_of_a_killed_node_is_taken_over_by_another_when_its_lease_of_ten_seconds_is_over() {
    let Some((_, store)) = place() else { return };
    let took = taken_over_after(&["--store", &store], &[]);
    assert!(took < Duration::from_secs(10) + LATE, "it took {took:?}");
}

/// Shows: T21, B4
#[test]
fn with_a_lease_of_two_seconds_the_task_of_a_killed_node_is_taken_over_that_soon() {
    let Some((_, store)) = place() else { return };
    let took = taken_over_after(&["--store", &store], &["--lease", "2s"]);
    assert!(took < Duration::from_secs(2) + LATE, "it took {took:?}");
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

/// What is done to a store and what is asked of it, in turn; a first look at it, what only one kind of store has, and what never ends
/// have tests of their own.
const COMMANDS: &[&str] = &[
    "submit --kind greet --tag who=me --group friends hello",
    "submit --kind greet --queue later --priority 200 again",
    "each --jobs 1 -- echo",
    "task list",
    "task count --kind greet",
    "task show 1",
    "task why 1",
    "task tree 1",
    "task move --to later 1",
    "task cancel 1",
    "task retry 1",
    "task kill 1",
    "task retry 1",
    "work --kind greet --jobs 1 --until-idle -- cat",
    "task wait 1 2",
    "task delete 2",
    "queue list",
    "queue set later --weight 2 --concurrency 3",
    "queue mode strict",
    "queue pause later",
    "queue show later",
    "queue resume later",
    "queue history later",
    "queue collections later",
    "limit set --kind greet --concurrency 2 --rate 5/s",
    "limit list",
    "limit clear --kind greet",
    "schedule set hourly --every 1h --kind greet",
    "schedule pause hourly",
    "schedule list",
    "schedule resume hourly",
    "schedule trigger hourly",
    "schedule show hourly",
    "schedule next hourly",
    "schedule delete hourly",
    "tag keys",
    "tag values who",
    "orchestration start order",
    "orchestration list",
    "orchestration show 6",
    "orchestration pause 6",
    "orchestration resume 6",
    "orchestration signal 6 paid",
    "orchestration terminate 6",
    "events",
    "stats",
    "store prune --keep 1",
    "task list",
];

/// Shows: B2, B9
#[test]
fn each_command_does_on_a_server_what_it_does_in_a_file() {
    let Some((place, server)) = place() else { return };
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        let [file, server] = ["onward.db", server.as_str()].map(|store| {
            let ran = place.onward_with(&[&["--store", store], words.as_slice()].concat(), "one\ntwo\n");
            assert_eq!(ran.code, Some(0), "{command} in {store}: {}", ran.stderr);
            ran.stdout
        });
        assert_eq!(file.lines().count(), server.lines().count(), "{command}:\n{file}\n{server}");
    }
}
