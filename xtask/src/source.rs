//! Rust source, split just far enough to check it: code, comments, functions, tests.
//!
//! This is a scanner, not a parser. It separates code from comments and literals, and matches
//! brackets. That is exact for everything that is checked, and avoids a parser's build time.

use std::ops::Range;

/// A Rust file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path relative to the root of the project.
    pub(crate) path: String,
    /// The text with comments and the insides of literals blanked. It has the same length and
    /// lines.
    pub(crate) code: String,
    /// The text with everything but comments blanked. It has the same length and lines.
    pub(crate) comments: String,
}

/// A function with its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Lines from the signature to the closing brace, counted from 0.
    pub(crate) lines: Range<usize>,
}

impl SourceFile {
    pub(crate) fn new(path: impl Into<String>, text: impl AsRef<str>) -> Self {
        let (code, comments) = Scanner::separate(text.as_ref());
        Self { path: path.into(), code, comments }
    }

    /// Returns whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
            || self.path.starts_with("crates/onward-testkit/")
    }

    /// Returns for each line whether it belongs to a `#[cfg(test)]` module.
    pub(crate) fn test_lines(&self) -> Vec<bool> {
        let mut marks = vec![false; self.code.lines().count()];
        for (start, _) in self.code.match_indices("#[cfg(test)]") {
            let Some(open) = self.code[start..].find(['{', ';']).map(|offset| start + offset) else { continue };
            if self.code.as_bytes()[open] == b'{' {
                let end = closing_brace(&self.code, open);
                marks[self.line_of(start)..=self.line_of(end)].fill(true);
            }
        }
        marks
    }

    /// Returns every function that has a body, including nested ones.
    pub(crate) fn functions(&self) -> Vec<Function> {
        identifiers(&self.code).filter(|(_, word)| *word == "fn").filter_map(|(at, _)| self.function(at)).collect()
    }

    fn function(&self, start: usize) -> Option<Function> {
        let (name_at, name) = identifiers(&self.code[start + 2..]).next()?;
        let signature = start + 2 + name_at;
        let open = body(&self.code, signature)?;
        let lines = self.line_of(start)..self.line_of(closing_brace(&self.code, open)) + 1;
        Some(Function { name: name.to_owned(), lines })
    }

    fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count()
    }
}

/// Returns the offset at which the body of a function opens whose signature starts at `start`.
/// Returns `None` if the function has no body.
fn body(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, byte) in code[start..].bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(start + offset),
            b';' | b'}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the offset of the brace that closes the one at `open`, or the end of the text.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code[open..].bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + offset;
        }
    }
    code.len()
}

/// Returns the identifiers and keywords of a text with their offsets.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// A scanner that separates code from comments and literals.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    code: Vec<u8>,
    comments: Vec<u8>,
}

impl<'a> Scanner<'a> {
    fn separate(text: &'a str) -> (String, String) {
        let blank: Vec<u8> = text.bytes().map(|byte| if byte == b'\n' { b'\n' } else { b' ' }).collect();
        let mut scanner = Self { text: text.as_bytes(), at: 0, code: blank.clone(), comments: blank };
        while scanner.at < text.len() {
            scanner.step();
        }
        let string = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (string(scanner.code), string(scanner.comments))
    }

    fn step(&mut self) {
        let rest = &self.text[self.at..];
        match rest {
            [b'/', b'/', ..] => self.comment(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())),
            [b'/', b'*', ..] => self.comment(block_comment(rest)),
            [b'"', ..] => self.literal(string(rest)),
            [b'r', b'"' | b'#', ..] => match raw_string(rest) {
                Some(length) => self.literal(length),
                None => self.plain(1),
            },
            [b'\'', ..] => match character(rest) {
                Some(length) => self.literal(length),
                None => self.plain(1),
            },
            _ => self.plain(1),
        }
    }

    fn comment(&mut self, length: usize) {
        let range = self.at..self.at + length;
        self.comments[range.clone()].copy_from_slice(&self.text[range]);
        self.at += length;
    }

    /// Blanks a literal. Keeps its first and last byte as quotes, so that the tokens around it do
    /// not merge.
    fn literal(&mut self, length: usize) {
        for edge in [self.at, self.at + length - 1] {
            self.code[edge] = b'"';
        }
        self.at += length;
    }

    fn plain(&mut self, length: usize) {
        let range = self.at..self.at + length;
        self.code[range.clone()].copy_from_slice(&self.text[range]);
        self.at += length;
    }
}

fn block_comment(text: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        match text[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn raw_string(text: &[u8]) -> Option<usize> {
    let hashes = text[1..].iter().take_while(|&&byte| byte == b'#').count();
    if text.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let inside = 2 + hashes;
    let length = text[inside..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(text.len(), |length| inside + length + close.len()))
}

/// Returns the length of a character literal, or `None` if the quote begins a lifetime.
fn character(text: &[u8]) -> Option<usize> {
    if text.get(1) == Some(&b'\\') {
        let close = text.get(3..)?.iter().position(|&byte| byte == b'\'')?;
        return Some(close + 4);
    }
    let width = std::str::from_utf8(&text[1..text.len().min(5)])
        .or_else(|error| std::str::from_utf8(&text[1..1 + error.valid_up_to()]))
        .ok()?
        .chars()
        .next()?
        .len_utf8();
    (text.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new("crates/x/src/y.rs", text)
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let source = file("let a = \"fn x {\"; // fn y {\nlet b = r#\"}\"#; /* { /* { */ } */ let c = '{';");
        assert!(!source.code.contains(['{', '}']), "{}", source.code);
        assert!(source.comments.contains("fn y {") && !source.comments.contains("let"));
    }

    #[test]
    fn every_layer_keeps_the_lines() {
        let text = "a /* é\n */ \"b\nc\" // d\n";
        let source = file(text);
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.comments.matches('\n').count(), 3);
    }

    #[test]
    fn a_lifetime_is_not_a_character() {
        assert_eq!(file("fn f<'a>(x: &'a str) -> char { 'é' }").functions()[0].name, "f");
    }

    #[test]
    fn a_quote_character_does_not_open_a_string() {
        assert_eq!(file(r#"fn f() { g('"', '\'') } fn h() {}"#).functions().len(), 2);
    }

    #[test]
    fn a_function_reaches_from_its_signature_to_its_closing_brace() {
        let source = file("fn f(\n    a: [u8; 3],\n) {\n    if a {\n    }\n}\n");
        assert_eq!(source.functions(), [Function { name: "f".into(), lines: 0..6 }]);
    }

    #[test]
    fn a_function_without_a_body_is_none() {
        assert_eq!(file("trait T { fn f(&self) -> [u8; 2]; }\ntype F = fn(u8);").functions(), []);
    }

    #[test]
    fn a_test_module_is_marked_from_its_attribute_to_its_end() {
        let source = file("fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n");
        assert_eq!(source.test_lines(), [false, true, true, true, true, false]);
    }

    #[test]
    fn a_test_module_in_another_file_marks_nothing_here() {
        assert_eq!(file("#[cfg(test)]\nmod tests;\nfn f() {}\n").test_lines(), [false; 3]);
    }
}
