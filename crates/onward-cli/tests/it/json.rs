//! `--json` on every command that says something.

use serde_json::Value;

use crate::harness::Place;

/// Commands, in an order in which each finds something to do; words that stand for others are those of a shell.
const COMMANDS: &[&str] = &[
    "submit --kind k --key a --tag city=Pisa one",
    "submit --kind k --queue slow --parent 1 two",
    "task list",
    "task show 1",
    "task count",
    "task why 1",
    "task tree 1",
    "task move 2 --queue slower",
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
    "store backup copy.db",
    "--store restored.db store restore copy.db",
    "store prune --keep 0",
    "store compact",
    "store migrate",
];

/// Shows: B11
#[test]
fn what_commands_say_is_json_where_that_is_asked_for() {
    let place = Place::new();
    for command in COMMANDS {
        let ran = place.onward(&[&["--json"], &command.split(' ').collect::<Vec<_>>()[..]].concat());
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
        assert!(!ran.stdout.is_empty(), "{command} says nothing; {}", ran.stderr);
        for line in ran.stdout.lines() {
            let value: Result<Value, _> = serde_json::from_str(line);
            assert!(value.is_ok_and(|value| value.is_object()), "{command}: {line}");
        }
    }
}
