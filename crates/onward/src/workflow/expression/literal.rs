//! Numbers and texts that stand in a source.

use std::ops::Range;

use super::error::{ExpressionError, Parsed};
use super::span::Span;
use super::tokens::starts_template;

/// A number as it stands in a source: without a sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// `12`.
    Whole(u64),
    /// `12u`.
    Unsigned(u64),
    /// `1.5`, `1e3`.
    Double(f64),
}

/// Reads the number at a byte of a source, and returns its end.
pub(super) fn read_number(source: &str, start: usize) -> Parsed<(Number, usize)> {
    let bytes = source.as_bytes();
    let whole = skip_digits(bytes, start);
    let end = skip_exponent(bytes, skip_fraction(bytes, whole));
    let is_unsigned = end == whole && matches!(bytes.get(end), Some(b'u' | b'U'));
    let after = if is_unsigned { end + 1 } else { end };
    let span = Span::new(start, after);
    if bytes.get(after).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return Err(ExpressionError::new(
            span.to(after + 1),
            "a number ends before a letter; names start with a letter",
        ));
    }
    if bytes[start] == b'0' && whole > start + 1 {
        return Err(ExpressionError::new(span, "a number does not start with a zero; a text stands in quotes"));
    }
    let number = number(&source[start..end], end == whole, is_unsigned);
    Ok((number.ok_or_else(|| ExpressionError::new(span, "the number is beyond 64 bits"))?, after))
}

/// Returns the number of a text, if it is in the range of its type.
fn number(text: &str, is_whole: bool, is_unsigned: bool) -> Option<Number> {
    match (is_whole, is_unsigned) {
        (true, false) => text.parse().ok().map(Number::Whole),
        (true, true) => text.parse().ok().map(Number::Unsigned),
        (false, _) => text.parse().ok().filter(|double: &f64| double.is_finite()).map(Number::Double),
    }
}

fn skip_fraction(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start..) {
        Some([b'.', digit, ..]) if digit.is_ascii_digit() => skip_digits(bytes, start + 1),
        _ => start,
    }
}

fn skip_digits(bytes: &[u8], start: usize) -> usize {
    start + bytes.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count()
}

fn skip_exponent(bytes: &[u8], start: usize) -> usize {
    let digits = match bytes.get(start..) {
        Some([b'e' | b'E', b'+' | b'-', digit, ..]) if digit.is_ascii_digit() => start + 2,
        Some([b'e' | b'E', digit, ..]) if digit.is_ascii_digit() => start + 1,
        _ => return start,
    };
    skip_digits(bytes, digits)
}

/// Reads the text whose opening quote is at a byte of a source, and returns its end.
pub(super) fn read_text(source: &str, start: usize) -> Parsed<(String, usize)> {
    let quote = source.as_bytes()[start];
    let mut text = String::new();
    let mut at = start + 1;
    loop {
        let rest = &source[at..];
        let Some(character) = rest.chars().next() else { return Err(without_end(start..source.len(), quote)) };
        match character {
            '\\' => {
                let (character, end) = read_escape(source, at)?;
                text.push(character);
                at = end;
            }
            _ if u32::from(character) == u32::from(quote) => return Ok((text, at + 1)),
            '$' if starts_template(rest) => return Err(nested_template(at)),
            _ if character.is_ascii_control() => return Err(control(at, character)),
            _ => {
                text.push(character);
                at += character.len_utf8();
            }
        }
    }
}

fn without_end(span: Range<usize>, quote: u8) -> Box<ExpressionError> {
    ExpressionError::new(span, format!("the text has no end; it needs another {}", char::from(quote)))
}

fn nested_template(at: usize) -> Box<ExpressionError> {
    let message = "`${{` cannot stand inside an expression; join texts by `+`, as in 'a-' + string(input.n)";
    ExpressionError::new(at..at + 3, message)
}

fn control(at: usize, character: char) -> Box<ExpressionError> {
    let code = u32::from(character);
    ExpressionError::new(at..at + 1, format!("a text holds the character U+{code:04X} only as \\u{code:04x}"))
}

/// Reads the escape at a byte of a source, and returns its end.
fn read_escape(source: &str, at: usize) -> Parsed<(char, usize)> {
    let escaped = source[at + 1..].chars().next();
    let character = match escaped {
        Some(same @ ('"' | '\'' | '\\' | '/')) => same,
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return read_unicode(source, at),
        _ => return Err(unknown_escape(at, escaped)),
    };
    Ok((character, at + 2))
}

fn unknown_escape(at: usize, escaped: Option<char>) -> Box<ExpressionError> {
    let Some(character) = escaped else {
        return ExpressionError::new(at..at + 1, "a `\\` needs a character behind it");
    };
    let span = at..at + 1 + character.len_utf8();
    ExpressionError::new(span, format!("`\\{character}` is no escape; for a `\\` write `\\\\`"))
}

/// Reads `\uXXXX`, or two of them where JSON writes a character above U+FFFF so.
fn read_unicode(source: &str, at: usize) -> Parsed<(char, usize)> {
    let first = read_unit(source, at);
    let (units, end) = match first {
        Some(0xd800..0xdc00) => (vec![first, read_unit(source, at + 6)], at + 12),
        _ => (vec![first], at + 6),
    };
    let units: Option<Vec<u16>> = units.into_iter().collect();
    let decoded = units.and_then(|units| char::decode_utf16(units).next()?.ok());
    let span = Span::new(at, (at + 2).min(source.len()));
    let wrong =
        || ExpressionError::new(span, "`\\u` needs four hexadecimal digits that make a character, as in \\u00e9");
    decoded.map(|character| (character, end)).ok_or_else(wrong)
}

fn read_unit(source: &str, at: usize) -> Option<u16> {
    let digits = source.get(at..at + 6)?.strip_prefix("\\u")?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if are_digits { u16::from_str_radix(digits, 16).ok() } else { None }
}
