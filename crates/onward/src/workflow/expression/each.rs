//! Evaluation of macros: an expression for each element of a list.

use super::evaluate::{Evaluated, Evaluator};
use super::functions::Macro;
use super::pending::Pending;
use super::span::Span;
use super::syntax::Node;
use super::value::Value;

/// The elements over which a macro iterates.
type Items<'a> = Box<dyn Iterator<Item = Value> + 'a>;

impl Evaluator<'_> {
    /// Evaluates a macro. The elements of a map are its keys, as in CEL.
    pub(super) fn each(&mut self, each: Macro, value: &Value, body: &Node, span: Span) -> Evaluated {
        // The elements are read one by one: a copy would cost more than an evaluation that ends
        // early pays for.
        let items: Items<'_> = match value {
            Value::List(items) => Box::new(items.iter().cloned()),
            Value::Map(map) => Box::new(map.keys().cloned().map(Value::Text)),
            _ => {
                let message = format!("`{}` takes a list, and this is {}", each.as_str(), value.with_article());
                return Err(self.failed(message, span));
            }
        };
        match each {
            Macro::All => self.decide(items, body, false),
            Macro::Exists => self.decide(items, body, true),
            Macro::ExistsOne => self.exists_one(items, body),
            Macro::Map => self.map_each(items, body, span),
            Macro::Filter => self.filter(items, body, span),
        }
    }

    /// Evaluates the body with one element as the variable.
    fn with(&mut self, item: Value, body: &Node) -> Evaluated {
        self.meter.charge(1).map_err(|exhausted| self.failed(exhausted, body.span))?;
        self.variables.push(item);
        let value = self.value(body);
        self.variables.pop();
        value
    }

    fn test(&mut self, item: Value, body: &Node) -> Result<bool, super::error::Unfinished> {
        let value = self.with(item, body)?;
        self.bool(&value, "the condition of an element", body.span)
    }

    /// Joins the conditions as `&&` and `||` do: one that decides is enough.
    fn decide(&mut self, items: Items<'_>, body: &Node, decisive: bool) -> Evaluated {
        let mut pending = Pending::default();
        for item in items {
            if pending.put_off(self.test(item, body))? == Some(decisive) {
                return Ok(Value::Bool(decisive));
            }
        }
        pending.end()?;
        Ok(Value::Bool(!decisive))
    }

    fn exists_one(&mut self, items: Items<'_>, body: &Node) -> Evaluated {
        let mut pending = Pending::default();
        let mut count = 0_usize;
        for item in items {
            count += usize::from(pending.take(self.test(item, body))?.unwrap_or_default());
        }
        pending.end()?;
        Ok(Value::Bool(count == 1))
    }

    fn map_each(&mut self, items: Items<'_>, body: &Node, span: Span) -> Evaluated {
        let mut pending = Pending::default();
        let mut made = Vec::new();
        for item in items {
            made.extend(pending.take(self.with(item, body))?);
        }
        pending.end()?;
        self.made_list(made, span)
    }

    fn filter(&mut self, items: Items<'_>, body: &Node, span: Span) -> Evaluated {
        let mut pending = Pending::default();
        let mut made = Vec::new();
        for item in items {
            if pending.take(self.test(item.clone(), body))? == Some(true) {
                made.push(item);
            }
        }
        pending.end()?;
        self.made_list(made, span)
    }
}
