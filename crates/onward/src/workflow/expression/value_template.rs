//! Values of any shape whose texts may hold expressions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::bounds::VALUE_DEPTH;
use super::budget::Budget;
use super::code::check_result;
use super::error::{ExpressionError, Unfinished};
use super::evaluate::too_deep;
use super::names::Reference;
use super::path::{Path, PathPart};
use super::pending::Pending;
use super::scope::Scope;
use super::text_template::TextTemplate;
use super::tokens::OPEN;
use super::value::Value;

/// A value in which every text is a [`TextTemplate`]. Keys of maps are plain texts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ValueTemplate {
    /// A value without expressions.
    Constant(Value),
    /// A text with expressions.
    Text(TextTemplate),
    /// A list of which some part has expressions.
    List(Arc<[ValueTemplate]>),
    /// A map of which some part has expressions.
    Map(Arc<BTreeMap<Arc<str>, ValueTemplate>>),
}

/// An error in one text of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueError {
    /// The place of the text.
    pub path: Path,
    /// True if the text is the key of a map, and not a value.
    pub in_key: bool,
    /// The error.
    pub error: ExpressionError,
}

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for ValueError {}

impl ValueTemplate {
    /// Parses every text of a value.
    ///
    /// # Errors
    /// If an expression is none, a key has one, or the value nests too deep.
    pub fn parse(value: &serde_json::Value) -> Result<Self, ValueError> {
        parse(value, VALUE_DEPTH)
    }

    /// Returns the template of a text. The caller knows where the text stands in its file.
    #[must_use]
    pub fn text(text: TextTemplate) -> Self {
        match text.constant() {
            Some(text) => Self::Constant(text.into()),
            None => Self::Text(text),
        }
    }

    /// Returns the template of a list.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        let constant: Option<Vec<Value>> = items.iter().map(|item| item.constant().cloned()).collect();
        match constant {
            Some(values) => Self::Constant(values.into_iter().collect()),
            None => Self::List(items.into()),
        }
    }

    /// Returns the template of a map.
    ///
    /// # Errors
    /// If a key has an expression.
    pub fn map(entries: BTreeMap<Arc<str>, Self>) -> Result<Self, ValueError> {
        if let Some(key) = entries.keys().find(|key| key.contains(OPEN)) {
            return Err(in_key(key));
        }
        let constant = |(key, value): (&Arc<str>, &Self)| Some((key.clone(), value.constant()?.clone()));
        let values: Option<BTreeMap<Arc<str>, Value>> = entries.iter().map(constant).collect();
        Ok(match values {
            Some(values) => Self::Constant(values.into_iter().collect()),
            None => Self::Map(Arc::new(entries)),
        })
    }

    /// Returns the value, if there is no expression in it.
    #[must_use]
    pub fn constant(&self) -> Option<&Value> {
        if let Self::Constant(value) = self { Some(value) } else { None }
    }

    /// Returns each text with expressions, and its place.
    #[must_use]
    pub fn texts(&self) -> Vec<(Path, &TextTemplate)> {
        let mut texts = Vec::new();
        self.collect(&Path::default(), &mut texts);
        texts
    }

    fn collect<'a>(&'a self, path: &Path, texts: &mut Vec<(Path, &'a TextTemplate)>) {
        match self {
            Self::Constant(_) => {}
            Self::Text(text) => texts.push((path.clone(), text)),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.collect(&path.with(PathPart::Index(index)), texts);
                }
            }
            Self::Map(entries) => {
                for (key, value) in &**entries {
                    value.collect(&path.with(PathPart::Key(key.clone())), texts);
                }
            }
        }
    }

    /// Returns each use of a root. Its span is one of the text that has it: [`texts`](Self::texts)
    /// tells them apart.
    #[must_use]
    pub fn names(&self) -> Vec<Reference> {
        self.texts().into_iter().flat_map(|(_, text)| text.names()).collect()
    }

    /// Evaluates every expression of the value.
    ///
    /// # Errors
    /// If an expression has no value, or some values have to be read first.
    pub fn evaluate(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Unfinished> {
        let value = self.value(scope, budget)?;
        check_result(&value, self.span())?;
        Ok(value)
    }

    fn value(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Unfinished> {
        let mut pending = Pending::default();
        let made = match self {
            Self::Constant(value) => return Ok(value.clone()),
            Self::Text(text) => return text.evaluate_unchecked(scope, budget),
            Self::List(items) => {
                let mut part = |(index, item): (usize, &Self)| {
                    let value = item.value(scope, budget).map_err(|error| error.within(PathPart::Index(index)));
                    Ok(pending.take(value)?.unwrap_or_default())
                };
                items.iter().enumerate().map(&mut part).collect::<Result<Value, Unfinished>>()?
            }
            Self::Map(entries) => {
                let mut part = |(key, item): (&Arc<str>, &Self)| {
                    let value = item.value(scope, budget).map_err(|error| error.within(PathPart::Key(key.clone())));
                    Ok((key.clone(), pending.take(value)?.unwrap_or_default()))
                };
                entries.iter().map(&mut part).collect::<Result<Value, Unfinished>>()?
            }
        };
        pending.end()?;
        Ok(made)
    }

    fn span(&self) -> Range<usize> {
        match self {
            Self::Text(text) => 0..text.source().len(),
            _ => 0..0,
        }
    }
}

impl Unfinished {
    /// Returns the same failure, seen from the value around the part that failed.
    fn within(mut self, part: PathPart) -> Self {
        if let Self::Failed(error) = &mut self {
            error.path = std::mem::take(&mut error.path).within(part);
        }
        self
    }
}

impl ValueError {
    fn within(mut self, part: PathPart) -> Self {
        self.path = self.path.within(part);
        self
    }
}

/// Parses a value that may nest a number of levels.
fn parse(value: &serde_json::Value, levels: usize) -> Result<ValueTemplate, ValueError> {
    let deeper = || levels.checked_sub(1).ok_or_else(|| wrong(*ExpressionError::new(0..0, too_deep())));
    match value {
        serde_json::Value::String(text) => TextTemplate::parse(text).map(ValueTemplate::text).map_err(wrong),
        serde_json::Value::Array(items) => {
            let levels = deeper()?;
            let item = |(index, item)| parse(item, levels).map_err(|error| error.within(PathPart::Index(index)));
            let items: Result<Vec<_>, ValueError> = items.iter().enumerate().map(item).collect();
            items.map(ValueTemplate::list)
        }
        serde_json::Value::Object(entries) => {
            let levels = deeper()?;
            let entry = |(key, value): (&String, _)| {
                let key: Arc<str> = key.as_str().into();
                let value = parse(value, levels).map_err(|error| error.within(PathPart::Key(key.clone())))?;
                Ok((key, value))
            };
            ValueTemplate::map(entries.iter().map(entry).collect::<Result<_, ValueError>>()?)
        }
        plain => Ok(ValueTemplate::Constant(plain.into())),
    }
}

fn wrong(error: ExpressionError) -> ValueError {
    ValueError { path: Path::default(), in_key: false, error }
}

fn in_key(key: &Arc<str>) -> ValueError {
    let start = key.find(OPEN).unwrap_or_default();
    let message = "a key cannot hold `${{`; write the whole map as one expression, as in ${{ {input.name: 1} }}";
    let error = *ExpressionError::new(start..start + OPEN.len(), message);
    ValueError { path: Path::default().with(PathPart::Key(key.clone())), in_key: true, error }
}
