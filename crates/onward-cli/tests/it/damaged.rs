//! A store with one damaged page, through the program.

use std::fs::{read, write};

use crate::harness::{CommandResult, Sandbox, numbers};

const PAGE_BYTES: usize = 4096;

/// Creates a store of waiting tasks, and overwrites one page of their rows. The tasks are so few
/// that each process reads their rows.
fn sandbox_with_damaged_tasks() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &payloads(200));
    overwrite_page_with(&sandbox, b"payload 150");
    sandbox
}

/// Creates such a store of ended tasks. It opens despite the damage.
fn sandbox_with_damaged_history() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &payloads(3000));
    assert_eq!(sandbox.onward(&["task", "cancel", "--kind", "k", "--yes"]).code, Some(0));
    assert_eq!(sandbox.onward(&["store", "compact"]).code, Some(0));
    overwrite_page_with(&sandbox, b"payload 1500");
    sandbox
}

fn payloads(count: u32) -> String {
    numbers(count).lines().map(|number| format!("payload {number}\n")).collect()
}

fn overwrite_page_with(sandbox: &Sandbox, text: &[u8]) {
    let mut bytes = read(sandbox.path("onward.db")).unwrap();
    let place_in_file = bytes.windows(text.len()).rposition(|bytes| bytes == text).unwrap();
    let page = place_in_file / PAGE_BYTES * PAGE_BYTES;
    bytes[page..page + PAGE_BYTES].fill(0x5a);
    write(sandbox.path("onward.db"), bytes).unwrap();
}

fn assert_says_what_and_what_to_do(command: &[&str], ran: &CommandResult) {
    assert_eq!(ran.code, Some(3), "{command:?}: {}{}", ran.stdout, ran.stderr);
    let output = format!("{}{}", ran.stdout, ran.stderr);
    for part in ["onward.db: the store is damaged", "onward store restore"] {
        assert!(output.contains(part), "{command:?}: {part}: {output}");
    }
}

/// Shows: B11, T21
#[test]
fn a_damaged_page_of_waiting_tasks_exits_with_3_and_the_remedy_and_the_file_is_left_alone() {
    let sandbox = sandbox_with_damaged_tasks();
    let before = read(sandbox.path("onward.db")).unwrap();
    let work = ["work", "--kind", "k", "--until-idle", "--", "true"];
    for command in [&["task", "list"][..], &["doctor"], &work, &["submit", "--kind", "k"]] {
        assert_says_what_and_what_to_do(command, &sandbox.onward(command));
        assert!(read(sandbox.path("onward.db")).unwrap() == before, "{command:?} changed the file");
    }
}

/// Shows: B11, T21
#[test]
fn a_damaged_page_that_is_read_when_the_store_is_open_exits_with_3_and_names_the_file_and_the_remedy() {
    let sandbox = sandbox_with_damaged_history();
    for command in [&["task", "list", "--limit", "3000"][..], &["store", "compact"]] {
        assert_says_what_and_what_to_do(command, &sandbox.onward(command));
    }
}

/// Shows: B11, T21
#[test]
fn what_a_damaged_page_does_to_a_store_that_opens_is_a_finding_of_the_doctor() {
    let sandbox = sandbox_with_damaged_history();
    let CommandResult { code, stdout, stderr } = sandbox.onward(&["doctor"]);
    assert!(stdout.contains("bad   integrity") && stdout.contains("onward store restore"), "{stdout}{stderr}");
    assert_eq!(code, Some(1));
}

/// Shows: B11, T21
#[test]
fn no_backup_is_made_of_a_store_with_a_damaged_page_and_no_file_is_left() {
    let sandbox = sandbox_with_damaged_history();
    let command = ["store", "backup", "copy.db"];
    assert_says_what_and_what_to_do(&command, &sandbox.onward(&command));
    let left: Vec<_> = std::fs::read_dir(sandbox.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("copy.db")), "{left:?}");
}
