//! `onward` as the first process of a container, which inherits what its commands leave behind.

use std::process::{Command, Stdio};

use crate::harness::{CommandResult, Sandbox, numbers};

/// Returns the command line prefix that makes a program the first process of a namespace. Returns
/// `None`, and prints that, if this is not allowed.
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
fn as_first_process() -> Option<&'static str> {
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child", "true"];
    let tried = Command::new("unshare").args(unshare).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("not tested: `unshare --pid` needs util-linux and the rights of root");
        return None;
    }
    Some("set -- unshare --pid --fork --mount-proc --kill-child \"$@\"")
}

fn each(script: &str, lines: u32) -> Option<CommandResult> {
    let each = ["each", "--jobs", "4", "--", "sh", "-c", script];
    Some(Sandbox::new().start_after(as_first_process()?, &each, &numbers(lines)).wait())
}

/// Shows: T21
#[test]
fn processes_that_commands_left_behind_are_reaped() {
    let script = "
        test $0 = 12 || { (:) & exit 0; }
        for second in 1 2 3 4 5 6 7 8 9 10; do grep -q ') Z ' /proc/[0-9]*/stat || exit 0; sleep 1; done
        grep ') Z ' /proc/[0-9]*/stat >&2; exit 1";
    let Some(ran) = each(script, 12) else { return };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Shows: T21
#[test]
fn the_ends_of_commands_are_reported_correctly_beside_those_of_orphans() {
    let Some(ran) = each("(:) & (:) & exit $(($0 % 2))", 200) else { return };
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("200 lines: 100 done, 100 failed"), "{}", ran.stderr);
}
