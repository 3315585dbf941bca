//! The names of functions, methods and macros, and their numbers of arguments.

use std::ops::RangeInclusive;

/// A function that is written before its arguments, as in `size(x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Get,
    Int,
    Uint,
    Double,
    String,
    Json,
    ParseJson,
    Timestamp,
    Duration,
}

/// A function that is written after its first argument, as in `x.size()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
    LowerAscii,
    UpperAscii,
    Trim,
    Split,
    Join,
    Replace,
}

/// A function of a list that evaluates an expression for each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

/// The name of `has`, whose argument is not evaluated.
pub(super) const HAS: &str = "has";

type Entry<T> = (&'static str, T, RangeInclusive<usize>);

const FUNCTIONS: [Entry<Function>; 10] = [
    ("size", Function::Size, 1..=1),
    ("get", Function::Get, 3..=3),
    ("int", Function::Int, 1..=1),
    ("uint", Function::Uint, 1..=1),
    ("double", Function::Double, 1..=1),
    ("string", Function::String, 1..=1),
    ("json", Function::Json, 1..=1),
    ("parse_json", Function::ParseJson, 1..=1),
    ("timestamp", Function::Timestamp, 1..=1),
    ("duration", Function::Duration, 1..=1),
];

const METHODS: [Entry<Method>; 11] = [
    ("size", Method::Size, 0..=0),
    ("startsWith", Method::StartsWith, 1..=1),
    ("endsWith", Method::EndsWith, 1..=1),
    ("contains", Method::Contains, 1..=1),
    ("matches", Method::Matches, 1..=1),
    ("lowerAscii", Method::LowerAscii, 0..=0),
    ("upperAscii", Method::UpperAscii, 0..=0),
    ("trim", Method::Trim, 0..=0),
    ("split", Method::Split, 1..=1),
    ("join", Method::Join, 0..=1),
    ("replace", Method::Replace, 2..=2),
];

const MACROS: [(&str, Macro); 5] = [
    ("all", Macro::All),
    ("exists", Macro::Exists),
    ("exists_one", Macro::ExistsOne),
    ("map", Macro::Map),
    ("filter", Macro::Filter),
];

impl Function {
    /// Returns the function of a name, and the range of its number of arguments.
    pub(super) fn named(name: &str) -> Option<(Self, RangeInclusive<usize>)> {
        named(&FUNCTIONS, name)
    }

    /// Returns the name.
    pub(super) fn as_str(self) -> &'static str {
        FUNCTIONS.iter().find_map(|(name, other, _)| (*other == self).then_some(*name)).unwrap_or_default()
    }
}

impl Method {
    /// Returns the method of a name, and the range of its number of arguments.
    pub(super) fn named(name: &str) -> Option<(Self, RangeInclusive<usize>)> {
        named(&METHODS, name)
    }

    /// Returns the name.
    pub(super) fn as_str(self) -> &'static str {
        METHODS.iter().find_map(|(name, other, _)| (*other == self).then_some(*name)).unwrap_or_default()
    }
}

impl Macro {
    /// Returns the macro of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        MACROS.iter().find_map(|(other, found)| (*other == name).then_some(*found))
    }

    /// Returns the name.
    pub(super) fn as_str(self) -> &'static str {
        MACROS.iter().find_map(|(name, other)| (*other == self).then_some(*name)).unwrap_or_default()
    }
}

fn named<T: Copy>(entries: &[Entry<T>], name: &str) -> Option<(T, RangeInclusive<usize>)> {
    entries.iter().find(|(other, ..)| *other == name).map(|(_, found, arguments)| (*found, arguments.clone()))
}

/// Returns the names that can stand before a `(`.
pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name).chain([HAS])
}

/// Returns the names that can stand between a `.` and a `(`.
pub(super) fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, ..)| *name).chain(MACROS.iter().map(|(name, _)| *name))
}
