//! `onward task` and `onward events`.

use std::io::Read as _;
use std::process::Stdio;

use crate::harness::{Sandbox, settings};
use crate::stores::on_every_store;
use crate::terminal::terminal;

on_every_store! {
    tasks_are_listed_newest_first_in_a_table,
    a_list_fits_the_terminal,
    filters_narrow_the_list,
    a_page_prints_how_to_get_the_next,
    a_task_is_shown_with_all_that_is_known,
    a_cancelled_task_waits_again_after_a_retry,
    dead_letters_are_listed_retried_and_purged_apart_from_failures,
    what_a_store_refuses_exits_with_1,
    a_task_that_is_not_there_keeps_no_other_from_what_is_done,
    a_task_that_is_not_there_keeps_no_other_from_what_is_shown,
    events_are_listed_and_continue_after_a_cursor,
    nothing_that_a_user_stored_acts_on_the_terminal_that_shows_it,
    a_name_with_a_character_that_is_not_seen_is_refused,
    a_tree_shows_a_task_with_its_descendants,
    each_task_of_a_tree_is_the_same_object_as_in_a_list,
}

fn with_tasks(sandbox: Sandbox) -> Sandbox {
    sandbox.onward(&["submit", "--kind", "mail", "--key", "ada", "--priority", "200", "to ada"]);
    sandbox.onward(&["submit", "--kind", "image", "--queue", "slow", "--after", "1h", "cat.png"]);
    sandbox
}

/// Shows: T17
fn tasks_are_listed_newest_first_in_a_table(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["task", "list"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        TASK  KIND   QUEUE    STATE      PRIORITY  ATTEMPTS  SUBMITTED             FINISHED  KEY
           2  image  slow     scheduled       128         0  [time]  -         -
           1  mail   default  waiting         200         0  [time]  -         ada
        ");
    });
}

/// Shows: T17
fn a_list_fits_the_terminal(sandbox: Sandbox) {
    sandbox.onward(&[
        "submit",
        "--kind",
        "thumbnail.large",
        "--queue",
        "overnight-work",
        "--key",
        &"k".repeat(60),
        "x",
    ]);
    let (mut outer, inner) = terminal();
    let mut command = sandbox.command(&["task", "list"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::from(inner)).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(command);
    let mut shown = Vec::new();
    // Reading a terminal that no process has open ends with an error.
    let _ = outer.read_to_end(&mut shown);
    let shown = anstream::adapter::strip_bytes(&shown).into_vec();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("thumbnail.la"), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 100), "{shown}");
}

/// Shows: T17
fn filters_narrow_the_list(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let listed = |flags: &[&str]| {
        sandbox.json(&[&["task", "list"], flags].concat()).iter().map(|task| task["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--kind", "mail"]), [1]);
    assert_eq!(listed(&["--queue", "slow"]), [2]);
    assert_eq!(listed(&["--state", "waiting", "--state", "scheduled"]), [2, 1]);
    assert_eq!(listed(&["--key", "ada"]), [1]);
    assert_eq!(listed(&["--before", "2"]), [1]);
    assert_eq!(listed(&["--since", "2100-01-01T00:00:00Z"]), [0; 0]);
}

/// Shows: T17
fn a_page_prints_how_to_get_the_next(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["task", "list", "--limit", "1"]);
    assert_eq!(ran.stderr, "there are more: --before 2\n");
}

/// Shows: T17
fn a_task_is_shown_with_all_that_is_known(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["task", "show", "1"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        task         1
        kind         mail
        queue        default
        state        waiting
        priority     200
        attempts     0
        key          ada
        submitted    [time]
        due          [time]
        payload      to ada
        ");
    });
}

/// Shows: T13, T8
fn a_cancelled_task_waits_again_after_a_retry(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let output = [["task", "cancel", "1"], ["task", "wait", "1"], ["task", "retry", "1"], ["task", "show", "1"]]
        .map(|verb| sandbox.onward(&verb));
    assert_eq!(output.each_ref().map(|ran| ran.code), [Some(0), Some(1), Some(0), Some(0)]);
    assert_eq!(output[0].stdout, "task 1 cancelled\n");
    assert!(output[3].stdout.contains("state        waiting"), "{}", output[3].stdout);
}

/// Shows: T8
fn dead_letters_are_listed_retried_and_purged_apart_from_failures(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines", "--retries", "0"], "1\n100\n1\n1\n");
    let work = ["work", "--kind", "k", "--until-idle", "--", "sh", "-c", "read code; exit $code"];
    sandbox.onward(&work);
    let listed = |state: &str| -> Vec<_> {
        sandbox.json(&["task", "list", "--state", state]).iter().map(|task| task["id"].clone()).collect()
    };
    assert_eq!((listed("dead"), listed("failed")), (vec![4.into(), 3.into(), 1.into()], vec![2.into()]));
    assert_eq!(sandbox.onward(&["task", "retry", "1", "3"]).stdout, "task 1 waits again\ntask 3 waits again\n");
    assert_eq!((listed("dead"), listed("waiting")), (vec![4.into()], vec![3.into(), 1.into()]));
    let purge = ["queue", "purge", "default", "--state", "dead", "--yes"];
    assert_eq!(sandbox.onward(&purge).stdout, "removed 1 task\n");
    assert_eq!((listed("dead"), listed("failed")), (vec![], vec![2.into()]));
}

/// Shows: T13
fn what_a_store_refuses_exits_with_1(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for verb in [["task", "show", "99"], ["task", "cancel", "99"], ["task", "retry", "1"]] {
        assert_eq!(sandbox.onward(&verb).code, Some(1), "{verb:?}");
    }
}

/// Shows: T13
fn a_task_that_is_not_there_keeps_no_other_from_what_is_done(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for (verb, done) in
        [("cancel", "cancelled"), ("retry", "waits again"), ("kill", "is dead now"), ("delete", "deleted")]
    {
        let ran = sandbox.onward(&["task", verb, "999", "2", "1"]);
        assert_eq!(ran.code, Some(1), "{verb}");
        assert_eq!(ran.stdout, format!("task 2 {done}\ntask 1 {done}\n"));
        assert!(ran.stderr.contains("999") && ran.stderr.lines().count() == 1, "{verb}: {}", ran.stderr);
    }
}

/// Shows: T13, T17
fn a_task_that_is_not_there_keeps_no_other_from_what_is_shown(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for verb in [&["run"][..], &["move", "--to", "other"], &["show"], &["why"], &["tree"]] {
        let ran = sandbox.onward(&[&["task"], verb, &["999", "2", "1"]].concat());
        assert_eq!(ran.code, Some(1), "{verb:?}");
        let is_of = |task: &str| ran.stdout.lines().any(|line| line.split_whitespace().any(|word| word == task));
        assert!(is_of("1") && is_of("2"), "{verb:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("999") && ran.stderr.lines().count() == 1, "{verb:?}: {}", ran.stderr);
    }
    sandbox.onward(&["task", "cancel", "1", "2"]);
    let ran = sandbox.onward(&["task", "wait", "999", "2", "1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "task 2 cancelled\ntask 1 cancelled\n"), "{}", ran.stderr);
}

/// Shows: T16
fn events_are_listed_and_continue_after_a_cursor(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let submitted = sandbox.json(&["events"]);
    assert_eq!(submitted.len(), 2);
    sandbox.onward(&["task", "cancel", "1"]);
    let cursor = submitted[1]["cursor"].as_str().unwrap();
    let later = sandbox.json(&["events", "--after", cursor]);
    assert_eq!((later.len(), &later[0]["change"], &later[0]["task"]), (1, &"cancelled".into(), &1.into()));
}

/// Shows: T11
fn a_tree_shows_a_task_with_its_descendants(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "order"]);
    for (kind, parent) in [("pack", "1"), ("label", "2"), ("invoice", "1")] {
        sandbox.onward(&["submit", "--kind", kind, "--parent", parent]);
    }
    insta::assert_snapshot!(sandbox.onward(&["task", "tree", "1"]).stdout, @r"
    1 order waiting
      2 pack waiting
        3 label waiting
      4 invoice waiting
    ");
    assert_eq!(sandbox.json(&["task", "list", "--parent", "1"]).len(), 2);
    assert!(sandbox.onward(&["task", "show", "3"]).stdout.contains("parent       2"));
    sandbox.onward(&["task", "cancel", "1"]);
    let states: Vec<_> = sandbox.json(&["task", "tree", "1"]).iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["cancelled"; 4]);
}

/// Shows: T11
fn each_task_of_a_tree_is_the_same_object_as_in_a_list(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "order", "--timeout", "5s", "tea"]);
    sandbox.onward(&["submit", "--kind", "pack", "--parent", "1", "--timeout", "5s", "in a box"]);
    let mut listed = sandbox.json(&["task", "list"]);
    listed.reverse();
    assert_eq!(sandbox.json(&["task", "tree", "1"]), listed);
    assert!(sandbox.onward(&["task", "tree", "3"]).stderr.contains("there is no task 3"));
}

/// Text that changes the window title, clears the screen, hides what follows, reverses its
/// direction, and looks like a further fact.
const HOSTILE: &str = "a\u{1b}]0;mine\u{7}\u{1b}[2J\u{1b}[8m\u{202e}\nstate        completed";

/// Shows: T17
fn nothing_that_a_user_stored_acts_on_the_terminal_that_shows_it(sandbox: Sandbox) {
    let tag = format!("note={HOSTILE}");
    sandbox.onward_with(&["submit", "--kind", "mail", "--key", HOSTILE, "--tag", &tag], HOSTILE);
    let fails = format!("printf '%s' '{HOSTILE}' >&2; exit 1");
    sandbox.onward(&["work", "--kind", "mail", "--until-idle", "--", "sh", "-c", &fails]);
    sandbox.onward(&["schedule", "set", "often", "--every", "1h", "--kind", "mail", "--key", HOSTILE, "--tag", &tag]);
    let shown = [
        &["task", "show", "1"][..],
        &["task", "list"],
        &["task", "tree", "1"],
        &["task", "why", "1"],
        &["schedule", "show", "often"],
        &["schedule", "list"],
        &["tag", "values", "note"],
        &["tag", "keys"],
        &["events"],
        &["submit", "--kind", "mail", "--key", HOSTILE, "again"],
    ];
    for arguments in shown {
        let ran = sandbox.onward(arguments);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        let acts = |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
        assert!(!text.is_empty() && !text.contains(acts), "{arguments:?}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("state        completed")), "{arguments:?}: {text}");
    }
}

/// Shows: T1
fn a_name_with_a_character_that_is_not_seen_is_refused(sandbox: Sandbox) {
    let wrong = "pay\u{202e}x";
    let named = [
        &["submit", "--kind", wrong, "x"][..],
        &["submit", "--kind", "mail", "--queue", wrong, "x"],
        &["submit", "--kind", "mail", "--group", wrong, "x"],
        &["submit", "--kind", "mail", "--affinity", wrong, "x"],
        &["submit", "--kind", "mail", "--tag", "pay\u{202e}x=1", "x"],
        &["queue", "set", wrong, "--weight", "2"],
        &["limit", "set", "--group", wrong, "--concurrency", "2"],
        &["schedule", "set", wrong, "--every", "1h", "--kind", "mail", "x"],
        &["work", "--kind", wrong, "--until-idle", "--", "true"],
        &["orchestration", "signal", "1", wrong, "1"],
    ];
    for arguments in named {
        let ran = sandbox.onward(arguments);
        assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("U+202E at position 4"), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{202e}'), "{arguments:?}: {:?}", ran.stderr);
    }
}
