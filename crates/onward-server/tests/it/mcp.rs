//! The Model Context Protocol.

use onward_server::http::{Role, ServerOptions, bounds};
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    a_client_agrees_on_a_version_and_lists_tools,
    tools_read_the_store,
    tools_that_write_are_off_unless_allowed,
    tools_that_write_need_the_role_and_are_recorded,
    a_repeated_call_with_a_key_has_no_second_effect,
    a_refusal_is_a_result_that_names_the_remedy,
    messages_that_are_none_are_refused,
    results_are_bounded,
    the_user_of_a_process_calls_tools_without_http,
}

async fn with_writes(api: &Api) -> Api {
    let mut options = ServerOptions::default();
    options.mcp_writes = true;
    api.another(options).await
}

async fn post(api: &Api, role: Role, message: &Value) -> Response {
    api.send(Request::new("POST", "/mcp").key(api.key(role)).json(message)).await
}

async fn request(api: &Api, role: Role, method: &str, parameters: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters});
    let reply = post(api, role, &message).await.expect(200);
    assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &json!(7)), "{reply}");
    reply
}

/// Calls a tool. Returns its text, and whether it is an error.
async fn call(api: &Api, role: Role, tool: &str, arguments: Value) -> (String, bool) {
    let reply = request(api, role, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    let result = &reply["result"];
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"].as_bool().unwrap())
}

/// Calls a tool that must not fail, and returns its JSON.
async fn read(api: &Api, role: Role, tool: &str, arguments: Value) -> Value {
    let (text, is_error) = call(api, role, tool, arguments).await;
    assert!(!is_error, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn names(api: &Api, role: Role) -> Vec<String> {
    let reply = request(api, role, "tools/list", json!({})).await;
    reply["result"]["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

async fn a_client_agrees_on_a_version_and_lists_tools(api: Api) {
    for (wanted, agreed) in [("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")] {
        let parameters = json!({"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "t"}});
        let reply = request(&api, Role::Viewer, "initialize", parameters).await;
        assert_eq!(reply["result"]["protocolVersion"], agreed, "{reply}");
        assert!(reply["result"]["capabilities"]["tools"].is_object(), "{reply}");
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = post(&api, Role::Viewer, &initialized).await;
    assert_eq!((accepted.status, accepted.body.len()), (202, 0));
    assert_eq!(request(&api, Role::Viewer, "ping", json!({})).await["result"], json!({}));
    let reply = request(&api, Role::Viewer, "tools/list", json!({})).await;
    let shown = reply["result"]["tools"].as_array().unwrap().iter().find(|it| it["name"] == "show_task").unwrap();
    assert_eq!(shown["inputSchema"]["required"], json!(["id"]), "{shown}");
    assert_eq!(shown["annotations"]["readOnlyHint"], true, "{shown}");
    api.send(api.request("GET", "/mcp")).await.expect_problem(405, "method_not_allowed");
}

async fn tools_read_the_store(api: Api) {
    let id = api.submit("mail").await;
    let listed = read(&api, Role::Viewer, "list_tasks", json!({"kind": "mail", "limit": 5})).await;
    assert_eq!(listed["items"][0]["id"], json!(id), "{listed}");
    assert_eq!(read(&api, Role::Viewer, "show_task", json!({"id": id})).await["kind"], "mail");
    assert!(read(&api, Role::Viewer, "explain_task", json!({"id": id})).await.is_object());
    for tool in names(&api, Role::Viewer).await {
        if ["list_", "overview", "statistics"].iter().any(|start| tool.starts_with(start)) {
            read(&api, Role::Viewer, &tool, json!({})).await;
        }
    }
    let checked = read(&api, Role::Viewer, "check_template", json!({"yaml": "workflow: a\n"})).await;
    assert!(checked.is_object(), "{checked}");
}

async fn tools_that_write_are_off_unless_allowed(api: Api) {
    let writes = ["submit_task", "retry_task", "cancel_task", "signal_run"];
    assert!(names(&api, Role::Admin).await.iter().all(|name| !writes.contains(&name.as_str())));
    for tool in writes {
        let (text, is_error) = call(&api, Role::Admin, tool, json!({"id": "1", "kind": "k", "name": "n"})).await;
        assert!(is_error && text.contains("--mcp-writes"), "{text}");
    }
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

async fn tools_that_write_need_the_role_and_are_recorded(api: Api) {
    let api = with_writes(&api).await;
    let (text, is_error) = call(&api, Role::Viewer, "submit_task", json!({"kind": "k"})).await;
    assert!(is_error && text.starts_with("forbidden: "), "{text}");
    assert!(!names(&api, Role::Viewer).await.contains(&"submit_task".to_owned()));
    assert!(names(&api, Role::Operator).await.contains(&"submit_task".to_owned()));
    let new = json!({"kind": "k", "payload": {"n": 1}, "queue": "q"});
    let id = read(&api, Role::Operator, "submit_task", new).await["id"].clone();
    let task = api.get(&format!("/v1/tasks/{}?payloads=true", id.as_str().unwrap())).await.expect(200);
    assert_eq!((&task["queue"], &task["payload"]), (&json!("q"), &json!({"json": {"n": 1}})), "{task}");
    let (text, is_error) = call(&api, Role::Operator, "cancel_task", json!({"id": id})).await;
    assert!(!is_error, "{text}");
    let audit = api.get("/v1/audit").await.expect(200);
    let record = &audit["items"].as_array().unwrap()[0];
    assert_eq!(record["action"], "POST /v1/tasks/{id}/cancel", "{audit}");
    assert_eq!(record["object"], format!("/v1/tasks/{}/cancel", id.as_str().unwrap()), "{audit}");
    assert!(record["name"].as_str().unwrap().starts_with("operator"), "{audit}");
}

async fn a_repeated_call_with_a_key_has_no_second_effect(api: Api) {
    let api = with_writes(&api).await;
    let new = || json!({"kind": "k", "idempotency_key": "once"});
    let first = read(&api, Role::Operator, "submit_task", new()).await;
    let second = read(&api, Role::Operator, "submit_task", new()).await;
    assert_eq!(first["id"], second["id"]);
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"].as_array().unwrap().len(), 1);
}

async fn a_refusal_is_a_result_that_names_the_remedy(api: Api) {
    for (tool, arguments, part) in [
        ("show_task", json!({"id": "99"}), "not_found: "),
        ("show_task", json!({}), "`id` is missing"),
        ("show_task", json!({"id": "1", "all": true}), "`all` is no argument"),
        ("list_tasks", json!({"limit": 1001}), "1 to 1000"),
        ("list_tasks", json!({"kind": "a\u{0}b"}), "NUL"),
    ] {
        let (text, is_error) = call(&api, Role::Viewer, tool, arguments).await;
        assert!(is_error && text.contains(part), "{tool}: {text}");
    }
    let unknown = request(&api, Role::Viewer, "tools/call", json!({"name": "drop_all"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(request(&api, Role::Viewer, "prompts/list", json!({})).await["error"]["code"], -32601);
}

async fn messages_that_are_none_are_refused(api: Api) {
    for body in ["", "{", "[]", r#"{"id":1,"method":"ping"}"#] {
        let request = Request::new("POST", "/mcp").key(api.key(Role::Viewer)).body(body);
        api.send(request).await.expect_problem(400, "malformed");
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let old = Request::new("POST", "/mcp").key(api.key(Role::Viewer)).header("mcp-protocol-version", "1999-01-01");
    api.send(old.json(&ping)).await.expect_problem(400, "malformed");
    let foreign = Request::new("POST", "/mcp").key(api.key(Role::Viewer)).header("origin", "https://evil.example");
    api.send(foreign.json(&ping)).await.expect_problem(403, "origin_refused");
}

async fn results_are_bounded(api: Api) {
    let tasks: Vec<_> = (0..200).map(|_| json!({"kind": "k", "tags": {"t": "x".repeat(100)}})).collect();
    api.post("/v1/tasks:batch", json!({ "tasks": tasks })).await.expect(201);
    let (text, is_error) = call(&api, Role::Viewer, "list_tasks", json!({"limit": 1000})).await;
    assert!(!is_error && text.contains("more bytes are left out"), "{text}");
    assert!(text.len() < bounds::MCP_RESULT_BYTES + 200, "{}", text.len());
}

async fn the_user_of_a_process_calls_tools_without_http(api: Api) {
    let id = api.submit("mail").await;
    let message = json!({
        "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "show_task", "arguments": {"id": id}},
    });
    let reply = api.server.reply_to_mcp(message.to_string().as_bytes(), Role::Viewer).await.unwrap();
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains("mail"), "{reply}");
    assert_eq!(api.server.reply_to_mcp(br#"{"jsonrpc":"2.0","method":"x"}"#, Role::Viewer).await, None);
}
