//! The replies to messages of a client.

use serde_json::{Map, Value, json};

use super::invoke::Caller;
use super::message::{Failure, Message, read};
use crate::http::problem::Problem;

/// The versions of the protocol, the newest first.
pub(crate) const PROTOCOLS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Onward runs durable tasks and workflows. Begin with `overview`. `explain_task` states why a \
                            task waits or how it ended. Ids are decimal strings; lists have a cursor in `next`.";

/// Replies to a message. Returns `None` for a message without a reply.
pub(crate) async fn reply_to(caller: &Caller, message: &[u8]) -> Option<Value> {
    let (id, method, parameters) = match read(message) {
        Ok(Message::Request { id, method, parameters }) => (id, method, parameters),
        Ok(Message::Other) => return None,
        Err(failure) => return Some(failure.reply(&Value::Null)),
    };
    let result = match method.as_str() {
        "initialize" => Ok(initialize(&parameters)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": caller.tools().map(super::tool::Tool::listing).collect::<Vec<_>>()})),
        "tools/call" => call(caller, parameters).await,
        _ => Err(Failure::unknown_method(&method)),
    };
    Some(match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(failure) => failure.reply(&id),
    })
}

/// Agrees on a version: that of the client if it is known, or else the newest.
fn initialize(parameters: &Map<String, Value>) -> Value {
    let wanted = parameters.get("protocolVersion").and_then(Value::as_str);
    let version = PROTOCOLS.into_iter().find(|it| Some(*it) == wanted).unwrap_or(PROTOCOLS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "onward", "version": env!("CARGO_PKG_VERSION")},
        "instructions": INSTRUCTIONS,
    })
}

async fn call(caller: &Caller, mut parameters: Map<String, Value>) -> Result<Value, Failure> {
    let Some(Value::String(name)) = parameters.remove("name") else {
        return Err(Failure::wrong_parameters("`name` is missing; give the name of a tool"));
    };
    let given = match parameters.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(Failure::wrong_parameters("`arguments` is no object")),
    };
    match caller.invoke(&name, given).await {
        None => Err(Failure::wrong_parameters(format!("there is no tool `{name}`; tools/list has the names"))),
        Some(Ok(text)) => Ok(result(&text, false)),
        // A refusal is a result, so that the model can read it and try something else.
        Some(Err(problem)) => Ok(result(&refusal(&problem), true)),
    }
}

fn result(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

fn refusal(problem: &Problem) -> String {
    format!("{}: {}; {}", problem.code.as_str(), problem.detail(), problem.remedy())
}
