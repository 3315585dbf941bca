//! Errors name the wrong value and the remedy, with the right exit code.

use std::os::unix::fs::PermissionsExt;

use onward_store::rusqlite::Connection;

use crate::harness::Sandbox;

fn refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let ran = Sandbox::new().onward(arguments);
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// Shows: B9
#[test]
fn a_command_that_is_not_there_is_wrong_usage_before_anything_is_submitted() {
    let sandbox = Sandbox::new();
    let ran = sandbox.onward_with(&["each", "--", "no-such-program"], "a\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`no-such-program`") && ran.stderr.contains("PATH"), "{}", ran.stderr);
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: B9
#[test]
fn a_wrong_duration_backoff_or_rate_names_its_flag_and_the_form() {
    refused(&["each", "--timeout", "soon", "--", "true"], 2, &["--timeout", "write it as 250ms"]);
    refused(&["each", "--backoff", "exp:1s", "--", "true"], 2, &["--backoff", "exp:FIRST:LONGEST"]);
    refused(&["each", "--rate", "0/s", "--", "true"], 2, &["--rate", "10/s"]);
}

/// Shows: B9, T5
#[test]
fn a_time_zone_of_the_environment_that_does_not_exist_is_named() {
    let sandbox = Sandbox::new();
    let zone = [("TZ", "Nowhere/Bad".to_owned())];
    sandbox.write("tab", "0 3 * * * true\n");
    for typed in [
        &["submit", "--kind", "k", "--at", "2090-11-27 12:00"][..],
        &["task", "list", "--since", "today"],
        &["import", "crontab", "tab"],
    ] {
        let ran = sandbox.onward_as(&zone, typed);
        assert_eq!(ran.code, Some(2), "{typed:?}: {}", ran.stderr);
        for part in ["TZ", "`Nowhere/Bad`", "Europe/Berlin"] {
            assert!(ran.stderr.contains(part), "{typed:?}: {}", ran.stderr);
        }
    }
    for at in ["2090-11-27T12:00:00Z", "in 1w"] {
        assert_eq!(sandbox.onward_as(&zone, &["submit", "--kind", "k", "--at", at]).code, Some(0), "{at}");
    }
}

/// Shows: B9, T18
#[test]
fn a_wrong_bandwidth_or_source_of_pressure_names_what_there_is() {
    let work = |option: &str, value: &str, parts: &[&str]| {
        refused(&["work", "--kind", "k", "--until-idle", option, value, "--", "true"], 2, parts);
    };
    work("--bandwidth", "50MiB", &["--bandwidth", "read, write, receive or send", "receive=50MiB"]);
    work("--bandwidth", "disk=50MiB", &["--bandwidth", "read, write, receive or send"]);
    work("--bandwidth", "read=fast", &["--bandwidth", "64KiB"]);
    work("--bandwidth", "read=0", &["--bandwidth", "leave it out"]);
    work("--pressure", "network", &["--pressure", "memory, disk, cpu"]);
}

/// Shows: B9
#[test]
fn an_input_that_cannot_be_read_is_named() {
    refused(&["each", "--input", "missing", "--", "true"], 2, &["--input missing"]);
    for named in [&[][..], &["--name", "run"]] {
        let each = [&["each", "--input", "."], named, &["--", "true"]].concat();
        refused(&each, 2, &["--input .: is a directory; name a file that can be read"]);
    }
}

/// Shows: B9
#[test]
fn a_run_needs_a_name_that_is_not_empty() {
    refused(&["each", "--name", "", "--", "true"], 2, &["--name <NAME>"]);
}

/// Shows: Q6
#[test]
fn a_list_shows_at_least_one_row() {
    for list in [&["task", "list"][..], &["orchestration", "list"]] {
        refused(&[list, &["--limit", "0"]].concat(), 2, &["--limit", "`0` is not a number of rows"]);
    }
}

/// Shows: B9
#[test]
fn a_kind_of_onwards_own_is_refused_by_name_wherever_one_is_typed() {
    let parts = ["--kind", "`onward.each`", "`onward.`, which is reserved", "choose another name"];
    refused(&["submit", "--kind", "onward.each"], 2, &parts);
    refused(&["work", "--kind", "onward.each", "--", "cat"], 2, &parts);
    refused(&["schedule", "set", "s", "--every", "1h", "--kind", "onward.each"], 2, &parts);
    refused(&["orchestration", "start", "onward.each"], 2, &parts[1..]);
    refused(&["work", "--kind", "onward.*", "--", "cat"], 2, &["`onward.*`", "reserved"]);
}

/// Shows: B9
#[test]
fn a_command_without_two_dashes_is_an_error_that_names_them() {
    for typed in [&["each", "echo", "hi"][..], &["work", "--kind", "k", "echo", "hi"]] {
        refused(typed, 2, &["unexpected argument 'echo'", "-- echo"]);
    }
    let ran = Sandbox::new().onward(&["each", "--", "no-such-program", "hi"]);
    assert!(!ran.stderr.contains("stands behind"), "{}", ran.stderr);
}

/// Shows: B11
#[test]
fn a_negative_value_is_refused_as_such() {
    for typed in [&["submit", "--kind", "k", "--priority", "-1"][..], &["each", "--timeout", "-5s", "--", "true"]] {
        refused(typed, 2, &["no option takes a negative number"]);
    }
    refused(&["submit", "--kind", "k", "-1"], 2, &["as a payload it goes after `--`: -- -1"]);
}

/// Shows: Q6
#[test]
fn the_texts_of_a_help_are_wrapped_once() {
    for command in ["each", "work", "run"] {
        let help = Sandbox::new().onward(&[command, "--help"]).stdout;
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with(char::is_alphabetic))) {
            let word = pair[1].split(' ').next().unwrap_or_default();
            let has_room = pair[0].chars().count() + 1 + word.chars().count() <= 100;
            assert!(!has_room || pair[0].ends_with(':'), "{command}: `{}` is followed by `{word}`", pair[0]);
        }
    }
}

/// Shows: B11
#[test]
fn the_address_of_a_server_with_a_mistake_makes_no_file() {
    refused(&["--store", "postgres:work", "submit", "--kind", "k"], 2, &["`//` is missing"]);
    refused(&["--store", "sqlite::memory:", "submit", "--kind", "k"], 2, &["gone when this command ends"]);
}

/// Shows: D5, B11
#[test]
fn an_export_to_the_file_of_the_store_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.onward(&["orchestration", "start", "order"]);
    let ran = sandbox.onward(&["orchestration", "export", "1", "--output", "onward.db"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("this file is the store onward.db"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
}

/// Shows: B11
#[test]
fn a_device_or_a_pipe_is_refused_as_a_store() {
    let sandbox = Sandbox::new();
    sandbox.pipe("pipe");
    for store in ["/dev/null", "pipe"] {
        let ran = sandbox.onward(&["--store", store, "submit", "--kind", "k"]);
        assert!(ran.code == Some(2) && ran.stderr.contains("a device or a pipe"), "{store}: {}", ran.stderr);
    }
}

/// Shows: B9
#[test]
fn a_file_that_cannot_be_read_is_named_with_its_own_flag() {
    refused(&["submit", "--kind", "k", "--payload-file", "missing"], 2, &["--payload-file missing"]);
    refused(&["submit", "--kind", "k", "--lines", "--payload-file", "missing"], 2, &["--payload-file missing"]);
    refused(&["task", "complete", "1.1", "--result", "missing"], 2, &["--result missing"]);
    refused(&["each", "--input", "missing", "--name", "n", "--", "true"], 2, &["--input missing"]);
}

/// Shows: B9
#[test]
fn a_capture_beyond_the_limit_is_rejected_with_the_typed_option() {
    refused(&["each", "--capture", "2GiB", "--", "true"], 2, &["2GiB", "--capture", "the limit is 127MiB"]);
}

/// Shows: B11
#[test]
fn where_no_more_files_may_be_open_the_limit_is_named_and_not_the_directory() {
    let sandbox = Sandbox::new();
    for files in 10..28 {
        let ran = sandbox.start_after(&format!("ulimit -n {files}"), &["submit", "--kind", "k"], "").wait();
        let names_it = ran.stderr.contains("ulimit -n") || ran.stderr.contains("Too many open files");
        assert!(ran.code == Some(0) || names_it, "{files}: {}", ran.stderr);
    }
}

/// Shows: Q1
#[test]
fn a_missing_store_is_not_made_by_looking_at_it() {
    let sandbox = Sandbox::new();
    let ran = sandbox.onward(&["task", "list"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("onward.db") && ran.stderr.contains("onward submit"), "{}", ran.stderr);
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: Q1
#[test]
fn commands_that_add_or_set_something_make_the_store_and_the_others_do_not() {
    for makes in [
        &["submit", "--kind", "k"][..],
        &["limit", "set", "--group", "g", "--concurrency", "1"],
        &["queue", "set", "q", "--weight", "2"],
        &["queue", "pause", "q"],
        &["queue", "mode", "strict"],
        &["schedule", "set", "s", "--every", "1h", "--kind", "k"],
        &["orchestration", "start", "k"],
    ] {
        let sandbox = Sandbox::new();
        let ran = sandbox.onward(makes);
        assert!(ran.code == Some(0) && sandbox.path("onward.db").exists(), "{makes:?}: {}", ran.stderr);
    }
    for reads in [
        &["queue", "mode"][..],
        &["queue", "list"],
        &["queue", "resume", "q"],
        &["limit", "list"],
        &["limit", "clear", "--group", "g"],
        &["task", "cancel", "1"],
        &["schedule", "pause", "s"],
        &["stats"],
        &["each", "--list"],
        &["each", "--forget", "n"],
    ] {
        let sandbox = Sandbox::new();
        let ran = sandbox.onward(reads);
        assert!(ran.code == Some(3) && !sandbox.path("onward.db").exists(), "{reads:?}: {}", ran.stderr);
    }
}

/// Shows: B11
#[test]
fn a_missing_directory_is_named() {
    refused(&["--store", "no/such/dir/x.db", "submit", "--kind", "k"], 3, &["no/such/dir", "make it first"]);
}

/// Shows: B11
#[test]
fn a_file_of_something_else_is_no_store_and_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("onward.db", &"not a database ".repeat(1000));
    let before = sandbox.read("onward.db");
    let ran = sandbox.onward(&["submit", "--kind", "k"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("onward.db") && ran.stderr.contains("choose another path"), "{}", ran.stderr);
    assert_eq!(sandbox.read("onward.db"), before);
}

/// Shows: B11, T21
#[test]
fn a_store_of_a_newer_version_exits_with_3_and_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.onward(&["submit", "--kind", "k"]);
    Connection::open(sandbox.path("onward.db")).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    let before = std::fs::read(sandbox.path("onward.db")).unwrap();
    let ran = sandbox.onward(&["submit", "--kind", "k"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("use the newer program"), "{}", ran.stderr);
    assert_eq!(std::fs::read(sandbox.path("onward.db")).unwrap(), before);
}

/// Shows: B11, T21
#[test]
fn a_damaged_store_exits_with_3_and_the_remedy() {
    let sandbox = Sandbox::new();
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(2000));
    let mut bytes = std::fs::read(sandbox.path("onward.db")).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(sandbox.path("onward.db"), &bytes).unwrap();
    let ran = sandbox.onward(&["task", "list"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("onward store restore"), "{:?} {}", ran.code, ran.stderr);
    assert_eq!(std::fs::read(sandbox.path("onward.db")).unwrap(), bytes);
}

/// Shows: B11
#[test]
fn the_reason_why_a_file_is_not_a_store_is_printed_once() {
    let sandbox = Sandbox::new();
    sandbox.write("onward.db", &"not a database ".repeat(1000));
    let ran = sandbox.onward(&["submit", "--kind", "k"]);
    assert_eq!(ran.stderr.matches("is not a database").count(), 1, "{}", ran.stderr);
}

/// Shows: B11
#[test]
fn a_store_in_memory_or_of_another_scheme_is_rejected_with_the_reason() {
    refused(&["--store", "memory:", "stats"], 2, &["gone when this command ends"]);
    refused(&["--store", "mysql://host/db", "stats"], 2, &["no store for `mysql:`"]);
}

/// Shows: Q1
#[test]
fn a_purge_needs_to_be_meant() {
    refused(&["queue", "purge", "q", "--state", "dead"], 2, &["--yes", "--dry-run"]);
    refused(&["queue", "purge", "q", "--state", "running", "--yes"], 2, &["never purged"]);
}

/// Shows: B11
#[test]
fn an_error_is_one_json_object_where_json_is_asked_for() {
    let ran = Sandbox::new().onward(&["--json", "task", "list"]);
    let error: serde_json::Value = serde_json::from_str(ran.stderr.trim()).unwrap();
    assert_eq!(error["exit_code"], 3);
}

/// Shows: B9
#[test]
fn a_path_that_cannot_be_written_is_named() {
    refused(&["each", "--results", "no/such/file", "--", "true"], 2, &["--results no/such/file"]);
}

/// Shows: B11
#[test]
fn a_program_without_execute_permission_is_rejected() {
    let sandbox = Sandbox::new();
    sandbox.write("script", "#!/bin/sh\n");
    std::fs::set_permissions(sandbox.path("script"), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(sandbox.onward_with(&["each", "--", "./script"], "a\n").code, Some(2));
}
