//! Numbers: comparison by value, arithmetic without silent overflow, and texts.

use std::cmp::Ordering;

use super::syntax::Operator;
use super::value::Value;

/// Compares two numbers by value, regardless of their types. Returns `None` if one is not a number.
pub(super) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), right) => Some(compare_integer(integer(right)?, *left)?.reverse()),
        (left, Value::Double(right)) => compare_integer(integer(left)?, *right),
        (left, right) => Some(integer(left)?.cmp(&integer(right)?)),
    }
}

/// Returns the number of an int or a uint.
pub(super) fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// Compares without rounding: a double above 2^53 is not every integer near it.
#[expect(clippy::cast_possible_truncation, reason = "the bounds were compared before")]
fn compare_integer(integer: i128, double: f64) -> Option<Ordering> {
    /// 2^64: above every uint.
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    if double.is_nan() {
        return None;
    }
    if double >= ABOVE {
        return Some(Ordering::Less);
    }
    if double < -ABOVE {
        return Some(Ordering::Greater);
    }
    let whole = double.trunc();
    let fraction = 0.0_f64.partial_cmp(&(double - whole))?;
    Some(integer.cmp(&(whole as i128)).then(fraction))
}

/// Computes two numbers. Integers of one type stay of that type, and a double makes all double.
///
/// # Errors
/// If a type does not fit, or the result is beyond its type.
pub(super) fn compute(operator: Operator, left: &Value, right: &Value) -> Result<Value, String> {
    let beyond = |name: &str| {
        let (left, right) = (super::shown::Described(left), super::shown::Described(right));
        format!("{left} {} {right} is beyond {name}", operator.as_str())
    };
    let computed = match (left, right) {
        (Value::Int(_) | Value::Uint(_), Value::Int(0) | Value::Uint(0)) if operator.divides() => {
            return Err(format!("{} {} 0: a division by zero", super::shown::Described(left), operator.as_str()));
        }
        (Value::Int(left), Value::Int(right)) => ints(operator, *left, *right).map(Value::Int),
        (Value::Uint(left), Value::Uint(right)) => uints(operator, *left, *right).map(Value::Uint),
        _ => return compute_doubles(operator, left, right).and_then(|made| made.ok_or_else(|| beyond("a double"))),
    };
    computed.ok_or_else(|| beyond(if matches!(left, Value::Int(_)) { "an int (64 bits)" } else { "a uint" }))
}

fn ints(operator: Operator, left: i64, right: i64) -> Option<i64> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    }
}

fn uints(operator: Operator, left: u64, right: u64) -> Option<u64> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    }
}

/// Computes two numbers of which one is a double. Returns `None` if the result is not finite.
fn compute_doubles(operator: Operator, left: &Value, right: &Value) -> Result<Option<Value>, String> {
    let mixed = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    let (Some(first), Some(second), true) = (as_double(left), as_double(right), mixed) else {
        return Err(mismatch(operator, left, right));
    };
    let made = match operator {
        Operator::Add => first + second,
        Operator::Subtract => first - second,
        Operator::Multiply => first * second,
        Operator::Divide if second == 0.0 => {
            return Err(format!("{} / 0: a division by zero", super::shown::Described(left)));
        }
        Operator::Divide => first / second,
        Operator::Remainder => return Err("`%` needs integers, and there is a double; use int(…)".into()),
    };
    Ok(made.is_finite().then_some(Value::Double(made)))
}

/// Returns a number as a double. Integers above 2^53 are rounded.
#[expect(clippy::cast_precision_loss, reason = "arithmetic with a double is arithmetic of doubles")]
pub(super) fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

/// Returns the error of an operator that does not take the types of its sides.
pub(super) fn mismatch(operator: Operator, left: &Value, right: &Value) -> String {
    let remedy = match (left, right) {
        (Value::Int(_), Value::Uint(_)) | (Value::Uint(_), Value::Int(_)) => {
            "; make both one type by int(…) or uint(…)"
        }
        (Value::Text(_), Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_))
        | (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_), Value::Text(_))
            if operator == Operator::Add =>
        {
            "; make a text by string(…)"
        }
        _ => "",
    };
    format!("`{}` does not take {} and {}{remedy}", operator.as_str(), left.with_article(), right.with_article())
}

/// Returns the int of a double without its fraction, if it is in the range. The lowest int is not,
/// since its double may stand for a lower number that was rounded.
#[expect(clippy::cast_possible_truncation, reason = "the bounds were compared before")]
pub(super) fn truncate_to_int(double: f64) -> Option<i64> {
    /// 2^63: above every int, and exactly a double.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    (double > -ABOVE && double < ABOVE).then_some(double as i64)
}

/// Returns the uint of a double without its fraction, if it is in the range.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bounds were compared before")]
pub(super) fn truncate_to_uint(double: f64) -> Option<u64> {
    /// 2^64: above every uint, and exactly a double.
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    (0.0..ABOVE).contains(&double.trunc()).then_some(double as u64)
}

/// Returns a double as a text: as in JSON, and without `.0`, because JSON writers produce both 100
/// and 100.0.
pub(super) fn double_text(double: f64) -> String {
    let text = serde_json::Number::from_f64(double).map_or_else(|| double.to_string(), |number| number.to_string());
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
