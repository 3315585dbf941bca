//! `--json` on every command that says something.

use serde_json::Value;

use crate::harness::{Place, Ran};
use crate::orchestration;

/// Commands, in an order in which each finds something to do.
const COMMANDS: &[&str] = &[
    "submit --kind k --key a --tag city=Pisa one",
    "submit --kind k --queue slow --parent 1 two",
    "task list",
    "task show 1",
    "task count",
    "task why 1",
    "task tree 1",
    "task move 2 --to slower",
    "task move --kind k --to slower --dry-run",
    "task cancel 2",
    "task cancel --kind nobody --dry-run",
    "task retry 2",
    "task kill 2",
    "task delete 2",
    "task run 1",
    "tag keys",
    "tag values city",
    "queue list",
    "queue show default",
    "queue set default --weight 2",
    "queue mode strict",
    "queue pause default",
    "queue resume default",
    "queue history",
    "queue purge default --state dead --dry-run",
    "queue delete slow",
    "limit set --group tenant --concurrency 2",
    "limit list",
    "limit clear --group tenant",
    "schedule set night --every 1h --kind k",
    "schedule list",
    "schedule show night",
    "schedule next night",
    "schedule trigger night",
    "schedule pause night",
    "schedule resume night",
    "schedule delete night",
    "work --kind k --until-idle -- cat",
    "task wait 1",
    "stats",
    "events",
    "doctor",
    "orchestration start order --key A",
    "orchestration list",
    "orchestration show 4",
    "orchestration status 4",
    "orchestration tree 4",
    "orchestration signal 4 paid 5",
    "orchestration pause 4",
    "orchestration resume 4",
    "orchestration cancel 4",
    "orchestration retry 4",
    "orchestration terminate 4",
    "orchestration delete 4",
    "schedule set day --every 1h --kind k",
    "schedule backfill day --from 2026-01-01T00:00:00Z --until 2026-01-01T03:00:00Z",
    "submit --kind bundle --aggregate-size 5 --aggregate-delay 1h three",
    "queue collections",
    "each --input lines -- echo",
    "store backup copy.db",
    "--store restored.db store restore copy.db",
    "store prune --keep 0",
    "store compact",
    "store migrate",
    "store copy sqlite:onward.db sqlite:copied.db",
    "--store made.db store create",
    "--store rebuilt.db store rebuild onward.db",
];

/// The same on tasks that were left to be finished from elsewhere.
const ON_LEFT_TASKS: &[&str] = &["task extend 1.1 --within 1h", "task complete 1.1", "task fail 2.1 --error declined"];

/// The same on orchestrations that have begun.
const ON_HISTORIES: &[&str] = &[
    "orchestration history 1",
    "orchestration export 1 --output history.cbor",
    "orchestration record histories",
    "orchestration check --program ./program histories",
    "orchestration query --program ./program 1 sum",
    "orchestration fork 1 --events 2",
    "orchestration reset 1 --events 2",
];

/// The same while somebody works.
const WHILE_SOMEBODY_WORKS: &[&str] = &["orchestration update 9 add 4", "orchestration wait 3"];

/// Commands that print a script or a page, and one that is for terminals and says so.
const WITHOUT: &[&str] = &["completions", "man", "top"];

/// Shows: B11
#[test]
fn what_commands_say_is_json_where_that_is_asked_for() {
    let place = Place::new();
    place.write("lines", "a\nb\n");
    for command in COMMANDS {
        let said = assert_is_json(command, &place.onward(&words(command)));
        assert!(said.iter().all(Value::is_object), "{command}: {said:?}");
    }
}

/// Shows: B11, Q8
#[test]
fn what_is_said_of_tasks_that_are_finished_from_elsewhere_is_json_where_that_is_asked_for() {
    let place = Place::new();
    place.onward_with(&["submit", "--kind", "k", "--lines"], "1\n2\n");
    let leave = "echo finish-later >> \"$ONWARD_REPORT\"";
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", leave]);
    for command in ON_LEFT_TASKS {
        assert_is_json(command, &place.onward(&words(command)));
    }
}

/// Shows: B11, D10
#[test]
fn what_is_said_of_histories_is_json_where_that_is_asked_for() {
    let place = orchestration::place();
    let script = r#"#!/bin/sh
test "$1" != --query || { echo '{"answer":5}'; exit 0; }
for file in "$@"; do echo "{\"file\":\"$file\",\"kind\":null,\"events\":1,\"agrees\":true,\"error\":null}"; done
"#;
    orchestration::program(&place, script);
    for command in ON_HISTORIES {
        assert_is_json(command, &place.onward(&words(command)));
    }
}

/// Shows: B11, D10
#[test]
fn what_code_answers_is_json_where_that_is_asked_for() {
    let place = orchestration::place();
    place.onward(&["orchestration", "start", "counter"]);
    place.onward(&["orchestration", "signal", "3", "approved", "\"by ada\""]);
    for command in WHILE_SOMEBODY_WORKS {
        assert_is_json(command, &orchestration::ask(&place, &words(command)));
    }
}

/// Shows: B11
#[test]
fn every_command_is_among_those_whose_json_is_tested() {
    let place = Place::new();
    place.onward(&["generate", "man", "man"]);
    let pages = std::fs::read_dir(place.path("man")).unwrap().map(|page| page.unwrap().file_name());
    let names: Vec<String> = pages.map(|page| page.into_string().unwrap().replace(".1", "-")).collect();
    let tried = [COMMANDS, ON_LEFT_TASKS, ON_HISTORIES, WHILE_SOMEBODY_WORKS, WITHOUT].concat();
    let tried: Vec<String> = tried.iter().map(|command| page_name(command)).collect();
    let has_verbs = |name: &str| names.iter().any(|other| other != name && other.starts_with(name));
    for name in names.iter().filter(|name| !has_verbs(name)) {
        assert!(tried.iter().any(|command| command.starts_with(name)), "{name} is missing here");
    }
}

/// What is typed for a command.
fn words(command: &str) -> Vec<&str> {
    std::iter::once("--json").chain(command.split(' ')).collect()
}

/// What the name of a command's manual page begins a command with.
fn page_name(command: &str) -> String {
    let words = command.split(' ').skip(if command.starts_with("--store") { 2 } else { 0 });
    format!("onward-{}-", words.collect::<Vec<_>>().join("-"))
}

/// The values that a command has printed, one per line.
fn assert_is_json(command: &str, ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
    assert!(!ran.stdout.is_empty(), "{command} says nothing; {}", ran.stderr);
    let value = |line: &str| serde_json::from_str(line).map_err(|error| format!("{command}: {line}: {error}")).unwrap();
    ran.stdout.lines().map(value).collect()
}
