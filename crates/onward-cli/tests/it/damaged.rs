//! A store with one damaged page, through the program.

use std::fs::{read, write};

use crate::harness::{Place, Ran, numbers};

const PAGE_BYTES: usize = 4096;

/// Creates a store of waiting tasks, and overwrites one page of their rows. The tasks are so few
/// that each process reads their rows.
fn place_with_damaged_tasks() -> Place {
    let place = Place::new();
    place.onward_with(&["submit", "--kind", "k", "--lines"], &payloads(200));
    overwrite_page_with(&place, b"payload 150");
    place
}

/// Creates such a store of ended tasks. It opens despite the damage.
fn place_with_damaged_history() -> Place {
    let place = Place::new();
    place.onward_with(&["submit", "--kind", "k", "--lines"], &payloads(3000));
    assert_eq!(place.onward(&["task", "cancel", "--kind", "k", "--yes"]).code, Some(0));
    assert_eq!(place.onward(&["store", "compact"]).code, Some(0));
    overwrite_page_with(&place, b"payload 1500");
    place
}

fn payloads(count: u32) -> String {
    numbers(count).lines().map(|number| format!("payload {number}\n")).collect()
}

fn overwrite_page_with(place: &Place, text: &[u8]) {
    let mut bytes = read(place.path("onward.db")).unwrap();
    let place_in_file = bytes.windows(text.len()).rposition(|bytes| bytes == text).unwrap();
    let page = place_in_file / PAGE_BYTES * PAGE_BYTES;
    bytes[page..page + PAGE_BYTES].fill(0x5a);
    write(place.path("onward.db"), bytes).unwrap();
}

fn assert_says_what_and_what_to_do(command: &[&str], ran: &Ran) {
    assert_eq!(ran.code, Some(3), "{command:?}: {}{}", ran.stdout, ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for part in ["onward.db: the store is damaged", "onward store restore"] {
        assert!(said.contains(part), "{command:?}: {part}: {said}");
    }
}

/// Shows: B11, T21
#[test]
fn a_damaged_page_of_waiting_tasks_exits_with_3_and_the_remedy_and_the_file_is_left_alone() {
    let place = place_with_damaged_tasks();
    let before = read(place.path("onward.db")).unwrap();
    let work = ["work", "--kind", "k", "--until-idle", "--", "true"];
    for command in [&["task", "list"][..], &["doctor"], &work, &["submit", "--kind", "k"]] {
        assert_says_what_and_what_to_do(command, &place.onward(command));
        assert!(read(place.path("onward.db")).unwrap() == before, "{command:?} changed the file");
    }
}

/// Shows: B11, T21
#[test]
fn a_damaged_page_that_is_read_when_the_store_is_open_exits_with_3_and_names_the_file_and_the_remedy() {
    let place = place_with_damaged_history();
    for command in [&["task", "list", "--limit", "3000"][..], &["store", "compact"]] {
        assert_says_what_and_what_to_do(command, &place.onward(command));
    }
}

/// Shows: B11, T21
#[test]
fn what_a_damaged_page_does_to_a_store_that_opens_is_a_finding_of_the_doctor() {
    let place = place_with_damaged_history();
    let Ran { code, stdout, stderr } = place.onward(&["doctor"]);
    assert!(stdout.contains("bad   integrity") && stdout.contains("onward store restore"), "{stdout}{stderr}");
    assert_eq!(code, Some(1));
}

/// Shows: B11, T21
#[test]
fn no_backup_is_made_of_a_store_with_a_damaged_page_and_no_file_is_left() {
    let place = place_with_damaged_history();
    let command = ["store", "backup", "copy.db"];
    assert_says_what_and_what_to_do(&command, &place.onward(&command));
    let left: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("copy.db")), "{left:?}");
}
