//! What the fuzzers found worth keeping.

use std::fs;
use std::path::Path;

use self::fuzz::targets;

#[path = "../../../../../fuzz/src/lib.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "it is a crate of its own, for the fuzzers")]
pub(crate) mod fuzz;

/// Every how many-th input Miri gets.
const MIRI_TAKES: usize = 100;

/// Gives each input of a target's corpus to the target: whole and in pieces it must come to the same.
fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in fs::read_dir(corpus).unwrap().step_by(if cfg!(miri) { MIRI_TAKES } else { 1 }) {
        let path = entry.unwrap().path();
        let input = fs::read(&path).unwrap();
        let outcome = std::panic::catch_unwind(|| target(&input));
        assert!(outcome.is_ok(), "{name}: {}", path.display());
        count += 1;
    }
    assert!(count > if cfg!(miri) { 0 } else { 100 }, "{name}: {count} inputs");
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_greetings_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_greeting", targets::zmtp_greeting);
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_handshakes_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_null", targets::zmtp_null);
    replay("zmtp_plain", targets::zmtp_plain);
    if !cfg!(miri) {
        replay("zmtp_curve", targets::zmtp_curve);
    }
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_traffic_comes_to_the_same_whole_and_in_pieces() {
    replay("zmtp_traffic", targets::zmtp_traffic);
}

/// Shows: M2
#[test]
fn what_the_fuzzers_kept_of_runs_comes_to_the_same_in_runs_and_one_by_one() {
    replay("zmtp_runs", targets::zmtp_runs);
}
