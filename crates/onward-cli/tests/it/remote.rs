//! The command line against a server: the same output and exit codes as on the store.

use std::collections::BTreeSet;
use std::process::Command;

use onward_store::{Name, SqliteStore, StoreReads as _};
use serde_json::Value;

use crate::harness::{CommandResult, Sandbox};
use crate::serve::Serving;

/// Commands in order, on one store. Each runs on a store and, in another sandbox, through a server
/// on a store like it; both print the same and end with the same exit code. A line that begins with
/// `!` prepares both stores beside the server. A line with `<` has its stdin behind it.
const ROWS: &str = "
submit --kind a --key k --tag album=rome one
submit --kind a --key k two
submit --kind b --priority 200 --after 1h three
submit --kind a --queue q --group g four
submit --kind lines --lines < 1\\n2\\n3\\n
submit --kind '
submit --kind onward.secret x
task list
task list --kind a --tag album=rome
task count --state waiting
task show 1 3
task show 99
task why 1 3
task cancel 2
task cancel 2 99
task retry 2
task run 2
task kill 4
task move --to other 3
task delete 4
task tree 1
task complete 1
task fail 1 --error boom
task extend 1
! work --kind a --jobs 1 --until-idle -- sh -c 'cat; echo seen >&2'
task wait 1
task wait 4
task follow 1
task output 1
task list --state completed
task cancel --kind lines
task cancel --kind lines --yes
task retry --kind lines --dry-run
tag keys
tag values album
queue list
queue show q
queue show absent
queue set q --weight 3 --concurrency 2
queue mode lenient
queue mode
queue pause q
queue resume q
queue pause --kind a
queue resume --kind a
queue batches
queue history
queue wait q
queue purge q --state dead --yes
queue purge q --state waiting --yes
queue delete q
queue delete absent
limit set --kind a --concurrency 4 --rate 10/s
limit set --group g --weight 5
limit set --kind a --concurrency 0
limit list
limit clear --kind a
schedule set nightly --kind a --cron '0 3 * * *' payload
schedule set often --kind a --every 1h
schedule list
schedule show nightly
schedule show absent
schedule next nightly --count 1
schedule pause nightly
schedule resume nightly
schedule trigger nightly
schedule backfill nightly --from 2026-01-01T00:00:00Z --until 2026-01-03T00:00:00Z
schedule delete nightly
schedule delete often
schedule delete often
import crontab tab
workflow check hold.yaml
workflow put hold.yaml
workflow put hold.yaml
workflow list
workflow show hold
workflow diff hold hold
workflow graph hold
workflow generate hold
workflow prune
workflow import-tasker absent.json
workflow test absent.yaml
workflow start hold
workflow start absent
! work --workflows --until-idle
workflow runs
workflow status 10
workflow history 10
workflow events
workflow signal 10 go
workflow pause 10
workflow resume 10
! work --workflows --until-idle
workflow start hold
workflow compare 10 11
workflow critical-path 10
workflow fork 10 --from go
workflow reset 10 go
workflow retry 10
workflow resolve 10 go
workflow complete 10 go --result 1
workflow skip 10 go
workflow undo 10
workflow cancel 11
orchestration start --key t --payload 1 trip
orchestration start --key t trip
orchestration list
orchestration show 13
orchestration status 13
orchestration history 13
orchestration tree 13
orchestration signal 13 go
orchestration update 99 go
orchestration query 99 go --program true
orchestration pause 13
orchestration resume 13
orchestration export 13 --output trip.history
orchestration record histories
orchestration check trip.history --program true
orchestration cancel 99
orchestration terminate 13 --reason because
orchestration wait 13
orchestration retry 13
orchestration fork 13 --events 0
orchestration reset 13 --events 0
orchestration terminate 13
orchestration delete 13
stats
events
top
";

/// The commands that need the store itself, each with arguments that it accepts.
const REFUSED: &[&[&str]] = &[
    &["run", "hold.yaml"],
    &["each", "true"],
    &["work", "--workflows"],
    &["serve"],
    &["mcp"],
    &["account", "list"],
    &["account", "create", "a", "--role", "viewer"],
    &["account", "role", "a", "viewer"],
    &["account", "password", "a"],
    &["account", "disable", "a"],
    &["account", "enable", "a"],
    &["account", "delete", "a"],
    &["key", "list"],
    &["key", "create", "a", "--role", "viewer"],
    &["key", "revoke", "a"],
    &["doctor"],
    &["store", "create"],
    &["store", "backup", "copy.db"],
    &["store", "restore", "copy.db"],
    &["store", "rebuild", "copy.db"],
    &["store", "prune", "--keep", "1"],
    &["store", "compact"],
    &["store", "migrate"],
    &["store", "copy", "onward.db", "copy.db"],
];

/// The commands that use no store.
const LOCAL: [&str; 3] = ["completions", "config explain", "man"];

/// A sandbox whose commands go through a server on its store.
struct Served {
    sandbox: Sandbox,
    /// `None` once it was stopped.
    server: Option<Serving>,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

impl Served {
    fn new() -> Self {
        let sandbox = prepared();
        let server = Serving::start(&sandbox);
        let address = server.address().to_owned();
        Self { sandbox, server: Some(server), address }
    }

    fn environment(&self) -> [(&'static str, String); 1] {
        [("ONWARD_STORE", format!("http://{}", self.address))]
    }

    fn onward(&self, arguments: &[&str]) -> CommandResult {
        self.sandbox.onward_as(&self.environment(), arguments)
    }

    fn onward_with(&self, arguments: &[&str], stdin: &str) -> CommandResult {
        use std::io::Write as _;

        let mut child = self.sandbox.command(arguments).envs(self.environment()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandResult { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("hold.yaml", "name: hold\nversion: '1'\nsteps:\n  go: {signal: go}\n");
    sandbox.write("tab", "0 4 * * * echo four\n@reboot echo once\n");
    sandbox
}

/// Returns the words of a row, as a shell splits them, and its stdin.
fn words(row: &str) -> (Vec<String>, String) {
    let (row, stdin) = row.split_once(" < ").unwrap_or((row, ""));
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in row.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    (words, stdin.replace("\\n", "\n"))
}

/// Replaces what differs from store to store: times and durations, the location of the store, and
/// the tag of a task that was submitted under an idempotency key.
fn normalized(text: &str) -> String {
    let text: String = text.lines().filter_map(without_tag).collect();
    let mut out = String::new();
    let mut word = String::new();
    for character in text.chars().chain(['\n']) {
        if character.is_ascii_alphanumeric() || "-:.µ+".contains(character) {
            word.push(character);
            continue;
        }
        // A value of JSON is behind its colon.
        if let Some(value) = word.strip_prefix(':') {
            word = value.to_owned();
            out.push(':');
        }
        let is_time = word.len() >= 16 && word.as_bytes()[4] == b'-' && word.as_bytes()[10] == b'T';
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let is_duration = is_number && matches!(unit, "µs" | "ms" | "s" | "m" | "h" | "d");
        let is_fraction = is_number && unit.is_empty() && word.contains('.');
        out.push_str(if is_time || is_duration || is_fraction { "~" } else { &word });
        word.clear();
        out.push(character);
    }
    // Columns are as wide as their longest time or duration.
    out.split(' ').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns a line without the tag of an idempotency key and the location of the store; `None` if it
/// shows nothing else.
fn without_tag(line: &str) -> Option<String> {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        return (!line.contains("onward.request")).then(|| format!("{line}\n"));
    };
    if value.get("key").is_some_and(|key| key == "onward.request") {
        return None;
    }
    if let Some(tags) = value.get_mut("tags").and_then(Value::as_object_mut) {
        tags.remove("onward.request");
    }
    if let Some(location) = value.pointer_mut("/store/location") {
        *location = Value::Null;
    }
    Some(format!("{value}\n"))
}

/// Shows: W8
#[test]
fn every_command_prints_the_same_against_a_server() {
    let direct = prepared();
    direct.onward(&["store", "create"]);
    let mut served = Served::new();
    let mut different = Vec::new();
    for row in ROWS.lines().filter(|row| !row.is_empty()) {
        if let Some(beside) = row.strip_prefix("! ") {
            let (words, _) = words(beside);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(direct.onward(&words).code, Some(0), "{row}");
            assert_eq!(served.sandbox.onward(&words).code, Some(0), "{row}");
            continue;
        }
        for json in [false, true] {
            // A second start, cancel or submit would be another case.
            let reads = [
                "list", "show", "why", "count", "tree", "status", "history", "stats", "keys", "values", "wait",
                "events",
            ];
            if json && !reads.iter().any(|verb| row.split(' ').take(2).any(|word| word == *verb)) {
                continue;
            }
            let (mut words, stdin) = words(row);
            words.extend(json.then(|| "--json".to_owned()));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let expected = direct.onward_with(&words, &stdin);
            let found = served.onward_with(&words, &stdin);
            if (found.code, normalized(&found.stdout)) != (expected.code, normalized(&expected.stdout)) {
                different.push(format!(
                    "--- {row} {}\non the store: {expected:?}\nthrough the server: {found:?}",
                    words.len()
                ));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert_eq!(served.server.take().and_then(Serving::stop), Some(0));
}

/// Returns the commands that the reference lists, without those that only group others.
fn commands() -> BTreeSet<String> {
    let reference = include_str!("../../../../docs/reference/cli.md");
    let headings = reference.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(" onward "));
    let all: BTreeSet<String> = headings.map(str::to_owned).collect();
    let is_group = |command: &String| all.iter().any(|other| other.starts_with(&format!("{command} ")));
    all.iter().filter(|command| !is_group(command)).cloned().collect()
}

#[test]
fn every_command_has_a_row_or_is_refused() {
    let rows: Vec<String> = ROWS.lines().map(|row| format!("{row} ")).collect();
    let refused: Vec<String> = REFUSED.iter().map(|words| format!("{} ", words.join(" "))).collect();
    let local = LOCAL.map(|name| format!("{name} "));
    let has = |list: &[String], command: &str| list.iter().any(|row| row.starts_with(&format!("{command} ")));
    for command in commands() {
        let found = [has(&rows, &command), has(&refused, &command), has(&local, &command)];
        assert_eq!(found.iter().filter(|is_in| **is_in).count(), 1, "`onward {command}` is in not one of the lists");
    }
}

#[test]
fn commands_that_need_the_store_itself_are_refused_first() {
    let sandbox = prepared();
    // No server is there: the refusal comes before any connection.
    let environment = [("ONWARD_STORE", "http://127.0.0.1:9".to_owned())];
    for words in REFUSED {
        let words = if words[0] == "each" { &["each", "--", "true"] } else { *words };
        let ran = sandbox.onward_as(&environment, words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}: {}", ran.stderr);
        let names = [format!("onward {}", words[0]), "http://127.0.0.1:9".to_owned(), "--store FILE".to_owned()];
        assert!(names.iter().all(|name| ran.stderr.contains(name)), "{words:?}: {}", ran.stderr);
    }
    let ran = sandbox.onward_as(&environment, &["--durability", "normal", "stats"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_wait_through_a_server_ends_with_its_task() {
    let served = Served::new();
    served.onward(&["submit", "--kind", "a", "x"]);
    let mut waiting = served.sandbox.start_as(&served.environment(), &["task", "wait", "1"]);
    // It follows changes by now, and says that no worker is there.
    waiting.await_said("no worker");
    served.sandbox.onward(&["work", "--kind", "a", "--until-idle", "--", "true"]);
    let ended = waiting.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "task 1 completed\n"), "{}", ended.stderr);
}

#[test]
fn a_key_may_do_what_its_role_may() {
    let served = Served::new();
    served.onward(&["submit", "--kind", "a", "secret-payload"]);
    let key = served.sandbox.onward(&["key", "create", "v", "--role", "viewer"]).stdout.trim().to_owned();
    let [store] = served.environment();
    let environment = [store, ("ONWARD_KEY", key)];
    let shown = served.sandbox.onward_as(&environment, &["--json", "task", "show", "1"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(!shown.stdout.contains("secret-payload"), "{}", shown.stdout);
    let cancelled = served.sandbox.onward_as(&environment, &["task", "cancel", "1"]);
    assert_eq!(cancelled.code, Some(3), "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("operator"), "{}", cancelled.stderr);
    let wrong = [environment[0].clone(), ("ONWARD_KEY", "onward_0_x".to_owned())];
    assert_eq!(served.sandbox.onward_as(&wrong, &["stats"]).code, Some(3));
}

/// Returns the versions of the guards of a limit, a queue and a schedule; 0 for a missing one.
fn guard_versions(sandbox: &Sandbox) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::options().open(sandbox.path("onward.db").as_path()).await.unwrap();
        let mut versions = Vec::new();
        for thing in ["limit kind:a", "limit queue:q", "schedule s"] {
            let found = store.document(Name::new("onward.guards").unwrap(), thing.to_owned()).await.unwrap();
            versions.push(found.map_or(0, |document| document.version));
        }
        versions
    })
}

/// Shows: W8
#[test]
fn an_edit_raises_the_guard_of_what_it_sets() {
    let served = Served::new();
    let edits: [&[&str]; 3] = [
        &["limit", "set", "--kind", "a", "--concurrency", "2"],
        &["queue", "set", "q", "--weight", "2"],
        &["schedule", "set", "s", "--kind", "a", "--every", "1h"],
    ];
    for edit in edits {
        assert_eq!(served.sandbox.onward(edit).code, Some(0), "{edit:?}");
    }
    assert_eq!(guard_versions(&served.sandbox), [1, 1, 1]);
    for edit in edits {
        assert_eq!(served.onward(edit).code, Some(0), "{edit:?}");
    }
    assert_eq!(guard_versions(&served.sandbox), [2, 2, 2]);
    assert_eq!(served.onward(&["schedule", "delete", "s"]).code, Some(0));
    assert_eq!(guard_versions(&served.sandbox), [2, 2, 3]);
}

/// Shows: W8
#[test]
fn the_rust_client_passes_the_suite_of_clients() {
    // Cargo builds the driver, an example, beside the tests of the workspace.
    let driver = std::env::current_exe().unwrap().parent().unwrap().join("../examples/client_driver");
    assert!(driver.exists(), "build it by `cargo build -p onward-client --examples`");
    let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/conformance/clients.py");
    let mut python = Command::new("python3");
    python.args([suite, "--"]).arg(driver).env("ONWARD_BIN", env!("CARGO_BIN_EXE_onward"));
    for name in ["ONWARD_STORE", "ONWARD_KEY", "ONWARD_URL"] {
        python.env_remove(name);
    }
    let ran = python.output().unwrap();
    assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
}

/// Shows: W8
#[test]
fn a_server_that_does_not_respond_is_reported_soon() {
    let mut asking = Sandbox::new().start(&["--store", "http://127.0.0.1:1", "task", "count"], "");
    asking.await_said("http://127.0.0.1:1 does not respond yet");
    asking.signal(rustix::process::Signal::KILL);
    asking.wait();
}
