//! Equality and order of values.

use std::cmp::Ordering;

use super::budget::{Exhausted, Meter};
use super::number;
use super::value::{Map, Value};

/// Returns true if two values are equal: numbers by value, other values by type and value.
pub(super) fn equal(left: &Value, right: &Value, meter: &mut Meter<'_>) -> Result<bool, Exhausted> {
    meter.charge(1)?;
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            meter.charge_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Value::List(left), Value::List(right)) if left.len() == right.len() => {
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(left, right, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(left), Value::Map(right)) if left.len() == right.len() => equal_maps(left, right, meter),
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => Ok(false),
        _ => Ok(number::compare(left, right).map_or_else(|| left == right, Ordering::is_eq)),
    }
}

/// Compares entry by entry: both maps have the order of their keys.
fn equal_maps(left: &Map, right: &Map, meter: &mut Meter<'_>) -> Result<bool, Exhausted> {
    for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
        meter.charge_text(left_key.len().min(right_key.len()))?;
        if left_key != right_key || !equal(left, right, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two values that have an order. Returns `None` if they have none.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        _ => number::compare(left, right),
    }
}
