//! The types of fields.

use std::sync::Arc;

use onward_store::bounds::TAGS;

use super::super::bounds::DEPENDENCIES_OF_STEP;
use super::super::duration;
use super::super::errors::{Fault, shown};
use super::super::expressions::{Expression, ExpressionError, Reference, TextTemplate};
use super::super::fields::{Field, FieldType, Place};
use super::super::names;
use super::super::source::Span;
use super::super::yaml::{Entry, Node, Value, quoted, written};
use super::fields::Shape;
use super::uses::{MapContext, Use};
use super::{rules, schema};
use crate::workflow::nearest::nearest;

type Checked = Result<(), Fault>;

/// Checks the value of a field. Errors in its parts are reported for the parts.
pub(super) fn check(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext) -> Checked {
    let name = field.name;
    match field.kind {
        FieldType::Text => text(shape, name, node).map(drop),
        FieldType::TemplateName => named(text(shape, name, node)?, names::template, |text| {
            Some(format!("{name}: {}", names::like_template(text)))
        }),
        FieldType::StepName => named(text(shape, name, node)?, names::step, |_| None),
        FieldType::Name => named(text(shape, name, node)?, names::name, |_| None),
        FieldType::WorkflowReference => names::reference(text(shape, name, node)?).map(drop).map_err(Fault::new),
        FieldType::Script => script(shape, name, node),
        FieldType::Duration { zero } => duration(name, node, zero),
        FieldType::KeepFor if node.as_text() == Some("forever") => Ok(()),
        FieldType::KeepFor => duration(name, node, true),
        FieldType::Wait => wait(shape, field, node, at),
        FieldType::Integer { least, most } => integer(name, node, least, most),
        FieldType::Factor => factor(name, node),
        FieldType::Boolean => boolean(name, node),
        FieldType::Choice(words) => choice(shape, name, node, words),
        FieldType::Tolerate => tolerate(name, node),
        FieldType::Expression => expression(shape, field, node, at),
        FieldType::TextTemplate => {
            text(shape, name, node)?;
            templates(shape, field, node, at);
            Ok(())
        }
        FieldType::ValueTemplate => {
            templates(shape, field, node, at);
            Ok(())
        }
        FieldType::Variables => texts_by_key(shape, field, node, at, names::variable),
        FieldType::Tags if node.entries().len() > TAGS => Err(Fault::new(format!("`{name}` has at most {TAGS} tags"))),
        FieldType::Tags => texts_by_key(shape, field, node, at, names::tag),
        FieldType::Schema => schema::check(name, node, shape.errors),
        FieldType::Constants => constants(shape, name, node),
        FieldType::StepNames => step_names(shape, name, node),
        FieldType::Dependencies => dependencies(shape, name, node),
        FieldType::Texts => texts(shape, name, node),
        FieldType::Retry if matches!(node.value, Value::Number(_)) => integer(name, node, 1, u64::from(u32::MAX)),
        FieldType::Retry => map(shape, field, node, &at.within(Place::Retry), "a number of attempts or a map"),
        FieldType::Each if matches!(node.value, Value::Map(_)) => {
            map(shape, field, node, &at.within(Place::Each), "a map")
        }
        FieldType::Each => expression(shape, field, node, at),
        FieldType::Map(place) => map(shape, field, node, &at.within(place), "a map"),
        FieldType::Maps(place) => maps(shape, field, node, &at.within(place)),
        FieldType::Steps | FieldType::Environments => Ok(()),
    }
}

/// Returns the text of a field, which is not empty.
fn text<'n>(shape: &Shape<'_, '_>, name: &str, node: &'n Node) -> Result<&'n str, Fault> {
    match &node.value {
        Value::Text(text) if text.is_empty() => Err(Fault::new(format!("`{name}` is empty"))),
        Value::Text(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => {
            let source = shape.errors.source().text_of(node.span);
            Err(wrong(name, "a text", node).fix("put it in quotes", format!("{name}: {}", quoted(source))))
        }
        _ => Err(wrong(name, "a text", node)),
    }
}

/// Returns the error of a value with another type.
fn wrong(name: &str, expected: &str, node: &Node) -> Fault {
    Fault::new(format!("`{name}` is {expected}, not {}", node.value.kind()))
}

fn named(
    text: &str,
    check: impl FnOnce(&str) -> Result<(), String>,
    correct: impl FnOnce(&str) -> Option<String>,
) -> Checked {
    check(text).map_err(|message| match correct(text) {
        Some(correction) => Fault::new(message).fix("write", correction),
        None => Fault::new(message),
    })
}

fn script(shape: &mut Shape<'_, '_>, name: &str, node: &Node) -> Checked {
    let script = text(shape, name, node)?;
    let Some(start) = script.find("${{") else { return Ok(()) };
    let end = script[start..].find("}}").map_or(script.len(), |end| start + end + 2);
    let span = shape.errors.source().within(node.span, script, start..end);
    let expression = script[start..end].trim_start_matches("${{").trim_end_matches("}}").trim();
    let variable = names::like_variable(expression.rsplit('.').next().unwrap_or_default());
    let value = in_quotes(&format!("${{{{ {expression} }}}}"));
    shape.errors.add(span, || {
        let words = |correction: &str| format!("pass the value by {correction} and use \"${variable}\"");
        Fault::new("a script cannot hold `${{ }}`").offer(format!("env: {{{variable}: {value}}}"), words)
    });
    Ok(())
}

/// Writes a text for a map in braces: in double quotes, unless it contains one.
fn in_quotes(text: &str) -> String {
    if text.contains(['"', '\\']) || text.contains(char::is_control) { quoted(text) } else { format!("\"{text}\"") }
}

fn duration(name: &str, node: &Node, zero: bool) -> Checked {
    match &node.value {
        Value::Text(text) => match duration::read(text).map_err(Fault::new)? {
            time if time.is_zero() && !zero => Err(Fault::new(format!("`{name}` is longer than zero"))),
            _ => Ok(()),
        },
        Value::Number(number) => {
            Err(wrong(name, "a duration", node).fix("add a unit", format!("{name}: {}s", number.as_u64().unwrap_or(1))))
        }
        _ => Err(wrong(name, "a duration such as 90s or 1h30m", node)),
    }
}

fn wait(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext) -> Checked {
    match &node.value {
        Value::Map(_) => map(shape, field, node, &at.within(Place::Wait), "a map"),
        Value::Text(text) if text.contains("${{") => {
            templates(shape, field, node, at);
            Ok(())
        }
        _ => duration(field.name, node, true),
    }
}

/// The largest whole number up to which each has an exact double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns a number that is whole, also if it is written as `5.0`.
pub(crate) fn whole_number(node: &Node) -> Option<u64> {
    let Value::Number(number) = &node.value else { return None };
    let is_whole = |float: &f64| float.fract() == 0.0 && (0.0..=EXACT).contains(float);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, and within the bounds")]
    number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|float| float as u64))
}

fn integer(name: &str, node: &Node, least: u64, most: u64) -> Checked {
    match whole_number(node) {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => {
            let given = match &node.value {
                Value::Number(number) => number.to_string(),
                other => other.kind().to_owned(),
            };
            Err(Fault::new(format!("`{name}` is a whole number from {least} to {most}, not {given}")))
        }
    }
}

fn factor(name: &str, node: &Node) -> Checked {
    match &node.value {
        Value::Number(number) if number.as_f64().is_some_and(|factor| factor >= 1.0) => Ok(()),
        _ => Err(Fault::new(format!("`{name}` is a number of at least 1"))),
    }
}

fn boolean(name: &str, node: &Node) -> Checked {
    match &node.value {
        Value::Bool(_) => Ok(()),
        Value::Text(text) => {
            let is_yes = matches!(text.to_ascii_lowercase().as_str(), "yes" | "on" | "y");
            let fault = Fault::new(format!("`{name}` is true or false; `{}` is a text", shown(text)));
            Err(fault.fix("write", format!("{name}: {is_yes}")))
        }
        _ => Err(wrong(name, "true or false", node)),
    }
}

fn choice(shape: &Shape<'_, '_>, name: &str, node: &Node, words: &[&'static str]) -> Checked {
    let given = text(shape, name, node)?;
    if words.contains(&given) {
        return Ok(());
    }
    let fault = Fault::new(format!("`{name}: {}` is unknown; there are {}", shown(given), rules::list(words, "and")));
    Err(fault.mean(nearest(given, words.iter().copied())))
}

fn tolerate(name: &str, node: &Node) -> Checked {
    let is_percentage = |text: &str| {
        let number =
            text.strip_suffix('%').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
        number.and_then(|number| number.parse::<f64>().ok()).is_some_and(|percent| percent <= 100.0)
    };
    match &node.value {
        Value::Number(_) => integer(name, node, 0, u64::from(u32::MAX)),
        Value::Text(text) if &**text == "all" || is_percentage(text) => Ok(()),
        _ => Err(Fault::new(format!("`{name}` is a number of items, a part of them such as 5%, or `all`"))),
    }
}

/// Returns the text of an expression. A boolean or a number is an expression too.
pub(crate) fn expression_text(node: &Node) -> Option<Arc<str>> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(node.to_json().to_string().into()),
        _ => None,
    }
}

fn expression(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext) -> Checked {
    let Some(text) = expression_text(node) else {
        let fault = wrong(field.name, "an expression", node);
        let is_empty = matches!(node.value, Value::Null);
        let as_text = || format!("{}: {}", field.name, quoted(&node.to_json().to_string()));
        return Err(if is_empty { fault } else { fault.fix("write it as a text", as_text()) });
    };
    match Expression::parse(&text) {
        Ok(parsed) => {
            used(shape, field, node.span, &text, parsed.names(), at);
            Ok(())
        }
        Err(error) => {
            report(shape, node.span, &text, error, |correction| {
                Some(format!("{}: {}", field.name, written(correction)))
            });
            Ok(())
        }
    }
}

/// Checks the expressions in all texts of a value.
fn templates(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext) {
    match &node.value {
        Value::Text(text) => match TextTemplate::parse(text) {
            Ok(parsed) => used(shape, field, node.span, text, &parsed.names(), at),
            Err(error) => report(shape, node.span, text, error, |_| None),
        },
        Value::List(items) => items.iter().for_each(|item| templates(shape, field, item, at)),
        Value::Map(entries) => entries.iter().for_each(|entry| {
            if entry.key.contains("${{") {
                shape.errors.add_message(entry.span, "a key cannot hold `${{ }}`; only values can");
            }
            templates(shape, field, &entry.value, at);
        }),
        _ => {}
    }
}

fn used(
    shape: &mut Shape<'_, '_>,
    field: &'static Field,
    span: Span,
    text: &Arc<str>,
    names: &[Reference],
    at: &MapContext,
) {
    if !names.is_empty() {
        let (scope, text) = (at.scope(field.name), text.clone());
        shape.uses(Use { scope, field: field.name, span, text, names: names.to_vec() });
    }
}

/// Reports the error of an expression where it stands in the file.
fn report(
    shape: &mut Shape<'_, '_>,
    span: Span,
    text: &str,
    error: ExpressionError,
    write: impl FnOnce(&str) -> Option<String>,
) {
    let part = error.span.clone();
    shape.errors.add_at(
        |source| source.within(span, text, part),
        || {
            let correction = error.correction.as_deref().and_then(write);
            let message = Fault::new(error.message);
            match correction {
                Some(correction) => message.with(": ", correction),
                None => message,
            }
        },
    );
}

/// Checks a map of texts, whose keys have a rule of their own.
fn texts_by_key(
    shape: &mut Shape<'_, '_>,
    field: &'static Field,
    node: &Node,
    at: &MapContext,
    check: impl Fn(&str) -> Result<(), String>,
) -> Checked {
    let Value::Map(entries) = &node.value else { return Err(wrong(field.name, "a map of texts", node)) };
    for entry in entries.iter() {
        if let Err(message) = check(&entry.key) {
            shape.errors.add_message(entry.span, message);
        }
        text_of_key(shape, field, entry, at);
    }
    Ok(())
}

fn text_of_key(shape: &mut Shape<'_, '_>, field: &'static Field, entry: &Entry, at: &MapContext) {
    match &entry.value.value {
        Value::Text(_) => templates(shape, field, &entry.value, at),
        Value::Broken => {}
        Value::Number(_) | Value::Bool(_) => {
            let source = shape.errors.source().text_of(entry.value.span);
            let fault = wrong(&shown(&entry.key), "a text", &entry.value);
            let correction = format!("{}: {}", written(&entry.key), quoted(source));
            shape.errors.add(entry.value.span, || fault.fix("put it in quotes", correction));
        }
        _ => shape.errors.add(entry.value.span, || wrong(&shown(&entry.key), "a text", &entry.value)),
    }
}

fn constants(shape: &mut Shape<'_, '_>, name: &str, node: &Node) -> Checked {
    let Value::Map(_) = &node.value else { return Err(wrong(name, "a map", node)) };
    without_expressions(shape, name, node);
    Ok(())
}

fn without_expressions(shape: &mut Shape<'_, '_>, name: &str, node: &Node) {
    if let Some((text, at)) = node.as_text().and_then(|text| Some((text, text.find("${{")?))) {
        let span = shape.errors.source().within(node.span, text, at..at + 3);
        shape.errors.add_message(span, format!("`{name}` has constants, which cannot hold `${{{{ }}}}`"));
    }
    node.items().iter().for_each(|item| without_expressions(shape, name, item));
    node.entries().iter().for_each(|entry| without_expressions(shape, name, &entry.value));
}

fn step_names(shape: &mut Shape<'_, '_>, name: &str, node: &Node) -> Checked {
    let Value::List(items) = &node.value else { return Err(not_a_list(name, node)) };
    bounded(name, items)?;
    if items.is_empty() {
        return Err(Fault::new(format!("`{name}` is empty; leave it out, or name a step")));
    }
    for item in items.iter().filter(|item| item.as_text().is_none()) {
        shape
            .errors
            .add_message(item.span, format!("an item of `{name}` is the name of a step, not {}", item.value.kind()));
    }
    Ok(())
}

/// Returns the error of a value that is not a list of steps, with the list of this one step.
fn not_a_list(name: &str, node: &Node) -> Fault {
    let fault = wrong(name, "a list of steps", node);
    match node.as_text() {
        Some(step) => fault.fix("write", format!("{name}: [{}]", written(step))),
        None => fault,
    }
}

fn bounded(name: &str, items: &[Node]) -> Checked {
    match items.len() {
        length if length > DEPENDENCIES_OF_STEP => {
            Err(Fault::new(format!("`{name}` has at most {DEPENDENCIES_OF_STEP} items, and this one has {length}")))
        }
        _ => Ok(()),
    }
}

fn dependencies(shape: &mut Shape<'_, '_>, name: &str, node: &Node) -> Checked {
    let Value::List(items) = &node.value else { return Err(not_a_list(name, node)) };
    bounded(name, items)?;
    for item in items.iter() {
        if let Err(fault) = dependency(name, item) {
            shape.errors.add(item.span, || fault);
        }
    }
    Ok(())
}

/// The conditions that `depends_on` may have.
const CONDITIONS: [&str; 2] = ["failed", "ended"];

fn dependency(name: &str, item: &Node) -> Checked {
    match &item.value {
        Value::Text(_) | Value::Broken => Ok(()),
        Value::Map(entries) => match entries.as_slice() {
            [entry] => condition(entry),
            _ => Err(Fault::new(format!("an item of `{name}` has one step; write a further step as a further item"))),
        },
        other => Err(Fault::new(format!("an item of `{name}` is a step or `{{STEP: failed}}`, not {}", other.kind()))),
    }
}

fn condition(entry: &Entry) -> Checked {
    let given = match &entry.value.value {
        Value::Text(text) if CONDITIONS.contains(&&**text) => return Ok(()),
        Value::Text(text) => format!("`{}`", shown(text)),
        other => other.kind().to_owned(),
    };
    let step = shown(&entry.key);
    let fault = Fault::new(format!(
        "`{step}` has the condition {given}; there are `failed` and `ended`, and none for completed"
    ));
    Err(fault.mean(entry.value.as_text().and_then(|given| nearest(given, CONDITIONS))))
}

fn texts(shape: &mut Shape<'_, '_>, name: &'static str, node: &Node) -> Checked {
    let Value::List(items) = &node.value else { return Err(wrong(name, "a list of texts", node)) };
    for item in items.iter().filter(|item| item.as_text().is_none_or(str::is_empty)) {
        shape.errors.add_message(item.span, format!("an item of `{name}` is a text, not {}", item.value.kind()));
    }
    Ok(())
}

fn map(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext, expected: &str) -> Checked {
    let Value::Map(entries) = &node.value else { return Err(wrong(field.name, expected, node)) };
    if entries.is_empty() {
        return Err(Fault::new(format!("`{}` is empty; leave it out", field.name)));
    }
    if !at.place.kinds().is_empty() {
        rules::check_kind(node.span, node, at, shape.errors);
    }
    shape.fields(node, at);
    Ok(())
}

fn maps(shape: &mut Shape<'_, '_>, field: &'static Field, node: &Node, at: &MapContext) -> Checked {
    let Value::List(items) = &node.value else { return Err(wrong(field.name, "a list of maps", node)) };
    for item in items.iter() {
        if let Err(fault) = map(shape, field, item, at, "a list of maps") {
            shape.errors.add(item.span, || fault);
        }
    }
    Ok(())
}
