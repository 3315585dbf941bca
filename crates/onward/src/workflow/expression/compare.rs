//! Equality and order of values.

use std::cmp::Ordering;

use super::budget::{Exhausted, Meter};
use super::number;
use super::value::Value;

/// Returns whether two values are equal: numbers by value, all else by type and value.
pub(super) fn equal(left: &Value, right: &Value, meter: &mut Meter<'_>) -> Result<bool, Exhausted> {
    meter.charge(1)?;
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            meter.charge_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Value::List(left), Value::List(right)) if left.len() == right.len() => {
            all_equal(left.iter().zip(right.iter()), meter)
        }
        (Value::Map(left), Value::Map(right)) if left.len() == right.len() => {
            let same_keys = left.keys().eq(right.keys());
            Ok(same_keys && all_equal(left.values().zip(right.values()), meter)?)
        }
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => Ok(false),
        _ => Ok(number::compare(left, right).map_or_else(|| left == right, Ordering::is_eq)),
    }
}

fn all_equal<'a>(
    pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
    meter: &mut Meter<'_>,
) -> Result<bool, Exhausted> {
    for (left, right) in pairs {
        if !equal(left, right, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two values that have an order. Returns nothing if they have none.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        _ => number::compare(left, right),
    }
}
