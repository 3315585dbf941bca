//! The type of a plain scalar: null, a boolean, a number or a text.

use std::sync::Arc;

use serde_json::Number;

use super::node::Value;

/// Returns the value of a scalar without quotes.
///
/// Types are those of YAML 1.2, so `yes` and `on` are texts. What people mean as a text is a text:
/// numbers with a leading zero, and with `_` in them.
///
/// # Errors
/// If it is a number that JSON does not have.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Value::Null),
        "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
        other if is_not_finite(other) => {
            Err(format!("`{other}` is no number in JSON; leave it out, or put it in quotes"))
        }
        other => number(other).unwrap_or_else(|| Ok(Value::Text(Arc::from(other)))),
    }
}

fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// Returns the number, if the text is written as one.
fn number(text: &str) -> Option<Result<Value, String>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if whole > 1 && unsigned.starts_with('0') {
        return None;
    }
    let rest = &unsigned[whole..];
    if whole > 0 && rest.is_empty() {
        return Some(integer(text));
    }
    is_fraction(whole, rest).then(|| float(text))
}

/// Returns true for a fraction, an exponent, or both: what may follow the digits before the point.
fn is_fraction(whole: usize, rest: &str) -> bool {
    let (digits, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("", rest),
    };
    let exponent = rest.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['-', '+']).unwrap_or(rest));
    let is_exponent = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (whole > 0 || !digits.is_empty()) && exponent.map_or(rest.is_empty(), is_exponent)
}

fn integer(text: &str) -> Result<Value, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let unsigned = digits.parse::<u64>().map(Number::from);
    let signed = || digits.parse::<i64>().map(Number::from);
    unsigned.or_else(|_| signed()).map(Value::Number).map_err(|_| {
        let text = super::super::errors::shown(text);
        format!("the number `{text}` does not fit into 64 bits; put it in quotes if it is a text")
    })
}

fn float(text: &str) -> Result<Value, String> {
    let number = text.parse().ok().and_then(Number::from_f64);
    number.map(Value::Number).ok_or_else(|| {
        let text = super::super::errors::shown(text);
        format!("the number `{text}` is too large; put it in quotes if it is a text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match plain(text) {
            Ok(Value::Null) => "null".into(),
            Ok(Value::Bool(value)) => value.to_string(),
            Ok(Value::Number(number)) => number.to_string(),
            Ok(Value::Text(text)) => format!("{text:?}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn yes_and_on_are_texts() {
        for text in ["yes", "no", "on", "off", "y", "n", "YES"] {
            assert_eq!(json(text), format!("{text:?}"));
        }
        assert_eq!((json("true"), json("FALSE"), json("~")), ("true".into(), "false".into(), "null".into()));
    }

    #[test]
    fn numbers_with_a_leading_zero_or_an_underscore_are_texts() {
        for text in
            ["007", "0x1F", "0o17", "1_000", "-01", "00.5", "1.2.3", "12:30", "1e", "e5", ".", "-", "+", "--1", "1-2"]
        {
            assert_eq!(json(text), format!("{text:?}"));
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        let written = ["0", "-0", "+5", "-17", "18446744073709551615", "1.50", "0.5", ".5", "5.", "1e3", "-2.5E-1"];
        let read = ["0", "0", "5", "-17", "18446744073709551615", "1.5", "0.5", "0.5", "5.0", "1000.0", "-0.25"];
        assert_eq!(written.map(json), read);
    }

    #[test]
    fn numbers_that_json_does_not_have_are_refused() {
        for text in ["18446744073709551616", "-9223372036854775809", "1e999", ".inf", "-.INF", ".nan"] {
            assert!(json(text).starts_with("error"), "{text}");
        }
    }
}
