//! The inputs of the fuzz targets, which `fuzz/packs` keeps in one file per target.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use onward::workflow::TurnsAlone;

#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "it is a crate of its own, for the fuzzers")]
mod fuzz;

/// A fuzz target.
type Target = fn(&[u8]);

/// The targets, each with the name of its pack.
const TARGETS: [(&str, Target); 3] = [
    ("workflow_expression", fuzz::workflow_expression),
    ("workflow_history", fuzz::workflow_history),
    ("workflow_template", fuzz::workflow_template),
];

fn packs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/packs"))
}

/// Returns the bytes of a line of hexadecimal digits.
fn bytes(line: &str) -> Vec<u8> {
    assert!(line.len().is_multiple_of(2) && !line.is_empty(), "a line of a pack has whole bytes: `{line}`");
    (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
}

/// Returns the inputs of a pack.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let path = packs().join(name).with_extension("hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!text.is_empty(), "{} holds no input", path.display());
    text.lines().map(bytes).collect()
}

fn run(target: Target, name: &str, input: &[u8]) {
    let outcome = std::panic::catch_unwind(|| target(input));
    assert!(outcome.is_ok(), "{name}: {:?}", String::from_utf8_lossy(input));
}

#[test]
fn each_pack_of_inputs_belongs_to_a_target_that_replays_it() {
    let files = fs::read_dir(packs()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| format!("{name}.hex")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), listed);
}

/// Shows: W1, W2
#[test]
fn every_input_of_the_fuzzers_ends_within_its_bounds() {
    for (name, target) in TARGETS {
        inputs(name).iter().for_each(|input| run(target, name, input));
    }
}

/// Shows: W1, W2
#[test]
fn every_beginning_of_an_input_ends_within_its_bounds() {
    for (name, target) in TARGETS {
        for input in inputs(name) {
            (0..input.len()).step_by(7).for_each(|end| run(target, name, &input[..end]));
        }
    }
}

/// Shows: W2
#[test]
fn a_history_with_any_octet_changed_is_refused_or_continued() {
    let history = TurnsAlone::exercised().unwrap().history().unwrap();
    assert!(history.len() > 100, "{history:?}");
    for at in 0..history.len() {
        for change in [0x01, 0x10, 0x80, 0xFF] {
            let mut changed = history.clone();
            changed[at] ^= change;
            run(fuzz::workflow_history, "workflow_history", &changed);
        }
    }
}
