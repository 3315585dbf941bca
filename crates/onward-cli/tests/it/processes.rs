//! Several processes of the program on one file.

use std::collections::BTreeSet;

use crate::harness::{Place, numbers, sorted};

const TASKS: u32 = 2000;

/// Shows: T21, B4
#[test]
fn three_workers_on_one_file_run_each_of_two_thousand_tasks_once() {
    let place = Place::new();
    place.onward_with(&["submit", "--kind", "k", "--lines"], &numbers(TASKS));
    let script = "read number; echo $number >> ran; echo $PPID >> workers; echo done $number";
    let work = ["work", "--kind", "k", "--jobs", "4", "--until-idle", "--", "sh", "-c", script];
    let workers = [(); 3].map(|()| place.start(&work, ""));
    for worker in workers {
        assert_eq!(worker.wait().code, Some(0));
    }
    assert_eq!(sorted(&place.read("ran")), (1..=TASKS).collect::<Vec<_>>());
    assert_eq!(place.read("workers").lines().collect::<BTreeSet<_>>().len(), 3, "one of the three did nothing");
    for task in place.json(&["task", "list", "--payload", "--limit", "2000"]) {
        let result = format!("done {}\n", task["payload"].as_str().unwrap());
        let expected = (&"completed".into(), &1.into(), &result.into());
        assert_eq!((&task["state"], &task["attempts"], &task["result"]), expected, "{task}");
    }
}
