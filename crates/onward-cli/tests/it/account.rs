//! `onward account`, and signing in with a password.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{CommandResult, Sandbox};
use crate::serve::{Serving, response};
use crate::stores::on_every_store;
use crate::terminal::{read_until, terminal};

on_every_store! {
    an_account_signs_in_until_it_is_disabled,
    a_new_role_and_a_new_password_hold_at_once,
    accounts_are_listed_and_deleted,
    an_unknown_account_is_named,
    a_password_comes_from_a_file_or_standard_input,
    a_typed_password_is_not_shown,
    a_change_by_the_command_line_is_recorded,
}

const PASSWORD: &str = "correct horse battery";

fn create(sandbox: &Sandbox, name: &str, role: &str) -> CommandResult {
    let arguments = ["account", "create", name, "--role", role, "--password-file", "-"];
    sandbox.onward_with(&arguments, &format!("{PASSWORD}\n"))
}

/// Signs in, and returns the status and the cookie.
fn sign_in(serving: &Serving, name: &str, password: &str) -> (u16, String) {
    use std::io::Read as _;

    let body = json!({"name": name, "password": password});
    let mut text = String::new();
    serving.send("POST", "/v1/sessions", "x-onward-page: 1\r\n", &body).read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let cookie = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap_or_default();
    (status, cookie.split(';').next().unwrap().to_owned())
}

fn me(serving: &Serving, cookie: &str) -> (u16, Value) {
    response(serving.send("GET", "/v1/me", &format!("cookie: {cookie}\r\n"), &Value::Null))
}

/// Shows: W8
fn an_account_signs_in_until_it_is_disabled(sandbox: Sandbox) {
    assert_eq!(create(&sandbox, "Ada", "operator").stdout, "account ada (operator) is created\n");
    let serving = Serving::start(&sandbox);
    assert_eq!(sign_in(&serving, "ada", "wrong").0, 401);
    let (status, cookie) = sign_in(&serving, "ada", PASSWORD);
    assert_eq!(status, 201);
    let (status, shown) = me(&serving, &cookie);
    assert_eq!((status, &shown["account"], &shown["role"]), (200, &json!("ada"), &json!("operator")));
    assert_eq!(sandbox.onward(&["account", "disable", "ada"]).code, Some(0));
    assert_eq!(me(&serving, &cookie).0, 401);
    assert_eq!(sign_in(&serving, "ada", PASSWORD).0, 401);
    assert_eq!(sandbox.onward(&["account", "enable", "ada"]).code, Some(0));
    assert_eq!(sign_in(&serving, "ada", PASSWORD).0, 201);
    assert_eq!(serving.stop(), Some(0));
}

fn a_new_role_and_a_new_password_hold_at_once(sandbox: Sandbox) {
    create(&sandbox, "ada", "operator");
    let serving = Serving::start(&sandbox);
    let (_, cookie) = sign_in(&serving, "ada", PASSWORD);
    let role = sandbox.onward(&["account", "role", "ada", "viewer"]);
    assert_eq!(role.stdout, "account ada has the role viewer\n");
    assert_eq!(me(&serving, &cookie).1["role"], "viewer");
    let set = sandbox.onward_with(&["account", "password", "ada", "--password-file", "-"], "another long password\n");
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(me(&serving, &cookie).0, 401);
    assert_eq!(sign_in(&serving, "ada", "another long password").0, 201);
    assert_eq!(serving.stop(), Some(0));
}

fn accounts_are_listed_and_deleted(sandbox: Sandbox) {
    create(&sandbox, "bob", "admin");
    create(&sandbox, "ada", "viewer");
    let listed = sandbox.json(&["account", "list"]);
    let named: Vec<_> = listed.iter().map(|it| (it["name"].as_str().unwrap(), it["role"].as_str().unwrap())).collect();
    assert_eq!(named, [("ada", "viewer"), ("bob", "admin")]);
    assert!(sandbox.onward(&["account", "list"]).stdout.contains("active"));
    assert_eq!(sandbox.onward(&["account", "delete", "ada"]).code, Some(0));
    assert_eq!(sandbox.json(&["account", "list"]).len(), 1);
}

fn an_unknown_account_is_named(sandbox: Sandbox) {
    create(&sandbox, "ada", "viewer");
    for arguments in [vec!["disable"], vec!["delete"], vec!["role"], vec!["password", "--password-file", "-"]] {
        let mut arguments: Vec<&str> = [&["account"], &arguments[..]].concat();
        arguments.push("nobody");
        if arguments[1] == "role" {
            arguments.push("viewer");
        }
        let ran = sandbox.onward(&arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("there is no account `nobody`"), "{ran:?}");
    }
}

fn a_password_comes_from_a_file_or_standard_input(sandbox: Sandbox) {
    sandbox.write("password", "correct horse battery\nanother line\n");
    let arguments = |file: &'static str| ["account", "create", "ada", "--role", "viewer", "--password-file", file];
    assert_eq!(sandbox.onward(&arguments("password")).code, Some(0));
    let missing = sandbox.onward(&arguments("missing"));
    assert!(missing.stderr.contains("cannot read the password in missing"), "{missing:?}");
    let none = sandbox.onward(&["account", "create", "bob", "--role", "viewer"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("give --password-file FILE"), "{none:?}");
    let short = sandbox.onward_with(&["account", "create", "bob", "--role", "viewer", "--password-file", "-"], "short");
    assert!(short.stderr.contains("at least 12 characters"), "{short:?}");
    assert_eq!(short.code, Some(2));
}

fn a_typed_password_is_not_shown(sandbox: Sandbox) {
    let (mut outer, inner) = terminal();
    let mut child = sandbox
        .command(&["account", "create", "ada", "--role", "viewer"])
        .stdin(Stdio::from(inner.try_clone().unwrap()))
        .stdout(Stdio::from(inner.try_clone().unwrap()))
        .stderr(Stdio::from(inner.try_clone().unwrap()))
        .spawn()
        .unwrap();
    let mut shown = String::new();
    for question in ["password: ", "again: "] {
        shown += &read_until(&mut outer, question);
        writeln!(outer, "{PASSWORD}").unwrap();
    }
    shown += &read_until(&mut outer, "is created");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!shown.contains("horse"), "{shown}");
}

/// Shows: W8
fn a_change_by_the_command_line_is_recorded(sandbox: Sandbox) {
    assert_eq!(create(&sandbox, "Ada", "operator").code, Some(0));
    assert_eq!(sandbox.onward(&["account", "role", "ada", "viewer"]).code, Some(0));
    assert_eq!(sandbox.onward(&["account", "disable", "ada"]).code, Some(0));
    assert_eq!(sandbox.onward(&["account", "delete", "ada"]).code, Some(0));
    // A change that is refused, and one that reads, leave no record.
    assert_eq!(sandbox.onward(&["account", "role", "nobody", "admin"]).code, Some(2));
    assert_eq!(sandbox.onward(&["account", "list"]).code, Some(0));
    let key = sandbox.json(&["key", "create", "auditor", "--role", "admin"]).remove(0);
    let serving = Serving::start(&sandbox);
    let (status, audit) = serving.request("GET", "/v1/audit", key["key"].as_str().unwrap(), &Value::Null);
    assert_eq!(status, 200, "{audit}");
    let records: Vec<_> = audit["items"].as_array().unwrap().iter().collect();
    let changes: Vec<_> =
        records.iter().map(|it| (it["action"].as_str().unwrap(), it["object"].as_str().unwrap())).collect();
    assert_eq!(
        changes,
        [
            ("onward account create", "account ada"),
            ("onward account role", "account ada"),
            ("onward account disable", "account ada"),
            ("onward account delete", "account ada"),
            ("onward key create", "key auditor"),
        ]
    );
    assert!(records.iter().all(|it| it["name"].as_str().unwrap().starts_with("command line, user ")), "{audit}");
    assert!(!audit.to_string().contains(PASSWORD), "{audit}");
    assert_eq!(serving.stop(), Some(0));
}
