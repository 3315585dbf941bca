//! The fuzzers' inputs, which `fuzz/packs` keeps in one file per target.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use self::fuzz::targets;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "it is a crate of its own, for the fuzzers")]
pub(crate) mod fuzz;

/// A fuzz target.
type Target = fn(&[u8]);

/// The targets, each with the name of its pack.
const TARGETS: [(&str, Target); 7] = [
    ("socks", targets::socks),
    ("zmtp_curve", targets::zmtp_curve),
    ("zmtp_greeting", targets::zmtp_greeting),
    ("zmtp_null", targets::zmtp_null),
    ("zmtp_plain", targets::zmtp_plain),
    ("zmtp_runs", targets::zmtp_runs),
    ("zmtp_traffic", targets::zmtp_traffic),
];

/// The fraction of inputs under Miri: one of this number.
const MIRI_TAKES: usize = 60;

fn packs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/packs"))
}

/// Runs a target on each input of its pack. The target checks that the input has the same effect
/// whole and in pieces.
fn replay(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("the target is listed");
    let path = packs().join(name).with_extension("hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!text.is_empty(), "{} holds no input", path.display());
    for (number, line) in text.lines().enumerate().step_by(if cfg!(miri) { MIRI_TAKES } else { 1 }) {
        let input = bytes(line);
        let outcome = std::panic::catch_unwind(|| target(&input));
        assert!(outcome.is_ok(), "{name}: line {}: {line}", number + 1);
    }
}

/// Returns the bytes of a line of hexadecimal digits.
fn bytes(line: &str) -> Vec<u8> {
    assert!(line.len().is_multiple_of(2) && !line.is_empty(), "a line of a pack has whole bytes: `{line}`");
    (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn each_pack_of_inputs_belongs_to_a_target_that_replays_it() {
    let files = fs::read_dir(packs()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| format!("{name}.hex")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), listed);
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_greetings_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_greeting");
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_handshakes_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_null");
    replay("zmtp_plain");
    if !cfg!(miri) {
        replay("zmtp_curve");
    }
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_traffic_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_traffic");
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_runs_comes_to_the_same_in_runs_and_one_by_one() {
    replay("zmtp_runs");
}

/// Shows: M3
#[test]
fn what_the_fuzzers_kept_of_replies_of_a_socks_proxy_ends_or_fails() {
    replay("socks");
}
