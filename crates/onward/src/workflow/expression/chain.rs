//! Evaluation of accesses to a value: fields, elements, methods.

use super::bounds::FIELDS_NAMED;
use super::evaluate::{Evaluated, Evaluator, Fault};
use super::number::{integer, truncate_to_int};
use super::shown::{Described, Excerpt};
use super::span::Span;
use super::syntax::{Link, LinkKind, Node};
use super::value::{Map, Value};

impl Evaluator<'_> {
    pub(super) fn chain(&mut self, base: &Node, links: &[Link]) -> Evaluated {
        let mut value = self.value(base)?;
        let mut read = base.span;
        for link in links {
            self.meter.charge(1).map_err(|exhausted| self.failed(exhausted, link.span))?;
            value = self.link(&value, link, read)?;
            read = read.to(link.span.end);
        }
        Ok(value)
    }

    /// Reads a part of a value, whose own expression is at `read`.
    fn link(&mut self, value: &Value, link: &Link, read: Span) -> Evaluated {
        let span = link.span;
        match &link.kind {
            LinkKind::Field(name) => self.field(value, name, read).map_err(|fault| self.failed(fault, span)),
            LinkKind::Index(index) => {
                let index = self.value(index)?;
                self.element(value, &index, read).map_err(|fault| self.failed(fault, span))
            }
            LinkKind::Call(method, arguments) => {
                let arguments = self.values(arguments)?;
                let made = self.method(*method, value, &arguments).map_err(|fault| self.failed(fault, span))?;
                self.made(made, span)
            }
            LinkKind::Matches(number) => self.matches(value, *number).map_err(|fault| self.failed(fault, span)),
            LinkKind::Each(each, body) => self.each(*each, value, body, span),
        }
    }

    fn field(&self, value: &Value, name: &str, read: Span) -> Result<Value, Fault> {
        let Value::Map(map) = value else {
            let container = self.code.text_of(read);
            let name = Excerpt(name);
            return Err(format!("{container} is {}, which has no field `{name}`", value.with_article()).into());
        };
        map.get(name).cloned().ok_or_else(|| {
            let message = missing(name, map, &self.code.text_of(read));
            Fault::Missing(message, name.into(), map.clone())
        })
    }

    fn element(&mut self, value: &Value, index: &Value, read: Span) -> Result<Value, Fault> {
        match (value, index) {
            (Value::Map(_), Value::Text(name)) => {
                self.meter.charge_text(name.len())?;
                self.field(value, name, read)
            }
            (Value::List(items), _) => {
                let Some(position) = position(index) else {
                    return Err(format!("an index has to be an int, and this is {}", Described(index)).into());
                };
                let item = usize::try_from(position).ok().and_then(|position| items.get(position));
                item.cloned().ok_or_else(|| {
                    let (container, count) = (self.code.text_of(read), items.len());
                    format!("no element {position} in {container}; it has {count}, counted from 0").into()
                })
            }
            (Value::Map(_), _) => Err(format!("a key has to be a text, and this is {}", Described(index)).into()),
            _ => {
                let container = self.code.text_of(read);
                Err(format!("{container} is {}, which has no elements", value.with_article()).into())
            }
        }
    }
}

/// Returns the number of an index. A double without a fraction is an index too, because JSON
/// writers produce both 1 and 1.0.
fn position(index: &Value) -> Option<i128> {
    match index {
        Value::Double(number) if number.fract() == 0.0 => truncate_to_int(*number).map(i128::from),
        _ => integer(index),
    }
}

/// Returns the error of a field that is not there. It names some of those that are.
fn missing(name: &str, map: &Map, container: &str) -> String {
    let shown = Excerpt(name);
    if map.is_empty() {
        return format!("no field `{shown}` in {container}, which is empty");
    }
    let names: Vec<String> = map.keys().take(FIELDS_NAMED).map(|key| format!("`{}`", Excerpt(key))).collect();
    let more = map.len() - names.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("no field `{shown}` in {container}; there are {}{more}", names.join(", "))
}
