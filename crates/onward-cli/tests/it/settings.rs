//! Settings: defaults, `onward.toml`, variables and flags.

use serde_json::Value;

use crate::harness::Sandbox;

/// Returns the values and the source of a setting.
fn explained(sandbox: &Sandbox, environment: &[(&str, String)], flags: &[&str], key: &str) -> (Vec<String>, String) {
    let arguments = [&["--json", "config", "explain"], flags].concat();
    let ran = sandbox.onward_as(environment, &arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let settings = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let setting = settings.into_iter().find(|setting| setting["key"] == key).unwrap();
    let values = setting["values"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    (values, setting["source"].as_str().unwrap().to_owned())
}

fn one(value: &str, source: &str) -> (Vec<String>, String) {
    (vec![value.to_owned()], source.to_owned())
}

#[cfg(feature = "serve")]
#[test]
fn settings_come_from_defaults_the_file_variables_and_flags_in_this_order() {
    let sandbox = Sandbox::new();
    let variable = [("ONWARD_LISTEN", "127.0.0.1:3".to_owned())];
    let flag = ["--listen", "127.0.0.1:4"];
    let listen =
        |environment: &[(&str, String)], flags: &[&str]| explained(&sandbox, environment, flags, "serve.listen");
    assert_eq!(listen(&[], &[]), one("127.0.0.1:7070", "default"));
    sandbox.write("onward.toml", "[serve]\nlisten = \"127.0.0.1:2\"\n");
    assert_eq!(listen(&[], &[]), one("127.0.0.1:2", "onward.toml"));
    assert_eq!(listen(&variable, &[]), one("127.0.0.1:3", "ONWARD_LISTEN"));
    assert_eq!(listen(&variable, &flag), one("127.0.0.1:4", "--listen"));
}

#[cfg(feature = "serve")]
#[test]
fn a_flag_without_a_value_is_true_or_false_in_the_file() {
    let sandbox = Sandbox::new();
    let key = "serve.private-webhooks";
    assert_eq!(explained(&sandbox, &[], &[], key), one("false", "default"));
    sandbox.write("onward.toml", "[serve]\nprivate-webhooks = true\n");
    assert_eq!(explained(&sandbox, &[], &[], key), one("true", "onward.toml"));
    assert_eq!(sandbox.onward(&["serve", "--check"]).code, Some(0));
}

#[test]
fn every_command_uses_the_store_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("onward.toml", "store = \"work.db\"\n");
    assert_eq!(sandbox.onward(&["submit", "--kind", "k"]).code, Some(0));
    assert!(sandbox.path("work.db").exists() && !sandbox.path("onward.db").exists());
    assert_eq!(explained(&sandbox, &[], &[], "store"), one("work.db", "onward.toml"));
    assert_eq!(explained(&sandbox, &[], &["--store", "other.db"], "store"), one("other.db", "--store"));
}

#[test]
fn a_file_is_named_by_a_flag_or_a_variable() {
    let sandbox = Sandbox::new();
    sandbox.write("onward.toml", "store = \"one.db\"\n");
    sandbox.write("other.toml", "store = \"two.db\"\n");
    assert_eq!(explained(&sandbox, &[], &["--config", "other.toml"], "store"), one("two.db", "other.toml"));
    let variable = [("ONWARD_CONFIG", "other.toml".to_owned())];
    assert_eq!(explained(&sandbox, &variable, &[], "store"), one("two.db", "other.toml"));
    let missing = sandbox.onward(&["--config", "missing.toml", "stats"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("the settings in missing.toml cannot be read"), "{missing:?}");
}

#[test]
fn wrong_files_are_refused_with_the_place() {
    let sandbox = Sandbox::new();
    let refused = |text: &str| {
        sandbox.write("onward.toml", text);
        let ran = sandbox.onward(&["config", "explain"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.stderr
    };
    let unknown = refused("stroe = \"x.db\"\n");
    assert!(unknown.contains("onward.toml: `stroe` is no setting; write `store`"), "{unknown}");
    let value = refused("durability = \"total\"\n");
    assert!(value.contains("`durability`") && value.contains("total") && value.contains("full, normal"), "{value}");
    let syntax = refused("store = \n");
    assert!(syntax.contains("line 1"), "{syntax}");
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_in_the_store_is_not_shown() {
    let sandbox = Sandbox::new();
    sandbox.write("onward.toml", "store = \"postgres://me:hunter2@host/work\"\n");
    let ran = sandbox.onward(&["config", "explain"]);
    assert!(ran.stdout.contains("postgres://me@host/work") && !ran.stdout.contains("hunter2"), "{ran:?}");
    let help =
        sandbox.onward_as(&[("ONWARD_STORE", "postgres://me:hunter2@host/work".to_owned())], &["stats", "--help"]);
    assert!(!help.stdout.contains("hunter2"), "{help:?}");
}
