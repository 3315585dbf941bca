//! Maps: duplicate keys, and merge keys.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::errors::{Errors, Fault, shown};
use super::super::source::Span;
use super::node::{Entry, Node, Value};

/// A map as it is read.
#[derive(Debug, Default)]
pub(super) struct MapInProgress {
    /// The entries, in the order of the file.
    pub(super) entries: Vec<Entry>,
    /// The key whose value comes next.
    pub(super) key: Option<Key>,
    /// The value of `<<`.
    pub(super) merged: Option<(Span, Node)>,
}

/// A key of a map.
#[derive(Debug)]
pub(super) enum Key {
    Text(Arc<str>, Span),
    /// `<<` without quotes.
    Merge(Span),
    /// A key with an error that is reported already.
    Broken,
}

impl MapInProgress {
    /// Adds the value of a key.
    pub(super) fn take(&mut self, key: Key, value: Node, errors: &mut Errors<'_>) {
        match key {
            Key::Text(key, span) => self.entries.push(Entry { key, span, value }),
            Key::Merge(span) if self.merged.is_some() => {
                errors.add_message(span, "`<<` stands twice in one map; give it a list: <<: [*a, *b]");
            }
            Key::Merge(span) => self.merged = Some((span, value)),
            Key::Broken => {}
        }
    }

    /// Returns the entries of the map: each key once. A merged entry counts only if the map does
    /// not have its key.
    pub(super) fn end(self, errors: &mut Errors<'_>) -> Vec<Entry> {
        let mut map = UniqueEntries::default();
        for entry in self.entries {
            map.insert(entry, |entry, first| {
                errors.add(entry.span, || twice(&entry.key, first));
            });
        }
        if let Some((span, node)) = &self.merged {
            merge(&mut map, *span, node, errors);
        }
        map.entries
    }
}

fn twice(key: &str, first: Span) -> Fault {
    Fault::new(format!("`{}` stands twice in one map; the first is in line {}", shown(key), first.start.line))
}

fn merge(map: &mut UniqueEntries, span: Span, node: &Node, errors: &mut Errors<'_>) {
    let maps = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    for node in maps {
        match &node.value {
            Value::Map(entries) => entries.iter().for_each(|entry| map.insert(entry.clone(), |_, _| ())),
            Value::Broken => {}
            other => errors.add_message(span, format!("`<<` takes a map or a list of maps, not {}", other.kind())),
        }
    }
}

/// Entries with different keys, in the order in which they came.
#[derive(Debug, Default)]
struct UniqueEntries {
    entries: Vec<Entry>,
    places: HashMap<Arc<str>, usize>,
}

/// The number of entries up to which a scan is quicker than a table.
const SCANNED: usize = 16;

impl UniqueEntries {
    fn insert(&mut self, entry: Entry, on_repeated: impl FnOnce(&Entry, Span)) {
        match self.find(&entry.key) {
            Some(first) => on_repeated(&entry, self.entries[first].span),
            None => self.push(entry),
        }
    }

    fn find(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= SCANNED {
            return self.entries.iter().position(|entry| &*entry.key == key);
        }
        self.places.get(key).copied()
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() > SCANNED {
            let known = self.places.len();
            let new = self.entries.iter().enumerate().skip(known);
            self.places.extend(new.map(|(place, entry)| (entry.key.clone(), place)));
        }
    }
}
