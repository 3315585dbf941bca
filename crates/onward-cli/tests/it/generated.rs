//! Documentation generated from the definitions of the command line.

use crate::harness::Sandbox;

/// Shows: B11
#[test]
fn the_reference_has_every_command_and_the_exit_codes() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["generate", "reference", "docs"]).code, Some(0));
    let reference = sandbox.read("docs/cli.md");
    for part in
        ["### onward each", "### onward work", "#### onward task list", "#### onward store prune", "130  interrupted"]
    {
        assert!(reference.contains(part), "{part}");
    }
}

/// Shows: B11
#[test]
fn there_is_a_manual_page_per_command_and_a_script_per_shell() {
    let sandbox = Sandbox::new();
    sandbox.onward(&["generate", "man", "man"]);
    sandbox.onward(&["generate", "completions", "completions"]);
    assert!(sandbox.read("man/onward-queue-pause.1").contains("onward-queue-pause"));
    for (script, subcommand, flag) in [
        ("onward.bash", "onward,queue)", "--retry-failed"),
        ("_onward", "'queue:", "'--retry-failed["),
        ("onward.fish", "-a \"queue\"", "-l retry-failed"),
    ] {
        let text = sandbox.read(&format!("completions/{script}"));
        assert!(text.contains(subcommand) && text.contains(flag), "{script}");
    }
}

/// Shows: B11
#[test]
fn help_ends_with_the_exit_codes() {
    let ran = Sandbox::new().onward(&["--help"]);
    assert!(
        ran.stdout.trim_end().ends_with("141  standard output was closed before the end; finished work is kept"),
        "{}",
        ran.stdout
    );
}

/// Shows: B11
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(2000));
    let ran = std::process::Command::new("sh")
        .args(["-c", "set -o pipefail 2>/dev/null; \"$0\" task list --limit 2000 | head -1; echo"])
        .arg(env!("CARGO_BIN_EXE_onward"))
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
}
