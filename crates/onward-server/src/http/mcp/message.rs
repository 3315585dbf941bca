//! Messages of JSON-RPC 2.0.

use serde_json::{Map, Value, json};

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        parameters: Map<String, Value>,
    },
    /// A notification, or a reply to a request that this server never sends. Neither has a reply.
    Other,
}

/// An error of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    code: i32,
    text: String,
}

impl Failure {
    fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("the method `{method}` is not known; tools/list and tools/call are"))
    }

    pub(super) fn wrong_parameters(text: impl Into<String>) -> Self {
        Self::new(-32602, text)
    }

    /// Returns the reply to a request; `id` is null if the request could not be read.
    pub(super) fn reply(&self, id: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": self.code, "message": self.text}})
    }
}

/// Reads a message.
pub(super) fn read(bytes: &[u8]) -> Result<Message, Failure> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Failure::new(-32700, format!("the message is no JSON: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(Failure::new(-32600, "the message is no object; send one message at a time"));
    };
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(Failure::new(-32600, "the message is none of JSON-RPC 2.0; set `jsonrpc` to \"2.0\""));
    }
    let Some(method) = fields.get("method") else { return Ok(Message::Other) };
    let Some(method) = method.as_str().map(str::to_owned) else {
        return Err(Failure::new(-32600, "the method is no text"));
    };
    let id = match fields.remove("id") {
        None => return Ok(Message::Other),
        Some(id @ (Value::String(_) | Value::Number(_))) => id,
        Some(_) => return Err(Failure::new(-32600, "the id is neither a text nor a number")),
    };
    match fields.remove("params") {
        None => Ok(Message::Request { id, method, parameters: Map::new() }),
        Some(Value::Object(parameters)) => Ok(Message::Request { id, method, parameters }),
        Some(_) => Err(Failure::new(-32600, "the parameters are no object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_other_messages_are_distinguished() {
        let ping = read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(ping, Ok(Message::Request { id: json!(1), method: "ping".to_owned(), parameters: Map::new() }));
        for other in
            [r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
        {
            assert_eq!(read(other.as_bytes()), Ok(Message::Other), "{other}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (text, code) in [
            ("", -32700),
            ("{", -32700),
            ("[]", -32600),
            ("7", -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32600),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().code, code, "{text}");
        }
    }
}
