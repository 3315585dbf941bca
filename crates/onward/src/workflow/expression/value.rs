//! Values of expressions.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use jiff::SignedDuration;
use onward_store::Timestamp;

/// A value of an expression. A clone shares its texts, lists and maps.
///
/// `==` between two of them compares type and value, as Rust does. The operator of the language
/// compares numbers of different types too.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is not negative. Numbers of JSON above every [`Int`](Self::Int) are of this
    /// type.
    Uint(u64),
    /// A number with a fraction or an exponent. It is finite.
    Double(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(List),
    /// A map from texts to values.
    Map(Map),
    /// A moment, between the years 1 and 9999.
    Timestamp(jiff::Timestamp),
    /// A length of time; it may be negative.
    Duration(SignedDuration),
}

/// A list of values.
#[derive(Debug, Clone, PartialEq)]
pub struct List(Arc<Nested<Vec<Value>>>);

/// A map of values, in the order of its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Map(Arc<Nested<BTreeMap<Arc<str>, Value>>>);

/// Values with the number of levels that they nest, their own one included.
#[derive(Debug, PartialEq)]
struct Nested<T> {
    depth: usize,
    values: T,
}

impl List {
    pub(super) fn depth(&self) -> usize {
        self.0.depth
    }
}

impl Map {
    pub(super) fn depth(&self) -> usize {
        self.0.depth
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.values
    }
}

impl Deref for Map {
    type Target = BTreeMap<Arc<str>, Value>;

    fn deref(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.0.values
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let values: Vec<Value> = items.into_iter().collect();
        let depth = 1 + values.iter().map(Value::depth).max().unwrap_or(0);
        Self(Arc::new(Nested { depth, values }))
    }
}

impl FromIterator<(Arc<str>, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Self {
        let values: BTreeMap<_, _> = entries.into_iter().collect();
        let depth = 1 + values.values().map(Value::depth).max().unwrap_or(0);
        Self(Arc::new(Nested { depth, values }))
    }
}

impl Value {
    /// Returns the number of levels that lists and maps nest in it: 0 if it is neither.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::List(list) => list.depth(),
            Self::Map(map) => map.depth(),
            _ => 0,
        }
    }

    /// Returns the name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "text",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "timestamp",
            Self::Duration(_) => "duration",
        }
    }

    /// Returns the name of its type as it stands in a sentence, such as `an int`.
    #[must_use]
    pub fn with_article(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Uint(_) => "a uint",
            Self::Double(_) => "a double",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Timestamp(_) => "a timestamp",
            Self::Duration(_) => "a duration",
        }
    }

    /// Returns the text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the items, if it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    /// Returns the entries, if it is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&BTreeMap<Arc<str>, Value>> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    /// Makes an int where the number is in its range, as reading JSON does.
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Uint(number), Self::Int)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::List(items.into_iter().collect())
    }
}

impl FromIterator<(Arc<str>, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Self {
        Self::Map(entries.into_iter().collect())
    }
}

impl From<Timestamp> for Value {
    /// Keeps the moment to the microsecond. One outside the years that expressions know becomes the
    /// nearest one inside.
    fn from(moment: Timestamp) -> Self {
        super::timestamp::nearest(moment.as_microseconds())
    }
}
