//! Evaluation of operators.

use std::cmp::Ordering;
use std::sync::Arc;

use super::compare::{equal, order};
use super::evaluate::{Evaluated, Evaluator, Fault};
use super::number;
use super::pending::Pending;
use super::shown::Described;
use super::span::Span;
use super::syntax::{Comparison, Node, Operator};
use super::timestamp::in_range;
use super::value::Value;

impl Evaluator<'_> {
    /// Evaluates `&&` or `||`. One operand that decides is enough, even if another one fails:
    /// `false && error` and `error && false` are both false.
    pub(super) fn junction(&mut self, operands: &[Node], what: &str, decisive: bool) -> Evaluated {
        let mut pending = Pending::default();
        for operand in operands {
            let value = self.value(operand).and_then(|value| self.bool(&value, what, operand.span));
            if pending.put_off(value)? == Some(decisive) {
                return Ok(Value::Bool(decisive));
            }
        }
        pending.end()?;
        Ok(Value::Bool(!decisive))
    }

    pub(super) fn not(&mut self, operand: &Node) -> Evaluated {
        let value = self.value(operand)?;
        Ok(Value::Bool(!self.bool(&value, "the operand of `!`", operand.span)?))
    }

    pub(super) fn negate(&mut self, operand: &Node, span: Span) -> Evaluated {
        let value = self.value(operand)?;
        let negated = match &value {
            Value::Int(number) => number.checked_neg().map(Value::Int),
            Value::Double(number) => Some(Value::Double(-number)),
            Value::Duration(duration) => duration.checked_neg().map(Value::Duration),
            _ => return Err(self.failed(format!("`-` does not take {}", value.with_article()), span)),
        };
        negated.ok_or_else(|| self.failed(format!("-({}) is beyond its type", Described(&value)), span))
    }

    pub(super) fn compare(&mut self, comparison: Comparison, left: &Node, right: &Node, span: Span) -> Evaluated {
        let (left, right) = self.pair(left, right)?;
        let compared = self.compared(comparison, &left, &right);
        compared.map(Value::Bool).map_err(|fault| self.failed(fault, span))
    }

    fn compared(&mut self, comparison: Comparison, left: &Value, right: &Value) -> Result<bool, Fault> {
        let accepts: fn(Ordering) -> bool = match comparison {
            Comparison::Equal => return Ok(equal(left, right, &mut self.meter)?),
            Comparison::Unequal => return Ok(!equal(left, right, &mut self.meter)?),
            Comparison::In => return self.is_in(left, right),
            Comparison::Less => Ordering::is_lt,
            Comparison::AtMost => Ordering::is_le,
            Comparison::Greater => Ordering::is_gt,
            Comparison::AtLeast => Ordering::is_ge,
        };
        if let (Value::Text(left), Value::Text(right)) = (left, right) {
            self.meter.charge_text(left.len().min(right.len()))?;
        }
        let (sign, one, other) = (comparison.as_str(), left.with_article(), right.with_article());
        order(left, right).map(accepts).ok_or_else(|| format!("`{sign}` does not compare {one} and {other}").into())
    }

    fn is_in(&mut self, value: &Value, container: &Value) -> Result<bool, Fault> {
        match (value, container) {
            (_, Value::List(items)) => {
                for item in items.iter() {
                    if equal(value, item, &mut self.meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::Text(key), Value::Map(map)) => {
                self.meter.charge_text(key.len())?;
                Ok(map.contains_key(key))
            }
            // In CEL these can be keys too, though of no map that comes from JSON.
            (Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Map(_)) => Ok(false),
            (_, Value::Map(_)) => Err(format!("a key has to be a text, and this is {}", value.with_article()).into()),
            (_, Value::Text(_)) => Err("`in` does not search a text; use x.contains('…')".to_owned().into()),
            _ => Err(format!("`in` needs a list or a map, and this is {}", container.with_article()).into()),
        }
    }

    pub(super) fn arithmetic(&mut self, first: &Node, rest: &[(Operator, Node)]) -> Evaluated {
        let start = first.span;
        let mut pending = Pending::default();
        let mut made = pending.take(self.value(first))?;
        for (operator, node) in rest {
            let value = pending.take(self.value(node))?;
            let (Some(left), Some(right)) = (&made, &value) else {
                made = None;
                continue;
            };
            let computed = self.computed(*operator, left, right);
            let computed = computed.map_err(|fault| self.failed(fault, start.to(node.span.end)));
            made = pending.take(computed)?;
        }
        pending.end()?;
        Ok(made.unwrap_or_default())
    }

    fn computed(&mut self, operator: Operator, left: &Value, right: &Value) -> Result<Value, Fault> {
        match (operator, left, right) {
            (Operator::Add, Value::Text(left), Value::Text(right)) => {
                self.meter.charge_text(left.len() + right.len())?;
                Ok(Value::Text(Arc::from([&**left, &**right].concat())))
            }
            (Operator::Add, Value::List(left), Value::List(right)) => {
                self.meter.charge_elements(left.len() + right.len())?;
                Ok(left.iter().chain(right.iter()).cloned().collect())
            }
            _ => computed_time(operator, left, right)
                .unwrap_or_else(|| number::compute(operator, left, right))
                .map_err(Fault::from),
        }
    }

    /// Evaluates two operands that are both needed.
    fn pair(&mut self, left: &Node, right: &Node) -> Result<(Value, Value), super::error::Unfinished> {
        let mut pending = Pending::default();
        let left = pending.take(self.value(left))?;
        let right = pending.take(self.value(right))?;
        pending.end()?;
        Ok((left.unwrap_or_default(), right.unwrap_or_default()))
    }
}

/// Computes moments and durations. Returns `None` for operands of other types.
fn computed_time(operator: Operator, left: &Value, right: &Value) -> Option<Result<Value, String>> {
    let made = match (operator, left, right) {
        (Operator::Add, Value::Timestamp(moment), Value::Duration(duration))
        | (Operator::Add, Value::Duration(duration), Value::Timestamp(moment)) => {
            moment.checked_add(*duration).ok().and_then(in_range)
        }
        (Operator::Subtract, Value::Timestamp(moment), Value::Duration(duration)) => {
            moment.checked_sub(*duration).ok().and_then(in_range)
        }
        (Operator::Subtract, Value::Timestamp(left), Value::Timestamp(right)) => {
            Some(Value::Duration(left.duration_since(*right)))
        }
        (Operator::Add, Value::Duration(left), Value::Duration(right)) => left.checked_add(*right).map(Value::Duration),
        (Operator::Subtract, Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        _ => return None,
    };
    Some(made.ok_or_else(|| format!("the {} is beyond the years 1 to 9999", kind(left, right))))
}

fn kind(left: &Value, right: &Value) -> &'static str {
    match (left, right) {
        (Value::Duration(_), Value::Duration(_)) => "duration",
        _ => "timestamp",
    }
}
