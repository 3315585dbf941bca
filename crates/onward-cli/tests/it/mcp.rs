//! `onward mcp` with the real binary.

use serde_json::{Value, json};

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    tools_read_and_write_over_standard_input,
    tools_only_read_unless_allowed,
    a_role_bounds_the_tools,
}

/// Sends messages and returns the replies.
fn talk(sandbox: &Sandbox, flags: &[&str], messages: &[Value]) -> Vec<Value> {
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let ran = sandbox.onward_with(&[&["mcp"], flags].concat(), &lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(id: u32, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap()
}

fn tools_read_and_write_over_standard_input(sandbox: Sandbox) {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let submit = call(1, "submit_task", json!({"kind": "mail", "payload": {"to": "ada"}}));
    let replies =
        talk(&sandbox, &["--mcp-writes"], &[initialize, initialized, submit, call(2, "show_task", json!({"id": "1"}))]);
    assert_eq!(replies.len(), 3, "a notification has no reply: {replies:?}");
    assert_eq!(replies[0]["result"]["serverInfo"]["name"], "onward");
    assert!(text(&replies[1]).contains("inserted"), "{replies:?}");
    assert!(text(&replies[2]).contains("mail"), "{replies:?}");
    assert!(sandbox.onward(&["task", "list"]).stdout.contains("mail"));
}

#[test]
fn a_missing_store_is_an_error_where_tools_only_read() {
    let sandbox = Sandbox::new();
    let ran = sandbox.onward_with(&["mcp"], "");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("there is no store"), "{ran:?}");
}

fn tools_only_read_unless_allowed(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "mail"]);
    let replies = talk(&sandbox, &[], &[call(1, "submit_task", json!({"kind": "mail"}))]);
    assert_eq!(replies[0]["result"]["isError"], true, "{replies:?}");
    assert!(text(&replies[0]).contains("--mcp-writes"), "{replies:?}");
}

fn a_role_bounds_the_tools(sandbox: Sandbox) {
    let flags = ["--mcp-writes", "--role", "viewer"];
    let replies = talk(&sandbox, &flags, &[call(1, "submit_task", json!({"kind": "mail"}))]);
    assert!(text(&replies[0]).contains("forbidden"), "{replies:?}");
}
