//! The program on a store in a PostgreSQL database; `cargo xtask test` starts a server.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use onward_store::tokio_postgres;
use serde_json::Value;

use crate::harness::Sandbox;
use crate::json;
use crate::processes::taken_over_after;
use crate::stores;

/// Shows: B2
#[test]
fn a_task_is_submitted_worked_and_shown() {
    let Some(sandbox) = stores::postgres() else { return };
    let submitted = sandbox.onward(&["submit", "--kind", "greet", "world"]);
    assert_eq!(submitted.code, Some(0), "{}", submitted.stderr);
    let worked = sandbox.onward(&["work", "--kind", "greet", "--until-idle", "--", "cat"]);
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    let tasks = sandbox.json(&["task", "list"]);
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0]["state"], "completed");
}

/// Shows: B2
#[test]
fn what_the_url_leaves_out_comes_from_the_variables_of_psql() {
    let Some(sandbox) = stores::postgres() else { return };
    let store = sandbox.store();
    let (server, schema) = store.split_once('#').unwrap();
    let (user, rest) = server.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let variables = [("PGHOST", host), ("PGPORT", port), ("PGUSER", user), ("PGDATABASE", database)];
    let variables = variables.map(|(name, value)| (name, value.to_owned()));
    let bare = format!("postgres://#{schema}");
    let submitted = sandbox.onward_as(&variables, &["--store", &bare, "submit", "--kind", "greet"]);
    assert_eq!(submitted.code, Some(0), "{}", submitted.stderr);
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
}

/// Starts a server that refuses each connection with an error code, after it has asked for a
/// password if `asks`. Returns the URL of a database, without a password.
fn refusing_server(code: &'static str, asks: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may close the connection early.
            let _ = refuse(stream.unwrap(), code, asks);
        }
    });
    format!("postgres://me@127.0.0.1:{port}/work?sslmode=disable")
}

fn refuse(mut stream: TcpStream, code: &str, asks: bool) -> std::io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup)?;
    if asks {
        // AuthenticationCleartextPassword; the reply begins with a type and its length.
        stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3])?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
    }
    let fields = format!("SFATAL\0VFATAL\0C{code}\0Mrefused\0\0");
    let length = u32::try_from(fields.len() + 4).unwrap();
    stream.write_all(&[b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat())
}

/// Shows: B2, B4
#[test]
fn a_database_that_cannot_be_used_ends_with_3_whatever_the_reason() {
    let with_password = |url: String| url.replace("me@", "me:wrong@");
    let sandbox = Sandbox::new();
    for (url, reason) in [
        (with_password(refusing_server("28P01", true)), "check user and password"),
        (refusing_server("28000", false), "check user and password"),
        (refusing_server("28P01", true), "PGPASSWORD"),
        (refusing_server("3D000", false), "createdb"),
        ("postgres://me@127.0.0.1:1/work".to_owned(), "check that it runs"),
    ] {
        let ran = sandbox.onward(&["--store", &url, "task", "list"]);
        assert_eq!(ran.code, Some(3), "{url}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{url}: {}", ran.stderr);
    }
}

/// Shows: B2
#[test]
fn an_error_about_a_url_shows_no_part_of_its_password() {
    let sandbox = Sandbox::new();
    for url in [
        "postgres://me:se@cret@h/d",
        "postgres://me:se/cret@h/d",
        "postgres://me:se#cret@h/d",
        "postgres://me:s@e/x?y#%cret@h/d",
        "postgres://me:p@cret?cret=1@h/d",
        "postgres://me@h/d?password=se@cret",
        "postgres://me:se:cret@h:x/d",
    ] {
        let refused = sandbox.onward(&["--store", url, "task", "list"]);
        assert_eq!(refused.code, Some(2), "{url}: {}", refused.stderr);
        assert!(!refused.stderr.contains("cret") && refused.stderr.contains('%'), "{url}: {}", refused.stderr);
    }
}

/// The delay allowed for starting, on a busy machine, a program that prints the time.
const LATE: Duration = Duration::from_secs(4);

/// Shows: T21, B4
#[test]
fn the_task_of_a_killed_node_is_taken_over_by_another_when_its_lease_of_ten_seconds_is_over() {
    let Some(sandbox) = stores::postgres() else { return };
    let took = taken_over_after(&sandbox, &[]);
    assert!(took < Duration::from_secs(10) + LATE, "it took {took:?}");
}

/// Shows: T21, B4
#[test]
fn with_a_lease_of_two_seconds_the_task_of_a_killed_node_is_taken_over_that_soon() {
    let Some(sandbox) = stores::postgres() else { return };
    let took = taken_over_after(&sandbox, &["--lease", "2s"]);
    assert!(took < Duration::from_secs(2) + LATE, "it took {took:?}");
}

/// Shows: B2
#[test]
fn a_look_at_a_store_that_is_not_there_makes_none() {
    let Some(sandbox) = stores::postgres() else { return };
    let looked = sandbox.onward(&["stats"]);
    assert_eq!(looked.code, Some(3), "{}", looked.stderr);
    assert!(looked.stderr.contains("no store in the schema"), "{}", looked.stderr);
}

/// Shows: B11
#[test]
fn doctor_looks_at_the_server_and_the_way_to_it() {
    let Some(sandbox) = stores::postgres() else { return };
    sandbox.onward(&["submit", "--kind", "k"]);
    let findings = sandbox.json(&["doctor"]);
    let word = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let levels: Vec<(String, String)> =
        findings.iter().map(|finding| (word(finding, "check"), word(finding, "level"))).collect();
    let level = |check: &str| levels.iter().find(|(name, _)| name == check).map(|(_, level)| level.as_str());
    for check in ["server", "rights", "connection", "messages", "connections", "vacuum"] {
        assert_eq!(level(check), Some("ok"), "{check}: {findings:#?}");
    }
    assert_eq!(level("commit"), Some("warn"), "the server of the tests does not sync, and doctor reports it");
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
fn doctor_prints_how_a_role_gets_the_missing_rights() {
    let Some(sandbox) = stores::postgres() else { return };
    sandbox.onward(&["submit", "--kind", "k"]);
    let store = sandbox.store();
    let role = format!("role_{}", store.rsplit_once('#').unwrap().1);
    as_owner(&format!("CREATE ROLE {role} LOGIN"));
    let as_role = store.replace("onward@", &format!("{role}@"));
    let ran = sandbox.onward(&["--store", &as_role, "--json", "doctor"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let rights: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((rights["check"].as_str(), rights["level"].as_str()), (Some("rights"), Some("bad")), "{rights}");
    as_owner(rights["remedy"].as_str().unwrap().strip_prefix("as the owner: ").unwrap());
    let submitted = sandbox.onward(&["--store", &as_role, "submit", "--kind", "k"]);
    assert_eq!(submitted.code, Some(0), "{}", submitted.stderr);
}

/// Shows: B2
#[test]
fn a_store_moves_from_a_file_to_the_server_and_back() {
    let Some(sandbox) = stores::postgres() else { return };
    let store = sandbox.store();
    sandbox.onward(&["--store", "onward.db", "submit", "--kind", "k", "--tag", "customer=42", "precious"]);
    let copied = sandbox.onward(&["store", "copy", "onward.db", &store]);
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    assert!(copied.stdout.contains("with 1 task to postgres://"), "{}", copied.stdout);
    let worked = sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    let back = sandbox.json(&["store", "copy", &store, "back.db"]);
    assert_eq!(back[0]["tasks"], 1);
    let task = &sandbox.json(&["--store", "back.db", "task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"precious".into()), "{task}");
    assert_eq!(task["tags"]["customer"], "42", "{task}");
}

/// Shows: B2
#[test]
fn a_copy_writes_over_nothing_and_makes_none_of_nothing() {
    let Some(sandbox) = stores::postgres() else { return };
    let store = sandbox.store();
    for store in ["onward.db", &store] {
        sandbox.onward(&["--store", store, "submit", "--kind", "k"]);
    }
    for to in ["onward.db", &store] {
        let ran = sandbox.onward(&["store", "copy", "onward.db", to]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
    assert_eq!(sandbox.onward(&["store", "copy", "none.db", "new.db"]).code, Some(3));
    assert!(!sandbox.path("new.db").exists());
}

/// Commands on a file, each with the name of the alternative for a server.
const ON_A_FILE: &[(&str, &str)] = &[
    ("store create", "onward submit"),
    ("store backup copy.db", "pg_dump"),
    ("store restore copy.db", "pg_restore"),
    ("store rebuild onward.db", "onward store copy"),
    ("store compact", "VACUUM"),
    ("store migrate", "when a command opens it"),
];

/// Shows: B11
#[test]
fn a_command_about_a_file_names_what_does_its_work_on_a_server() {
    let Some(sandbox) = stores::postgres() else { return };
    for (command, remedy) in ON_A_FILE {
        let ran = sandbox.onward(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains(remedy), "{command}: {}", ran.stderr);
    }
}

/// Returns the field names of a value, recursively.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), fields(value))).collect(),
        Value::Array(values) => values.iter().map(fields).collect(),
        _ => Value::Null,
    }
}

/// Shows: B2, B9
#[test]
fn each_command_prints_on_a_server_what_it_prints_on_a_file() {
    let Some(on_server) = stores::postgres() else { return };
    let on_file = Sandbox::new();
    let output = |sandbox: &Sandbox| {
        json::write_files(sandbox);
        let output = |command: &&str| json::assert_is_json(command, &json::run(sandbox, command));
        json::COMMANDS.iter().map(|command| (*command, output(command).iter().map(fields).collect())).collect()
    };
    let (file, server): (Vec<(&str, Value)>, Vec<_>) = (output(&on_file), output(&on_server));
    for (file, server) in file.iter().zip(&server).filter(|((command, _), _)| *command != "doctor") {
        assert_eq!(file, server);
    }
}
