//! The canonical form of a template, from which its hash is computed.

use std::fmt;
use std::str::FromStr;

use onward_store::text::Shown;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::yaml::{Entry, Node, Value};
use crate::error::{Error, Result};

/// The SHA-256 of a template's canonical form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplateHash([u8; 32]);

/// The number of hexadecimal digits in the label of a template without `version`.
const LABEL_DIGITS: usize = 12;

impl TemplateHash {
    /// Makes the hash of a canonical form.
    #[must_use]
    pub fn of(canonical: &str) -> Self {
        Self(Sha256::digest(canonical.as_bytes()).into())
    }

    /// Returns the bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the label of a template without `version`: the first 12 digits.
    #[must_use]
    pub fn label(&self) -> String {
        self.to_string().chars().take(LABEL_DIGITS).collect()
    }
}

impl fmt::Display for TemplateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TemplateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TemplateHash {
    type Err = Error;

    /// Reads 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16)?.try_into().ok()).collect();
        let bytes: Option<Vec<u8>> = digits
            .map(|digits| digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect());
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) if text.len() == 64 => Ok(Self(bytes)),
            _ => Err(Error::invalid(format!(
                "`{}` is no hash of a template; it has 64 hexadecimal digits",
                Shown(&text.chars().take(80).collect::<String>())
            ))),
        }
    }
}

impl Serialize for TemplateHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TemplateHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Writes a template as JSON with sorted keys and without white space.
pub(super) fn write(root: &Node) -> String {
    let mut json = String::new();
    value(root, &mut json);
    json
}

fn value(node: &Node, json: &mut String) {
    match &node.value {
        Value::Null | Value::Broken => json.push_str("null"),
        Value::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => json.push_str(&number.to_string()),
        Value::Text(content) => text(content, json),
        Value::List(items) => list('[', items.iter(), ']', json, value),
        Value::Map(entries) => {
            let mut sorted: Vec<&Entry> = entries.iter().collect();
            sorted.sort_by(|a, b| a.key.cmp(&b.key));
            list('{', sorted, '}', json, |entry, json| {
                text(&entry.key, json);
                json.push(':');
                value(&entry.value, json);
            });
        }
    }
}

fn list<T>(
    open: char,
    items: impl IntoIterator<Item = T>,
    close: char,
    json: &mut String,
    write: impl Fn(T, &mut String),
) {
    json.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write(item, json);
    }
    json.push(close);
}

/// Writes a text in a form that JSON and YAML read in the same way.
fn text(content: &str, json: &mut String) {
    if content.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        json.push('"');
        json.push_str(content);
        return json.push('"');
    }
    let quoted = serde_json::Value::from(content).to_string();
    // JSON does not escape these characters. YAML takes some for line breaks and rejects others.
    for character in quoted.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => json.push(other),
        }
    }
}
