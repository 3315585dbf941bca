//! Copies the sources of the hand-overs, and makes broken variants of them, one for each fault that
//! the models must find.

use std::path::Path;
use std::{env, fs};

/// A hand-over, and its faults.
struct Source {
    name: &'static str,
    path: &'static str,
    faults: &'static [Fault],
}

/// A fault: the lines that are replaced, and the broken ones. Indentation does not count.
struct Fault {
    name: &'static str,
    sound: &'static str,
    broken: &'static str,
}

const SOURCES: [Source; 2] = [
    Source {
        name: "group_commit",
        path: "../../crates/onward-store/src/sqlite/commit/hand_over.rs",
        faults: &[
            Fault {
                name: "looks_before_it_queues",
                sound: "let mut queue = self.queue();
                    if queue.closed {
                    return Err(Closed);
                    }
                    queue.requests.push_back(request);
                    let is_seen_to = wake || queue.committing > 0;",
                broken: "let is_seen_to = wake || self.queue().committing > 0;
                    let mut queue = self.queue();
                    if queue.closed {
                    return Err(Closed);
                    }
                    queue.requests.push_back(request);",
            },
            Fault {
                name: "does_not_look_again",
                sound: "if !queue.requests.is_empty() {
                    self.0.wake(queue);",
                broken: "if false {
                    self.0.wake(queue);",
            },
            Fault { name: "waits_unseen", sound: "queue.thread_waits = true;", broken: "queue.thread_waits = false;" },
            Fault {
                name: "looks_before_it_stops",
                sound: "let mut queue = self.0.queue();
                    queue.committing -= 1;
                    if !queue.requests.is_empty() {",
                broken: "let is_left = !self.0.queue().requests.is_empty();
                    let mut queue = self.0.queue();
                    queue.committing -= 1;
                    if is_left {",
            },
        ],
    },
    Source {
        name: "dispatcher",
        path: "../../crates/onward/src/dispatch/hand_over.rs",
        faults: &[
            Fault {
                name: "looks_after_it_adds",
                sound: "let first = state.ends().is_empty();
                    state.ends().push(end);",
                broken: "state.ends().push(end);
                    let first = state.ends().is_empty();",
            },
            Fault {
                name: "wakes_before_it_adds",
                sound: "let mut state = self.lock();
                    // One wake-up is enough for all ends that the dispatcher has not taken yet.
                    let first = state.ends().is_empty();",
                broken: "let first = self.lock().ends().is_empty();
                    if first { self.wake(); }
                    let mut state = self.lock();
                    let first = first && false;",
            },
            Fault {
                name: "clears_after_the_look",
                sound: "self.progressed.store(false, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    look()",
                broken: "let found = look();
                    self.progressed.store(false, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    found",
            },
            Fault {
                name: "reports_without_a_fence",
                sound: "fence(Ordering::SeqCst);
                    // The load comes first",
                broken: "// The load comes first",
            },
        ],
    },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for source in &SOURCES {
        println!("cargo::rerun-if-changed={}", source.path);
        let text =
            fs::read_to_string(source.path).unwrap_or_else(|error| panic!("cannot read {}: {error}", source.path));
        let text = without_indentation(&text);
        write(source.name, "sound", &text);
        for Fault { name, sound, broken } in source.faults {
            let sound = without_indentation(sound);
            let fits = text.matches(sound.trim_end()).count();
            assert_eq!(
                fits, 1,
                "the fault `{name}` must fit {} in one place; mend it in xtask/models/build.rs",
                source.path
            );
            write(source.name, name, &text.replace(sound.trim_end(), broken));
        }
    }
}

/// Returns a text that can be included in a module: without the documentation of a file, and with
/// lines that begin at the first column.
fn without_indentation(text: &str) -> String {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//!")).map(|line| format!("{line}\n")).collect()
}

fn write(source: &str, variant: &str, text: &str) {
    let out = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&out).join(format!("{source}_{variant}.rs")), text).unwrap();
}
