//! An entry for fuzzers: it checks properties that hold for every text.

use std::ops::Range;

use super::bounds::{EXPRESSION_OPERATIONS, EXPRESSION_RESULT};
use super::budget::Budget;
use super::compiled::Expression;
use super::error::{ExpressionError, Unfinished};
use super::names::{Root, StepField};
use super::scope::{Lookup, Scope};
use super::text_template::TextTemplate;
use super::value::Value;

/// Parses and evaluates any text, as an expression and as a text that may hold some.
///
/// # Panics
/// If an error points outside the text or inside a character, or a bound does not hold.
#[doc(hidden)]
pub fn exercise(source: &str) {
    let budget = &mut Budget::default();
    match Expression::parse(source) {
        Ok(expression) => {
            expression.names().iter().for_each(|name| check_span(&name.span, source));
            check_evaluation(expression.evaluate(&Known, budget), budget, source);
        }
        Err(error) => check_error(&error, source),
    }
    let budget = &mut Budget::new(EXPRESSION_OPERATIONS);
    match TextTemplate::parse(source) {
        Ok(text) => check_evaluation(text.evaluate(&Known, budget), budget, source),
        Err(error) => check_error(&error, source),
    }
}

fn check_error(error: &ExpressionError, source: &str) {
    check_span(&error.span, source);
    assert!(!error.to_string().is_empty());
}

fn check_evaluation(value: Result<Value, Unfinished>, budget: &Budget, source: &str) {
    match value {
        Ok(value) => {
            let text = serde_json::to_string(&value);
            assert!(text.is_ok_and(|text| text.len() <= EXPRESSION_RESULT), "{source:?}");
        }
        Err(Unfinished::Failed(error)) => check_span(&error.span, source),
        Err(Unfinished::Needs(needed)) => assert!(!needed.is_empty(), "{source:?}"),
    }
    assert!(budget.left() <= Budget::default().left());
}

fn check_span(span: &Range<usize>, source: &str) {
    assert!(source.get(span.clone()).is_some(), "{span:?} is no part of {source:?}");
}

/// Some values of every type.
struct Known;

impl Scope for Known {
    fn root(&self, root: Root) -> Option<Value> {
        match root {
            Root::Input => serde_json::from_str(INPUT).ok(),
            Root::Index => Some(Value::Int(3)),
            Root::Item => Some(Value::from("x")),
            Root::Vars | Root::Run | Root::Steps => None,
        }
    }

    fn step(&self, step: &str, field: StepField) -> Lookup {
        match (step, field) {
            ("a", StepField::Result) => Lookup::Found(Value::from("done")),
            ("b", StepField::Result) => Lookup::NotRead,
            (_, StepField::State) => Lookup::Found(Value::from("completed")),
            _ => Lookup::Absent,
        }
    }
}

const INPUT: &str =
    r#"{"n": 5, "big": 18446744073709551615, "x": 1.5, "s": "text", "l": [1, 2.0, "3"], "m": {"k": null}}"#;
