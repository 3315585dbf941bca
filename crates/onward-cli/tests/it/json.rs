//! `--json` on every command that prints something.

use serde_json::Value;

use crate::harness::{CommandResult, Sandbox};
use crate::orchestration;
use crate::stores::on_every_store;

on_every_store! {
    output_of_commands_is_json_on_request,
    output_of_external_completion_is_json_on_request,
    output_on_histories_is_json_on_request,
    output_on_runs_is_json_on_request,
    replies_of_code_are_json_on_request,
    output_of_file_commands_is_json_on_request not on postgres,
}

/// Commands, in an order in which each has an effect.
pub(crate) const COMMANDS: &[&str] = &[
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
    "queue wait slow",
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
    "task follow 1",
    "task output 1",
    "task output 1 --stderr",
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
    "submit --kind batch --aggregate-size 5 --aggregate-delay 1h three",
    "queue batches",
    "key create ci --role viewer",
    "key list",
    "key revoke ci",
    "account create ada --role viewer --password-file password",
    "account list",
    "account role ada operator",
    "account password ada --password-file password",
    "account disable ada",
    "account enable ada",
    "account delete ada",
    "config explain",
    "import crontab crontab",
    "workflow check order.yaml",
    "workflow put order.yaml new.yaml",
    "workflow list",
    "workflow show order",
    "workflow diff order@1 order@2",
    "workflow graph order",
    "workflow generate order.yaml",
    "workflow prune --older-than 0s",
    "workflow import-tasker tasker.yaml",
    "workflow test order.test.yaml",
    "each --input lines -- echo",
    "run build.yaml",
    "workflow events",
    "store prune --keep 0",
    "store copy {store} sqlite:copied.db",
];

/// Commands on a file, in such an order.
const ON_A_FILE: &[&str] = &[
    "submit --kind k",
    "store backup copy.db",
    "--store restored.db store restore copy.db",
    "store compact",
    "store migrate",
    "--store made.db store create",
    "--store rebuilt.db store rebuild onward.db",
];

/// Commands on tasks that wait for external completion.
const ON_LEFT_TASKS: &[&str] = &["task extend 1.1 --within 1h", "task complete 1.1", "task fail 2.1 --error declined"];

/// Commands on orchestrations that have begun.
const ON_HISTORIES: &[&str] = &[
    "orchestration history 1",
    "orchestration export 1 --output history.cbor",
    "orchestration record histories",
    "orchestration check --program ./program histories",
    "orchestration query --program ./program 1 sum",
    "orchestration fork 1 --events 2",
    "orchestration reset 1 --events 2",
];

/// Commands on a failed run and on runs that no process runs yet.
const ON_RUNS: &[&str] = &[
    "workflow runs",
    "workflow status 1",
    "workflow history 1",
    "workflow fork 1 --from copy",
    "workflow compare 1 1",
    "workflow critical-path 1",
    "workflow retry 1 --reason mended",
    "workflow reset 1 copy",
    "workflow resolve 1 copy",
    "workflow complete 1 copy --result 4",
    "workflow skip 1 copy",
    "workflow undo 1",
    "workflow start ask --key A",
    "workflow signal 4 approval --value approved=true",
    "workflow pause 4",
    "workflow resume 4",
    "workflow cancel 4",
];

/// Commands that need a running worker.
const WHILE_A_WORKER_RUNS: &[&str] = &["orchestration update 9 add 4", "orchestration wait 3"];

/// Commands that print a script or a page, one that reports that it is for terminals, and the
/// server, whose JSON its own tests read.
const WITHOUT: &[&str] = &["completions", "man", "mcp", "serve", "top"];

/// Shows: B11
fn output_of_commands_is_json_on_request(sandbox: Sandbox) {
    write_files(&sandbox);
    for command in COMMANDS {
        let output = assert_is_json(command, &run(&sandbox, command));
        assert!(output.iter().all(Value::is_object), "{command}: {output:?}");
    }
}

/// Writes the files that the commands name.
pub(crate) fn write_files(sandbox: &Sandbox) {
    sandbox.write("lines", "a\nb\n");
    sandbox.write("password", "correct horse battery\n");
    sandbox.write("crontab", "CRON_TZ=UTC\n0 3 * * * backup\n");
    sandbox.write("tasker.yaml", "name: a\nsteps: [{name: b, handler: {callable: c}}]\n");
    sandbox.write("build.yaml", "steps: {one: {value: 1, publishes: [{name: built, delivery: log}]}}\n");
    sandbox.write(
        "order.test.yaml",
        "workflow: order.yaml\ncases: {a: {steps: {mail: {result: 1}}, expect: {result: 1}}}\n",
    );
    for (file, version) in [("order.yaml", 1), ("new.yaml", 2)] {
        sandbox.write(file, &format!("name: order\nversion: '{version}'\nsteps: {{mail: {{task: mail}}}}\n"));
    }
}

/// Shows: B11, Q8
fn output_of_external_completion_is_json_on_request(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "1\n2\n");
    let leave = "echo complete-later >> \"$ONWARD_REPORT\"";
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", leave]);
    for command in ON_LEFT_TASKS {
        assert_is_json(command, &run(&sandbox, command));
    }
}

/// Shows: B11, D10
fn output_on_histories_is_json_on_request(sandbox: Sandbox) {
    let sandbox = orchestration::with_orchestrations(sandbox);
    let script = r#"#!/bin/sh
test "$1" != --query || { echo '{"answer":5}'; exit 0; }
for file in "$@"; do echo "{\"file\":\"$file\",\"kind\":null,\"events\":1,\"agrees\":true,\"error\":null}"; done
"#;
    orchestration::program(&sandbox, script);
    for command in ON_HISTORIES {
        assert_is_json(command, &run(&sandbox, command));
    }
}

/// Shows: B11
fn output_on_runs_is_json_on_request(sandbox: Sandbox) {
    sandbox.write("copy.yaml", "steps: {copy: {run: exit 100}}\n");
    sandbox.write("ask.yaml", "steps: {approve: {signal: approval}}\n");
    assert_eq!(sandbox.onward(&["run", "copy.yaml"]).code, Some(1));
    assert_eq!(sandbox.onward(&["workflow", "put", "ask.yaml"]).code, Some(0));
    for command in ON_RUNS {
        assert_is_json(command, &run(&sandbox, command));
    }
}

/// Shows: B11, D10
fn replies_of_code_are_json_on_request(sandbox: Sandbox) {
    let sandbox = orchestration::with_orchestrations(sandbox);
    sandbox.onward(&["orchestration", "start", "counter"]);
    sandbox.onward(&["orchestration", "signal", "3", "approved", "\"by ada\""]);
    for command in WHILE_A_WORKER_RUNS {
        assert_is_json(command, &orchestration::ask(&sandbox, &words(command)));
    }
}

/// Shows: B11
fn output_of_file_commands_is_json_on_request(sandbox: Sandbox) {
    for command in ON_A_FILE {
        assert_is_json(command, &run(&sandbox, command));
    }
}

/// Shows: B11
#[test]
fn every_command_is_among_those_whose_json_is_tested() {
    let tried: Vec<&str> = on_every_store().chain([ON_A_FILE, WITHOUT].concat()).collect();
    for command in commands() {
        assert!(tried.iter().any(|words| is_of(words, &command)), "{command} is missing here");
    }
}

/// Returns the commands, as they are typed, that are tested on each store.
pub(crate) fn on_every_store() -> impl Iterator<Item = &'static str> {
    [COMMANDS, ON_LEFT_TASKS, ON_HISTORIES, ON_RUNS, WHILE_A_WORKER_RUNS].into_iter().flatten().copied()
}

/// Returns the name of every command, such as `task list`. These are the headings of the reference
/// that are not the beginning of a longer one.
pub(crate) fn commands() -> Vec<String> {
    let sandbox = Sandbox::new();
    sandbox.onward(&["generate", "reference", "docs"]);
    let reference = sandbox.read("docs/cli.md");
    let headings = reference.lines().filter(|line| line.starts_with("##"));
    let names: Vec<&str> = headings.filter_map(|line| Some(line.split_once("# onward ")?.1)).collect();
    let has_verbs = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    names.iter().filter(|name| !has_verbs(name)).map(|name| (*name).to_owned()).collect()
}

/// Returns true if these words, as they are typed, use the command.
pub(crate) fn is_of(typed: &str, command: &str) -> bool {
    let words = typed.split(' ').skip(if typed.starts_with("--store") { 2 } else { 0 });
    words.zip(command.split(' ')).all(|(word, name)| word == name)
}

/// Runs a command, as it is typed, with `--json`.
pub(crate) fn run(sandbox: &Sandbox, typed: &str) -> CommandResult {
    sandbox.onward(&words(&typed.replace("{store}", &sandbox.store())))
}

/// Returns the words to type for a command.
fn words(command: &str) -> Vec<&str> {
    std::iter::once("--json").chain(command.split(' ')).collect()
}

/// Returns the values that a command has printed, one per line.
pub(crate) fn assert_is_json(command: &str, ran: &CommandResult) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
    assert!(!ran.stdout.is_empty(), "{command} says nothing; {}", ran.stderr);
    let value = |line: &str| serde_json::from_str(line).map_err(|error| format!("{command}: {line}: {error}")).unwrap();
    ran.stdout.lines().map(value).collect()
}
