//! Evaluation of methods.

use std::sync::Arc;

use super::budget::Exhausted;
use super::evaluate::{Evaluator, Fault};
use super::functions::Method;
use super::pattern::{Pattern, SearchFault};
use super::value::{List, Value};

impl From<SearchFault> for Fault {
    fn from(fault: SearchFault) -> Self {
        match fault {
            SearchFault::Exhausted => Self::Exhausted,
            SearchFault::Pattern(message) => Self::Message(message),
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn method(&mut self, method: Method, value: &Value, arguments: &[Value]) -> Result<Value, Fault> {
        match (method, value) {
            (Method::Size, _) => self.size(value),
            (Method::Join, Value::List(items)) => {
                let separator = arguments.first().map_or(Ok(""), |argument| text_argument(method, argument))?;
                self.join(items, separator)
            }
            (Method::Join, _) => {
                Err(format!("`join` takes a list of texts, and this is {}", value.with_article()).into())
            }
            (_, Value::Text(text)) => {
                let arguments: Result<Vec<&str>, Fault> =
                    arguments.iter().map(|argument| text_argument(method, argument)).collect();
                self.text_method(method, text, &arguments?)
            }
            _ => Err(format!("`{}` takes a text, and this is {}", method.as_str(), value.with_article()).into()),
        }
    }

    fn text_method(&mut self, method: Method, text: &Arc<str>, arguments: &[&str]) -> Result<Value, Fault> {
        self.meter.charge_text(text.len())?;
        match (method, arguments) {
            (Method::StartsWith, [start]) => Ok(Value::Bool(text.starts_with(start))),
            (Method::EndsWith, [end]) => Ok(Value::Bool(text.ends_with(end))),
            (Method::Contains, [part]) => Ok(Value::Bool(text.contains(part))),
            (Method::Matches, [pattern]) => {
                self.meter.charge_elements(pattern.len())?;
                let pattern = Pattern::read(pattern)?;
                Ok(Value::Bool(pattern.is_in(text, &mut None, &mut self.meter)?))
            }
            (Method::LowerAscii, []) => Ok(Value::from(text.to_ascii_lowercase())),
            (Method::UpperAscii, []) => Ok(Value::from(text.to_ascii_uppercase())),
            (Method::Trim, []) => Ok(Value::from(text.trim())),
            (Method::Split, [separator]) => self.split(text, separator),
            (Method::Replace, [old, new]) => self.replace(text, old, new),
            _ => Err(format!("`{}` takes other arguments", method.as_str()).into()),
        }
    }

    /// Searches a text for a constant pattern of the expression.
    pub(super) fn matches(&mut self, value: &Value, number: usize) -> Result<Value, Fault> {
        let Value::Text(text) = value else {
            return Err(format!("`matches` takes a text, and this is {}", value.with_article()).into());
        };
        match (self.code.patterns.get(number), self.built.get_mut(number)) {
            (Some(pattern), Some(built)) => Ok(Value::Bool(pattern.is_in(text, built, &mut self.meter)?)),
            _ => Err("the expression has no such pattern".to_owned().into()),
        }
    }

    /// Splits a text. Without a separator, it is split into its characters.
    fn split(&mut self, text: &str, separator: &str) -> Result<Value, Fault> {
        let meter = &mut self.meter;
        let mut paid = |part: &str| {
            meter.charge(1)?;
            Ok(Value::from(part))
        };
        let parts: Result<List, Exhausted> = if separator.is_empty() {
            text.char_indices().map(|(at, character)| paid(&text[at..at + character.len_utf8()])).collect()
        } else {
            text.split(separator).map(&mut paid).collect()
        };
        Ok(Value::List(parts?))
    }

    fn join(&mut self, items: &List, separator: &str) -> Result<Value, Fault> {
        self.meter.charge_elements(items.len())?;
        let texts: Option<Vec<&str>> = items.iter().map(Value::as_text).collect();
        let texts = texts.ok_or_else(|| "`join` takes a list of texts; make them by x.map(y, string(y))".to_owned())?;
        // The list may contain one text many times, so the result is paid for before it is built.
        let bytes = texts.iter().map(|text| text.len().saturating_add(separator.len()));
        self.meter.charge_text(bytes.fold(0, usize::saturating_add))?;
        Ok(Value::from(texts.join(separator)))
    }

    fn replace(&mut self, text: &str, old: &str, new: &str) -> Result<Value, Fault> {
        let bytes = text.matches(old).count().saturating_mul(new.len()).saturating_add(text.len());
        self.meter.charge_text(bytes)?;
        Ok(Value::from(text.replace(old, new)))
    }
}

fn text_argument(method: Method, argument: &Value) -> Result<&str, Fault> {
    let message = || format!("`{}` takes a text, and its argument is {}", method.as_str(), argument.with_article());
    argument.as_text().ok_or_else(|| message().into())
}
