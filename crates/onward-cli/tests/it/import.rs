//! `onward import`.

use serde_json::json;

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    each_line_of_a_crontab_becomes_a_schedule,
    lines_that_are_left_out_are_listed_with_their_reason,
    the_same_crontab_again_changes_nothing,
    a_line_runs_as_cron_would_run_it,
    a_dry_run_of_an_import_changes_nothing,
}

const CRONTAB: &str = "# the crontab of ops
MAILTO=ops@example.org
NAME=\"it's 5 %\"
HOME=/tmp
CRON_TZ=Europe/Berlin
30 3 * * mon-fri /usr/local/bin/backup --all
@hourly printf '\\%s ' \"$NAME\"; cat%one%two
@reboot start-it
";

fn import(sandbox: &Sandbox, arguments: &[&str]) -> crate::harness::CommandResult {
    sandbox.write("tab", CRONTAB);
    sandbox.onward(&[&["import", "crontab", "tab", "--zone", "UTC"][..], arguments].concat())
}

/// Shows: T5, B9
fn each_line_of_a_crontab_becomes_a_schedule(sandbox: Sandbox) {
    let imported = import(&sandbox, &[]);
    assert!(imported.stderr.contains("onward work --kind cron -- sh"), "{}", imported.stderr);
    let listed = sandbox.json(&["schedule", "list"]);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let text = listed.iter().map(ToString::to_string).collect::<String>();
    for part in ["cron-backup-", "30 3 * * 1-5", "0 * * * *", "Europe/Berlin", "allow"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Shows: B9
fn lines_that_are_left_out_are_listed_with_their_reason(sandbox: Sandbox) {
    let imported = import(&sandbox, &[]);
    assert_eq!(imported.code, Some(1), "{}", imported.stderr);
    assert!(
        imported.stdout.contains("line 2 is left out: MAILTO=ops@example.org: MAILTO has no effect"),
        "{}",
        imported.stdout
    );
    assert!(
        imported.stdout.contains("line 8 is left out: @reboot start-it: @reboot is no time"),
        "{}",
        imported.stdout
    );
    let system = "0 1 * * * root a\n";
    sandbox.write("system", system);
    let ran = sandbox.onward(&["import", "crontab", "system", "--system", "--zone", "UTC"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("--kind cron:root"), "{ran:?}");
}

/// Shows: B9
fn the_same_crontab_again_changes_nothing(sandbox: Sandbox) {
    import(&sandbox, &[]);
    let before = sandbox.json(&["schedule", "list"]);
    import(&sandbox, &[]);
    assert_eq!(sandbox.json(&["schedule", "list"]), before);
}

/// Shows: T5, B9
fn a_line_runs_as_cron_would_run_it(sandbox: Sandbox) {
    let imported = import(&sandbox, &["--json"]);
    let lines: Vec<serde_json::Value> =
        imported.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schedule = lines.iter().find(|line| line["cron"] == "0 * * * *").unwrap()["schedule"].as_str().unwrap();
    assert_eq!(sandbox.onward(&["schedule", "trigger", schedule]).code, Some(0));
    let worked = sandbox.onward(&["work", "--kind", "cron", "--until-idle", "--", "sh"]);
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    assert_eq!((&task["state"], &task["result"]), (&json!("completed"), &json!("it's 5 % one\ntwo\n")), "{task}");
}

/// Shows: B9
fn a_dry_run_of_an_import_changes_nothing(sandbox: Sandbox) {
    let imported = import(&sandbox, &["--dry-run"]);
    assert!(imported.stdout.contains("line 6: schedule cron-backup-"), "{}", imported.stdout);
    sandbox.onward(&["submit", "--kind", "k"]);
    assert!(sandbox.json(&["schedule", "list"]).is_empty());
}
