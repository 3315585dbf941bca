//! `\d`, `\s`, `\w`, `\b` and the like of patterns, which know ASCII characters alone.
//!
//! So they are defined for the language, and a pattern such as `^\w{64}$` stays small.

use std::borrow::Cow;
use std::convert::Infallible;

use regex_syntax::ast::{self, AssertionKind, Ast, ClassPerl, ClassPerlKind, ClassSetItem, Visitor, visit};

/// Returns a pattern with its classes written out.
pub(super) fn with_ascii_classes(source: &str, tree: &Ast) -> String {
    let Ok(found) = visit(tree, Replacements { source, places: Vec::new() });
    let mut pattern = String::with_capacity(source.len());
    let mut at = 0;
    for (span, replacement) in found {
        pattern.push_str(&source[at..span.start.offset]);
        pattern.push_str(&replacement);
        at = span.end.offset;
    }
    pattern.push_str(&source[at..]);
    pattern
}

/// Places in a pattern, in their order, with what they are replaced by.
struct Replacements<'a> {
    source: &'a str,
    places: Vec<(ast::Span, Cow<'static, str>)>,
}

impl Replacements<'_> {
    fn class(&mut self, class: &ClassPerl) {
        self.places.push((class.span, written_out(class).into()));
    }

    /// Adds a word boundary of ASCII words, as the classes are of ASCII.
    fn boundary(&mut self, span: ast::Span) {
        let boundary = &self.source[span.start.offset..span.end.offset];
        self.places.push((span, format!("(?-u:{boundary})").into()));
    }
}

impl Visitor for Replacements<'_> {
    type Output = Vec<(ast::Span, Cow<'static, str>)>;
    type Err = Infallible;

    fn finish(self) -> Result<Self::Output, Infallible> {
        Ok(self.places)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        use AssertionKind::{EndLine, EndText, StartLine, StartText};
        match ast {
            Ast::ClassPerl(class) => self.class(class),
            Ast::Assertion(assertion) if !matches!(assertion.kind, StartLine | EndLine | StartText | EndText) => {
                self.boundary(assertion.span);
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        if let ClassSetItem::Perl(class) = item {
            self.class(class);
        }
        Ok(())
    }
}

/// Returns a class as a set of characters. A space is written by its code, since the flag `x`
/// ignores it otherwise.
fn written_out(class: &ClassPerl) -> &'static str {
    match (&class.kind, class.negated) {
        (ClassPerlKind::Digit, false) => "[0-9]",
        (ClassPerlKind::Digit, true) => "[^0-9]",
        (ClassPerlKind::Space, false) => r"[\t\n\f\r\x20]",
        (ClassPerlKind::Space, true) => r"[^\t\n\f\r\x20]",
        (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
        (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
    }
}
