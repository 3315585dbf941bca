//! A tool and its arguments.

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// A tool: a route whose parts have names.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) method: &'static str,
    /// The pattern of the path.
    pub(super) path: &'static str,
    /// True if it changes something.
    pub(super) writes: bool,
    pub(super) arguments: &'static [Argument],
}

/// An argument of a tool.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) form: Form,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

/// The part of the request that an argument becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A part of the path.
    Path,
    /// A parameter of the query.
    Query,
    /// A field of the body.
    Field,
    /// The body, as JSON.
    Body,
    /// The body, as YAML.
    Yaml,
    /// The header `Idempotency-Key`.
    Key,
}

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Whole,
    Any,
}

/// The parts of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) address: String,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Tool {
    /// Returns the tool as a client lists it.
    pub(super) fn listing(&self) -> Value {
        let schema = |argument: &Argument| {
            let mut schema = json!({"description": argument.description});
            match argument.form {
                Form::Text => schema["type"] = json!("string"),
                Form::Whole => schema["type"] = json!("integer"),
                Form::Any => {}
            }
            (argument.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.arguments.iter().map(schema).collect();
        let required: Vec<_> = self.arguments.iter().filter(|it| it.is_required).map(|it| it.name).collect();
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": !self.writes, "openWorldHint": false},
        })
    }

    /// Returns the request of a call.
    ///
    /// # Errors
    /// The fault and its remedy, if the arguments are not those of the tool.
    pub(super) fn request(&self, mut given: Map<String, Value>) -> Result<Parts, String> {
        let (mut address, mut parameters, mut headers) = (self.path.to_owned(), Vec::new(), HeaderMap::new());
        let mut query = form_urlencoded::Serializer::new(String::new());
        let (mut fields, mut body) = (Map::new(), None);
        for argument in self.arguments {
            let Some(value) = given.remove(argument.name).filter(|it| argument.form == Form::Any || !it.is_null())
            else {
                if argument.is_required {
                    return Err(format!("`{}` is missing; it is {}", argument.name, argument.description));
                }
                continue;
            };
            match argument.place {
                Place::Field => drop(fields.insert(argument.name.to_owned(), argument.checked(value)?)),
                Place::Body => {
                    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    body = Some(value.to_string());
                }
                Place::Yaml => {
                    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
                    body = Some(argument.text(value)?);
                }
                Place::Query => drop(query.append_pair(argument.name, &argument.text(value)?)),
                Place::Key => {
                    let key = HeaderValue::from_str(&argument.text(value)?);
                    headers.insert("idempotency-key", key.map_err(|_| argument.fault("visible ASCII characters"))?);
                }
                Place::Path => {
                    let text = argument.text(value)?;
                    address = address.replace(&format!("{{{}}}", argument.name), &encoded(&text));
                    parameters.push((argument.name.to_owned(), text));
                }
            }
        }
        if let Some(unknown) = given.keys().next() {
            let known: Vec<_> = self.arguments.iter().map(|it| it.name).collect();
            return Err(format!("`{unknown}` is no argument of {}; it takes {}", self.name, known.join(", ")));
        }
        if !fields.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body = Some(Value::Object(fields).to_string());
        }
        let query = query.finish();
        if !query.is_empty() {
            address = format!("{address}?{query}");
        }
        Ok(Parts { address, parameters, headers, body: body.unwrap_or_default().into() })
    }
}

impl Argument {
    /// Returns a value of the right form.
    fn checked(&self, value: Value) -> Result<Value, String> {
        match self.form {
            Form::Any => Ok(value),
            Form::Text if value.is_string() => Ok(value),
            Form::Whole if value.is_i64() || value.is_u64() => Ok(value),
            Form::Text => Err(self.fault("a text")),
            Form::Whole => Err(self.fault("a whole number")),
        }
    }

    fn text(&self, value: Value) -> Result<String, String> {
        match self.checked(value)? {
            Value::String(text) => Ok(text),
            value => Ok(value.to_string()),
        }
    }

    fn fault(&self, form: &str) -> String {
        format!("`{}` has another form; write it as {form}: {}", self.name, self.description)
    }
}

/// Returns a text as a part of a path.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Tool = Tool {
        name: "move",
        description: "",
        method: "POST",
        path: "/v1/things/{id}/move",
        writes: true,
        arguments: &[
            Argument { name: "id", place: Place::Path, form: Form::Text, is_required: true, description: "the id" },
            Argument { name: "limit", place: Place::Query, form: Form::Whole, is_required: false, description: "" },
            Argument { name: "to", place: Place::Field, form: Form::Text, is_required: false, description: "" },
        ],
    };

    fn request(arguments: Value) -> Result<Parts, String> {
        match arguments {
            Value::Object(arguments) => TOOL.request(arguments),
            _ => panic!("no object"),
        }
    }

    #[test]
    fn arguments_become_parts_of_the_request() {
        let parts = request(json!({"id": "a/../b?c", "limit": 5, "to": "x"})).expect("it is right");
        assert_eq!(parts.address, "/v1/things/a%2F..%2Fb%3Fc/move?limit=5");
        assert_eq!(parts.parameters, [("id".to_owned(), "a/../b?c".to_owned())]);
        assert_eq!(parts.body, r#"{"to":"x"}"#);
        let parts = request(json!({"id": "1", "limit": null})).expect("it is right");
        assert_eq!((parts.address.as_str(), parts.body.len()), ("/v1/things/1/move", 0));
    }

    #[test]
    fn wrong_arguments_are_named() {
        assert!(request(json!({})).unwrap_err().contains("`id` is missing"));
        assert!(request(json!({"id": 1})).unwrap_err().contains("`id` has another form"));
        assert!(request(json!({"id": "1", "limit": 1.5})).unwrap_err().contains("a whole number"));
        assert!(request(json!({"id": "1", "too": 1})).unwrap_err().contains("`too` is no argument of move"));
    }
}
