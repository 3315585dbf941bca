//! Building a tree of values from the events of a YAML parser.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::super::bounds::{TEMPLATE_BYTES, YAML_DEPTH, YAML_NODES, YAML_REPLAYED, YAML_REPLAYED_BYTES};
use super::super::errors::{Errors, Fault, shown};
use super::super::fields;
use super::super::source::Span;
use super::merge::{Key, MapInProgress};
use super::node::{Node, Value};
use super::scalar;
use super::syntax::{self, quoted};

/// An error after which nothing more of the file can be read.
type Fatal = (Span, Fault);

/// Reads the source of `errors`. Returns `None` after an error that prevents reading all of it.
/// Other errors leave a [`Value::Broken`].
pub(crate) fn load(errors: &mut Errors<'_>) -> Option<Node> {
    let source = errors.source();
    let length = source.text().len();
    if length > TEMPLATE_BYTES {
        errors
            .add_message(Span::START, format!("the file has {length} bytes; a template has at most {TEMPLATE_BYTES}"));
        return None;
    }
    let mut loader = Loader::new(errors);
    // The parser continues after an error, possibly without end, so the first error ends the loop.
    for event in Parser::new_from_str(source.text()) {
        let read = match event {
            Ok((event, span)) => loader.read(event, place(span)),
            Err(error) => Err(syntax::fault(source, &error)),
        };
        if let Err((span, fault)) = read {
            loader.errors.add(span, || fault);
            return None;
        }
    }
    let root = loader.root.take().filter(|root| !matches!(root.value, Value::Null));
    if root.is_none() {
        errors.add_message(Span::START, "the file is empty; a template has at least one step");
    }
    root
}

fn place(span: saphyr_parser::Span) -> Span {
    Span { start: syntax::position(span.start), end: syntax::position(span.end) }
}

struct Loader<'s, 'e> {
    errors: &'e mut Errors<'s>,
    open: Vec<Frame>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Complete>,
    nodes: usize,
    /// The keys and values that aliases have repeated, and the bytes of their texts.
    replayed: Size,
}

/// The size of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// The number of its keys and values.
    nodes: usize,
    /// The bytes of its texts.
    bytes: usize,
}

impl Size {
    /// Returns the size of a key or a value that is not a list or a map.
    fn of(text: &str) -> Self {
        Self { nodes: 1, bytes: text.len() }
    }

    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A list or a map that has begun.
struct Frame {
    span: Span,
    anchor: usize,
    is_tagged: bool,
    size: Size,
    height: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map(MapInProgress),
}

/// A value that was read to its end.
#[derive(Clone)]
struct Complete {
    node: Node,
    size: Size,
    /// The number of levels that lists and maps nest in it.
    height: usize,
}

impl<'s, 'e> Loader<'s, 'e> {
    fn new(errors: &'e mut Errors<'s>) -> Self {
        let (open, anchors) = (Vec::new(), HashMap::new());
        Self { errors, open, root: None, documents: 0, anchors, nodes: 0, replayed: Size::default() }
    }

    fn read(&mut self, event: Event<'_>, span: Span) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(_) => self.document(span)?,
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                self.scalar(&text, style, anchor, tag.as_deref(), span);
            }
            Event::SequenceStart(anchor, tag) => self.open(Kind::List(Vec::new()), anchor, tag.as_deref(), span)?,
            Event::MappingStart(anchor, tag) => {
                self.open(Kind::Map(MapInProgress::default()), anchor, tag.as_deref(), span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn document(&mut self, span: Span) -> Result<(), Fatal> {
        self.documents += 1;
        if self.documents > 1 {
            return Err((span, Fault::new("a second document begins here; a file is one template")));
        }
        Ok(())
    }

    fn count(&mut self, span: Span) -> Result<(), Fatal> {
        self.nodes += 1;
        if self.nodes > YAML_NODES {
            return Err((span, Fault::new(format!("a template has at most {YAML_NODES} keys and values"))));
        }
        Ok(())
    }

    fn open(&mut self, kind: Kind, anchor: usize, tag: Option<&Tag>, span: Span) -> Result<(), Fatal> {
        self.count(span)?;
        if self.open.len() >= YAML_DEPTH {
            return Err((span, Fault::new(format!("lists and maps nest at most {YAML_DEPTH} levels deep"))));
        }
        if tag.is_some() {
            self.errors.add(span, || Fault::new("this has a YAML tag; tags are not read, so leave it out"));
        }
        if self.expects_key() {
            self.errors.add_message(span, "a list or a map cannot be the key of a map; a key is a text");
        }
        self.open.push(Frame { span, anchor, is_tagged: tag.is_some(), size: Size::of(""), height: 1, kind });
        Ok(())
    }

    fn close(&mut self, end: Span) {
        let Some(frame) = self.open.pop() else { return };
        let value = match frame.kind {
            Kind::List(items) => Value::List(Arc::new(items)),
            Kind::Map(map) => Value::Map(Arc::new(map.end(self.errors))),
        };
        let value = if frame.is_tagged { Value::Broken } else { value };
        let node = Node::new(Span { start: frame.span.start, end: end.end }, value);
        self.complete(Complete { node, size: frame.size, height: frame.height }, frame.anchor);
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>, span: Span) {
        if tag.is_some() {
            self.report_tag(text, span);
        }
        let is_plain = style == ScalarStyle::Plain;
        if self.expects_key() {
            let key = self.read_key(text, is_plain, span);
            return self.take_key(key, text, anchor);
        }
        let value = match tag {
            Some(_) => Value::Broken,
            None if is_plain => self.plain(text, span),
            None => Value::Text(text.into()),
        };
        self.complete(Complete { node: Node::new(span, value), size: Size::of(text), height: 0 }, anchor);
    }

    fn report_tag(&mut self, text: &str, span: Span) {
        let Self { errors, open, .. } = self;
        let source = errors.source();
        errors.add(span, || tag_fault(source.text_of(span), text, next_key(open)));
    }

    fn plain(&mut self, text: &str, span: Span) -> Value {
        scalar::plain(text).unwrap_or_else(|message| {
            self.errors.add_message(span, message);
            Value::Broken
        })
    }

    fn read_key(&mut self, text: &str, is_plain: bool, span: Span) -> Key {
        match text {
            "<<" if is_plain => Key::Merge(span),
            "" if is_plain => {
                self.errors.add_message(span, "a map key is missing before `:`");
                Key::Broken
            }
            text => Key::Text(text.into(), span),
        }
    }

    /// Accepts a key. An alias of the key elsewhere is a text.
    fn take_key(&mut self, key: Key, text: &str, anchor: usize) {
        let length = match &key {
            Key::Text(key, _) => Size::of(key),
            Key::Merge(_) | Key::Broken => Size::of(""),
        };
        if let (Key::Text(_, span), true) = (&key, anchor != 0) {
            self.anchors.insert(anchor, Complete { node: Node::text(*span, text), size: Size::of(text), height: 0 });
        }
        if let Some(Frame { kind: Kind::Map(map), size, .. }) = self.open.last_mut() {
            map.key = Some(key);
            size.add(length);
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Fatal> {
        let Some(complete) = self.anchors.get(&anchor).cloned() else {
            return Err((span, Fault::new("this alias stands within the value that it repeats")));
        };
        self.count_replayed(complete.size).map_err(|fault| (span, fault))?;
        if self.open.len() + complete.height > YAML_DEPTH {
            return Err((span, Fault::new(format!("lists and maps nest at most {YAML_DEPTH} levels deep"))));
        }
        if self.expects_key() {
            let key = self.alias_as_key(&complete.node, span);
            self.take_key(key, "", 0);
            return Ok(());
        }
        self.complete(complete, 0);
        Ok(())
    }

    /// Counts what an alias repeats: the tree shares it, but the canonical form and the payloads of
    /// steps have a copy for each alias.
    fn count_replayed(&mut self, size: Size) -> Result<(), Fault> {
        self.replayed.add(size);
        if self.replayed.nodes > YAML_REPLAYED {
            let text = format!("the aliases of a template repeat at most {YAML_REPLAYED} keys and values in all");
            return Err(Fault::new(text));
        }
        if self.replayed.bytes > YAML_REPLAYED_BYTES {
            let text = format!("the aliases of a template repeat at most {YAML_REPLAYED_BYTES} bytes of text in all");
            return Err(Fault::new(text));
        }
        Ok(())
    }

    fn alias_as_key(&mut self, node: &Node, span: Span) -> Key {
        match &node.value {
            Value::Text(text) => Key::Text(text.clone(), span),
            other => {
                self.errors.add_message(span, format!("the key of a map is a text; this alias is {}", other.kind()));
                Key::Broken
            }
        }
    }

    /// Adds a value to the list or map that is open, or sets the root.
    fn complete(&mut self, complete: Complete, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, complete.clone());
        }
        let Complete { node, size, height } = complete;
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.size.add(size);
        frame.height = frame.height.max(height + 1);
        match &mut frame.kind {
            Kind::List(items) => items.push(node),
            Kind::Map(map) => match map.key.take() {
                Some(key) => map.take(key, node, self.errors),
                // A list or a map used as a key, which was reported when it began.
                None => map.key = Some(Key::Broken),
            },
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Frame { kind: Kind::Map(map), .. }) if map.key.is_none())
    }
}

/// Returns the key whose value comes next.
fn next_key(open: &[Frame]) -> Option<&str> {
    match &open.last()?.kind {
        Kind::Map(MapInProgress { key: Some(Key::Text(key, _)), .. }) => Some(key),
        _ => None,
    }
}

/// Returns the error of a scalar with a tag, which most often is a `!` that means "not".
fn tag_fault(source: &str, text: &str, key: Option<&str>) -> Fault {
    let tag = source.split_whitespace().next().unwrap_or("!");
    let is_known_tag = tag.starts_with("!!") || tag.starts_with("!<");
    let meant = quoted(if is_known_tag { text } else { source.trim_end() });
    let correction = key.map_or(format!("- {meant}"), |key| format!("{key}: {meant}"));
    let other = if key.is_some_and(fields::takes_expression) { "an expression" } else { "a text" };
    Fault::new(format!("`{}` is a YAML tag, not {other}", shown(tag))).fix("put it in quotes", correction)
}
