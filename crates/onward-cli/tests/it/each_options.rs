//! `onward each`: the source of lines and the destination of results.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use onward_store::{Clock, SystemClock, Timestamp};
use serde_json::Value;

use crate::harness::{Sandbox, numbers};
use crate::stores::on_every_store;
use crate::terminal::{read_until, terminal};

on_every_store! {
    a_placeholder_or_stdin_receives_the_line,
    lines_may_come_from_a_file_and_end_with_a_zero_byte,
    empty_input_is_done_at_once,
    results_are_lines_of_json,
    results_on_stdout_replace_the_output,
    output_may_go_to_a_file_per_line,
    output_beyond_the_limit_is_cut_and_marked,
    of_a_failure_the_beginning_of_stdout_and_the_end_of_stderr_are_kept_and_both_marked,
    cut_output_is_reported,
    output_that_is_whole_is_not_called_cut,
    what_a_command_that_succeeds_writes_to_standard_error_is_passed_on,
    the_position_at_which_output_was_cut_is_reported,
    parts_of_a_path_and_columns_have_placeholders_of_their_own,
    the_number_of_a_line_has_a_placeholder,
    an_item_of_several_lines_is_one_command,
    a_short_item_of_a_named_run_runs_again_when_lines_complete_it,
    another_number_of_lines_an_item_is_another_run,
    lines_of_an_item_come_on_stdin_as_lines,
    a_failed_item_is_written_to_the_failures_as_its_lines,
    the_number_of_lines_an_item_is_bounded,
    a_job_log_has_the_columns_of_gnu_parallel,
    a_dry_run_shows_the_commands_and_leaves_no_store not on postgres,
    jobs_may_be_a_share_of_the_cores,
    a_run_that_halts_soon_lets_what_runs_come_to_its_end,
    a_run_that_halts_now_stops_what_runs_and_charges_nothing_for_it,
    output_that_is_not_text_comes_through_whole,
    a_rate_spaces_the_starts,
    retries_and_their_delays_are_those_that_were_asked_for,
    a_terminal_is_shown_how_many_lines_are_done_how_fast_and_how_long_the_rest_will_take,
    an_output_that_is_the_input_is_refused_and_the_input_stays_as_it_is,
    two_outputs_to_one_file_are_refused,
    an_output_that_is_the_store_is_refused_and_the_store_stays_as_it_is not on postgres,
    a_pause_that_holds_the_lines_back_is_reported,
}

/// Returns the outcome of `each` on the file `list`, with further options.
fn each_of_list(sandbox: &Sandbox, options: &[&str]) -> crate::harness::CommandResult {
    sandbox.onward(&[&["each", "--input", "list"], options, &["--", "false"]].concat())
}

/// Shows: B9
fn an_output_that_is_the_input_is_refused_and_the_input_stays_as_it_is(sandbox: Sandbox) {
    sandbox.write("list", "a\nb\n");
    std::os::unix::fs::symlink("list", sandbox.path("link")).unwrap();
    for options in [["--failures", "list"], ["--results", "./list"], ["--job-log", "link"]] {
        let ran = each_of_list(&sandbox, &options);
        let named = [options[0], "this file is the input (--input)", "name another file"];
        assert!(
            ran.code == Some(2) && named.iter().all(|part| ran.stderr.contains(part)),
            "{options:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(sandbox.read("list"), "a\nb\n");
}

/// Shows: B9
fn two_outputs_to_one_file_are_refused(sandbox: Sandbox) {
    sandbox.write("list", "a\n");
    let ran = each_of_list(&sandbox, &["--failures", "out", "--results", "./out"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--failures out") && ran.stderr.contains("--results"), "{}", ran.stderr);
}

/// Shows: B9
fn an_output_that_is_the_store_is_refused_and_the_store_stays_as_it_is(sandbox: Sandbox) {
    sandbox.write("list", "a\n");
    sandbox.onward(&["submit", "--kind", "k"]);
    for file in ["onward.db", "./onward.db", "onward.db-wal"] {
        let ran = each_of_list(&sandbox, &["--results", file]);
        assert!(ran.code == Some(2) && ran.stderr.contains("the store onward.db"), "{file}: {}", ran.stderr);
    }
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
}

/// Shows: B6, B9
fn a_pause_that_holds_the_lines_back_is_reported(sandbox: Sandbox) {
    sandbox.onward(&["queue", "pause", "--all"]);
    let mut each = sandbox.start(&["each", "--", "echo"], "a\n");
    each.await_said("line 1 waits: everything is paused until it is resumed");
    sandbox.onward(&["queue", "resume", "--all"]);
    let ran = each.wait();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\n"));
}

/// Shows: B9
fn a_placeholder_or_stdin_receives_the_line(sandbox: Sandbox) {
    assert_eq!(sandbox.onward_with(&["each", "--", "echo", "<{}>", "{}"], "a b\n").stdout, "<a b> a b\n");
    assert_eq!(sandbox.onward_with(&["each", "--stdin", "--", "tr", "a", "{}"], "aba\n").stdout, "{b{");
}

/// Shows: B9
fn lines_may_come_from_a_file_and_end_with_a_zero_byte(sandbox: Sandbox) {
    sandbox.write("list", "a\nb\0c\0");
    let ran = sandbox.onward(&["each", "--input", "list", "-0", "--", "printf", "[%s]"]);
    assert_eq!(ran.stdout, "[a\nb][c]");
}

/// Shows: B9
fn empty_input_is_done_at_once(sandbox: Sandbox) {
    assert_eq!(sandbox.onward(&["each", "--", "false"]).code, Some(0));
}

/// Shows: B9
fn results_are_lines_of_json(sandbox: Sandbox) {
    let script = "echo out; echo err >&2; test $0 != 2";
    sandbox.onward_with(&["each", "--results", "results", "--", "sh", "-c", script], &numbers(2));
    insta::assert_snapshot!(sandbox.read("results"), @r#"
    {"attempts":1,"exit":0,"input":"1","line":1,"state":"completed","stderr":"err\n","stdout":"out\n"}
    {"attempts":1,"error":"exit status 1","exit":1,"input":"2","line":2,"state":"dead","stderr":"err\n","stdout":"out\n"}
    "#);
}

/// Shows: B9
fn results_on_stdout_replace_the_output(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--results", "-", "--", "echo"], "a\n");
    assert_eq!(
        ran.stdout,
        "{\"attempts\":1,\"exit\":0,\"input\":\"a\",\"line\":1,\"state\":\"completed\",\"stderr\":\"\",\"stdout\":\"a\\n\"}\n"
    );
}

/// Shows: B9
fn output_may_go_to_a_file_per_line(sandbox: Sandbox) {
    let each = ["each", "--output-dir", "out", "--", "sh", "-c", "echo out $0; echo err $0 >&2"];
    let ran = sandbox.onward_with(&each, "a\n\nb\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    let files = ["000001.out", "000001.err", "000003.out"].map(|name| sandbox.read(&format!("out/{name}")));
    assert_eq!(files, ["out a\n", "err a\n", "out b\n"]);
}

/// Shows: B9
fn output_beyond_the_limit_is_cut_and_marked(sandbox: Sandbox) {
    let each = ["each", "--capture", "4", "--results", "-", "--", "printf", "0123456789"];
    let ran = sandbox.onward_with(&each, "a\n");
    assert!(ran.stdout.contains(r#""stdout":"0123""#) && ran.stdout.contains(r#""stdout_cut":true"#), "{}", ran.stdout);
}

/// Writes 10 KiB to each stream, with words at both ends, and fails.
const MUCH_AND_FAILED: &str = r#"
    filler=$(printf '%10240s' '' | tr ' ' .)
    echo "first out $filler last out"; echo "first err $filler last err" >&2; exit 3"#;

/// Shows: B9
fn of_a_failure_the_beginning_of_stdout_and_the_end_of_stderr_are_kept_and_both_marked(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--results", "-", "--", "sh", "-c", MUCH_AND_FAILED], "a\n");
    let line: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (stdout, stderr) = (line["stdout"].as_str().unwrap(), line["stderr"].as_str().unwrap());
    assert!(stdout.starts_with("first out ..") && stdout.len() == 2048, "{}", stdout.len());
    assert!(stderr.ends_with(".. last err\n") && stderr.len() == 5120, "{}", stderr.len());
    assert_eq!((&line["stdout_cut"], &line["stderr_cut"]), (&true.into(), &true.into()));
    assert_eq!((&line["exit"], &line["error"]), (&3.into(), &"exit status 3".into()));
}

/// Shows: B9
fn cut_output_is_reported(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--", "sh", "-c", MUCH_AND_FAILED], "a\n");
    let expected = "the output of 1 line was longer than the limit and was cut";
    assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{}", ran.stderr);
    let shown = sandbox.onward(&["task", "show", "1"]).stdout;
    assert!(
        shown.contains("exit status 3 (the last 5120 bytes of stderr and the first 2048 of stdout follow)"),
        "{shown}"
    );
}

/// Shows: B9
fn output_that_is_whole_is_not_called_cut(sandbox: Sandbox) {
    let each = ["each", "--results", "-", "--", "sh", "-c", "printf %2048s; printf %5120s >&2; exit $0"];
    let ran = sandbox.onward_with(&each, "0\n1\n");
    assert!(!ran.stdout.contains("_cut") && !ran.stderr.contains("longer"), "{}{}", ran.stdout, ran.stderr);
}

/// Shows: B9
fn what_a_command_that_succeeds_writes_to_standard_error_is_passed_on(sandbox: Sandbox) {
    let each = ["each", "--jobs", "1", "--", "sh", "-c", "echo warning $0 >&2; echo $0"];
    let ran = sandbox.onward_with(&each, "a\nb\n");
    assert!(ran.stderr.starts_with("warning a\nwarning b\n2 lines: "), "{}", ran.stderr);
    let ran = sandbox.onward_with(&[&["--json"], &each[..]].concat(), "a\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

/// Shows: B9
fn the_position_at_which_output_was_cut_is_reported(sandbox: Sandbox) {
    let script = "printf 0123456789; printf abcdef >&2";
    let ran = sandbox.onward_with(&["each", "--capture", "4", "--", "sh", "-c", script], "x\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "0123"));
    let output = "line 1 (x): stdout is cut after its first 4 bytes, stderr is cut before its last 4 bytes; --capture keeps more";
    assert!(ran.stderr.contains(output), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("cdef"), "{}", ran.stderr);
}

/// Shows: B9
fn parts_of_a_path_and_columns_have_placeholders_of_their_own(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--", "echo", "{.}", "{/}", "{//}", "{/.}"], "a/b.png\n");
    assert_eq!(ran.stdout, "a/b b.png a b\n");
    let ran = sandbox.onward_with(&["each", "--colsep", ",", "--", "echo", "{2}", "{1}"], "x,y\n");
    assert_eq!(ran.stdout, "y x\n");
}

/// The second run is continued by a command of another process, which did not submit the lines.
///
/// Shows: B9
fn the_number_of_a_line_has_a_placeholder(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--", "echo", "{#}:{}"], "a\n\nb\n");
    assert_eq!(ran.stdout, "1:a\n3:b\n");
    sandbox.onward_with(&["each", "--name", "n", "--", "false"], "a\nb\n");
    let again = ["each", "--name", "n", "--changed-command", "--retry-failed", "--", "echo", "{#}:{}"];
    assert_eq!(sandbox.onward_with(&again, "a\nb\n").stdout, "1:a\n2:b\n");
}

/// Shows: B9
fn an_item_of_several_lines_is_one_command(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "-n", "2", "--", "echo", "{2}-{1}", "{#}"], "a\n\nb c\nd\n");
    assert_eq!(ran.stdout, "b c-a 1\n-d 4\n");
    assert!(ran.stderr.starts_with("2 items: 2 done, 0 failed"), "{}", ran.stderr);
    let ran = sandbox.onward_with(&["each", "-0", "-N", "3", "--", "printf", "[%s]"], "a\nb\0c\0");
    assert_eq!(ran.stdout, "[a\nb][c]");
}

/// Shows: B9
fn a_short_item_of_a_named_run_runs_again_when_lines_complete_it(sandbox: Sandbox) {
    let each = ["each", "--name", "pairs", "-n", "2", "--", "sh", "-c", "echo $* | tee -a ran", "sh"];
    assert_eq!(sandbox.onward_with(&each, &numbers(3)).stdout, "1 2\n3\n");
    assert_eq!(sandbox.onward_with(&each, &numbers(4)).stdout, "1 2\n3 4\n");
    let mut ran: Vec<String> = sandbox.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, ["1 2", "3", "3 4"]);
}

/// Shows: B9
fn another_number_of_lines_an_item_is_another_run(sandbox: Sandbox) {
    for lines in ["2", "3"] {
        let ran = sandbox.onward_with(&["each", "-n", lines, "--", "echo"], "a\n");
        assert!(ran.stderr.contains("0 of them finished earlier"), "{lines}: {}", ran.stderr);
    }
    sandbox.onward_with(&["each", "--name", "x", "-n", "2", "--", "echo"], "a\n");
    let ran = sandbox.onward_with(&["each", "--name", "x", "-n", "3", "--", "echo"], "a\n");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// Shows: B9
fn lines_of_an_item_come_on_stdin_as_lines(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "-n", "3", "--stdin", "--", "sed", "s/^/x/"], &numbers(4));
    assert_eq!(ran.stdout, "x1\nx2\nx3\nx4\n");
}

/// Shows: B9
fn a_failed_item_is_written_to_the_failures_as_its_lines(sandbox: Sandbox) {
    let each = ["each", "-n", "2", "--failures", "failed", "--", "test", "{1}", "=", "1"];
    assert_eq!(sandbox.onward_with(&each, &numbers(4)).code, Some(1));
    assert_eq!(sandbox.read("failed"), "3\n4\n");
}

/// Shows: B9
fn the_number_of_lines_an_item_is_bounded(sandbox: Sandbox) {
    for lines in ["0", "100001", "two"] {
        let ran = sandbox.onward_with(&["each", "-n", lines, "--", "echo"], "a\n");
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("the number of lines of an item is from 1 to 100000"), "{}", ran.stderr);
    }
}

/// Shows: B9
fn a_job_log_has_the_columns_of_gnu_parallel(sandbox: Sandbox) {
    let script = "case $0 in kill) kill -9 $$;; *) exit $0;; esac";
    sandbox.onward_with(&["each", "--job-log", "log", "--", "sh", "-c", script], "0\n3\nkill\n");
    let log = sandbox.read("log");
    let rows: Vec<Vec<&str>> = log.lines().map(|row| row.split('\t').collect()).collect();
    let header = ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"];
    assert_eq!(rows[0], header);
    let ends: Vec<_> = rows[1..].iter().map(|row| (row[0], row[6], row[7])).collect();
    assert_eq!(ends, [("1", "0", "0"), ("2", "3", "0"), ("3", "-1", "9")]);
    assert_eq!(rows[2][8], format!("sh -c '{script}' 3"));
    let now = SystemClock.now().as_microseconds() / 1_000_000;
    let started: i64 = rows[1][2].split_once('.').unwrap().0.parse().unwrap();
    assert!((0..600).contains(&(now - started)) && rows[1][3].parse::<f64>().unwrap() < 600.0, "{log}");
}

/// Shows: B9
fn a_dry_run_shows_the_commands_and_leaves_no_store(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--dry-run", "--", "touch", "{}.done"], "a b\nc\n");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "touch 'a b.done'\ntouch c.done\n", ""));
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: B9
fn jobs_may_be_a_share_of_the_cores(sandbox: Sandbox) {
    // Only one command at a time can create the directory.
    let alone = "mkdir alone && echo $0 && rmdir alone";
    let ran = sandbox.onward_with(&["each", "--jobs", "1%", "--", "sh", "-c", alone], &numbers(20));
    assert_eq!((ran.code, ran.stdout), (Some(0), numbers(20)));
    let ran = sandbox.onward_with(&["each", "--jobs", "0%", "--", "true"], "");
    assert!(ran.code == Some(2) && ran.stderr.contains("50% of the cores"), "{}", ran.stderr);
}

/// A script whose second line fails while the first runs.
const FAILS_BESIDE: &str = "case $0 in 1) cat hold; echo one;; 2) echo > failing; exit 7;; esac; echo $0 >> ran";

/// Shows: B9
fn a_run_that_halts_soon_lets_what_runs_come_to_its_end(sandbox: Sandbox) {
    ["hold", "failing"].into_iter().for_each(|pipe| sandbox.pipe(pipe));
    let each = ["each", "--jobs", "2", "--halt", "soon,fail=1", "--", "sh", "-c", FAILS_BESIDE];
    let run = sandbox.start(&each, &numbers(9));
    sandbox.await_writer("failing");
    sandbox.write("hold", "");
    let ran = run.wait();
    assert!(ran.code == Some(1) && ran.stderr.contains("halted by --halt"), "{}", ran.stderr);
    assert!(ran.stdout.contains("one\n") && ran.stderr.contains("line 2 (2) is dead"), "{}{}", ran.stdout, ran.stderr);
    assert!(sandbox.read("ran").lines().count() < 8, "{}", sandbox.read("ran"));
}

/// Shows: B9
fn a_run_that_halts_now_stops_what_runs_and_charges_nothing_for_it(sandbox: Sandbox) {
    ["hold", "failing"].into_iter().for_each(|pipe| sandbox.pipe(pipe));
    let each = ["each", "--jobs", "2", "--halt", "now,fail=1", "--name", "n", "--", "sh", "-c", FAILS_BESIDE];
    let run = sandbox.start(&each, &numbers(2));
    sandbox.await_writer("failing");
    let ran = run.wait();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    let tasks = sandbox.json(&["task", "list"]);
    let state = |task: &Value| (task["state"].as_str() == Some("dead"), task["attempts"].as_u64());
    assert_eq!(tasks.iter().map(state).collect::<Vec<_>>(), [(true, Some(1)), (false, Some(0))]);
}

/// Shows: B9
fn output_that_is_not_text_comes_through_whole(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--results", "-", "--", "printf", r"\377\000%s"], "x\n");
    assert!(ran.stdout.contains(r#""stdout_base64":"/wB4""#), "{}", ran.stdout);
}

/// Shows: B9
fn a_rate_spaces_the_starts(sandbox: Sandbox) {
    let begun = SystemClock.now();
    let each = ["each", "--jobs", "4", "--rate", "5/s", "--", "sh", "-c", "date +%s%6N >> starts"];
    assert_eq!(sandbox.onward_with(&each, &numbers(6)).code, Some(0));
    let mut starts: Vec<i64> = sandbox.read("starts").lines().map(|start| start.parse().unwrap()).collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), 6);
    for (place_in_line, start) in (0..).zip(starts) {
        let earliest = begun.plus(Duration::from_millis(200) * place_in_line);
        assert!(start >= earliest.as_microseconds(), "start {place_in_line} came too soon");
    }
}

/// Shows: B9, T7
fn retries_and_their_delays_are_those_that_were_asked_for(sandbox: Sandbox) {
    let each = ["each", "--retries", "3", "--backoff", "linear:20ms:40ms:1m", "--", "false"];
    assert_eq!(sandbox.onward_with(&each, "a\n").code, Some(1));
    let task = &sandbox.json(&["task", "show", "1"])[0];
    let failed_at: Vec<Timestamp> =
        task["errors"].as_array().unwrap().iter().map(|error| error["at"].as_str().unwrap().parse().unwrap()).collect();
    let delays: Vec<Duration> = failed_at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let asked = [20, 60, 100].map(Duration::from_millis);
    // A busy machine may lengthen a delay, and nothing shortens one.
    assert!(delays.len() == 3 && delays.iter().zip(asked).all(|(delay, asked)| *delay >= asked), "{delays:?}");
}

/// Shows: B9
fn a_terminal_is_shown_how_many_lines_are_done_how_fast_and_how_long_the_rest_will_take(sandbox: Sandbox) {
    sandbox.pipe("hold");
    sandbox.write("list", &numbers(3));
    let (mut outer, inner) = terminal();
    let script = "test $0 != 3 || cat hold";
    let mut child = sandbox
        .command(&["each", "--jobs", "1", "--input", "list", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(inner))
        .spawn()
        .unwrap();
    let mut drawn = read_until(&mut outer, "2/3 lines").into_bytes();
    sandbox.write("hold", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Reading a terminal that no process has open ends with an error.
    let _ = outer.read_to_end(&mut drawn);
    let drawn = String::from_utf8_lossy(&drawn);
    let behind = drawn.split("2/3 lines").nth(1).and_then(|behind| behind.split('\r').next()).unwrap();
    assert!(behind.contains("/s  ") && behind.matches(':').count() == 2, "{behind}");
}
