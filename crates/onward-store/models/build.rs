//! Makes broken variants of the hand-over, one for each fault that the models must find.

use std::path::Path;
use std::{env, fs};

const SOURCE: &str = "../src/sqlite/commit/hand_over.rs";

/// The faults: a name, the text that is replaced, and the broken text.
const FAULTS: [(&str, &str, &str); 4] = [
    (
        "looks_before_it_queues",
        "        let mut queue = self.queue();\n        if queue.closed {\n            return Err(Closed);\n        }\n        queue.requests.push_back(request);\n        let is_seen_to = wake || queue.committing > 0;",
        "        let is_seen_to = wake || self.queue().committing > 0;\n        let mut queue = self.queue();\n        if queue.closed {\n            return Err(Closed);\n        }\n        queue.requests.push_back(request);",
    ),
    ("does_not_look_again", "        if !queue.requests.is_empty() {\n            self.0.wake(queue);", "        if false {\n            self.0.wake(queue);"),
    ("waits_unseen", "            queue.thread_waits = true;", "            queue.thread_waits = false;"),
    (
        "stops_counting_first",
        "        let mut queue = self.0.queue();\n        queue.committing -= 1;\n        if !queue.requests.is_empty() {",
        "        let is_left = !self.0.queue().requests.is_empty();\n        let mut queue = self.0.queue();\n        queue.committing -= 1;\n        if is_left {",
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    let source = fs::read_to_string(SOURCE).unwrap_or_else(|error| panic!("cannot read {SOURCE}: {error}"));
    let out = env::var("OUT_DIR").unwrap();
    for (name, sound, broken) in FAULTS {
        assert_eq!(source.matches(sound).count(), 1, "the fault `{name}` must fit {SOURCE} in one place; mend it here");
        // Documentation of a module cannot be included within one.
        let text = source.replace(sound, broken).replace("//!", "//");
        fs::write(Path::new(&out).join(format!("{name}.rs")), text).unwrap();
    }
    fs::write(Path::new(&out).join("sound.rs"), source.replace("//!", "//")).unwrap();
}
