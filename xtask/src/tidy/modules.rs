//! Checks that a `mod.rs` holds only documentation, `mod` and `use` lines.

use super::Finding;
use crate::source::SourceFile;

/// Finds other items in a `mod.rs`.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    sources.iter().filter(|source| source.path.ends_with("/mod.rs")).filter_map(logic).collect()
}

fn logic(source: &SourceFile) -> Option<Finding> {
    let code = without_attributes(&source.code);
    let item = code.split(';').map(str::trim).find(|item| !item.is_empty() && !is_declaration(item))?;
    let shown = item.lines().next().unwrap_or(item);
    Some(Finding::file(
        &source.path,
        format!("`{shown}` does not belong in a mod.rs; move it to a file named after it"),
    ))
}

fn is_declaration(item: &str) -> bool {
    // A visibility such as `pub(in crate::a)` has a space in it.
    let visible = item.strip_prefix("pub(in ").and_then(|rest| rest.split_once(')')).map_or(item, |(_, rest)| rest);
    let mut words = visible.split_whitespace().skip_while(|word| word.starts_with("pub"));
    match words.next() {
        Some("use") => true,
        Some("mod") => !item.contains('{'),
        _ => false,
    }
}

/// Returns the code without `#[…]` and `#![…]`.
fn without_attributes(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::new();
    while let Some(start) = rest.find('#') {
        kept.push_str(&rest[..start]);
        rest = &rest[start + attribute_length(&rest[start..])..];
    }
    kept + rest
}

fn attribute_length(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return at + 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_for_a_part_of_the_crate_is_a_declaration() {
        assert_eq!(findings("pub(in crate::a) mod b;\n"), 0);
    }

    fn findings(text: &str) -> usize {
        check(&[SourceFile::new("src/a/mod.rs", text)]).len()
    }

    #[test]
    fn declarations_pass() {
        let text = "//! What it is.\n#[cfg(feature = \"x\")]\nmod a;\npub(crate) mod b;\npub use a::{\n    A, B,\n};\n";
        assert_eq!(findings(text), 0);
    }

    #[test]
    fn a_function_a_type_or_a_module_with_a_body_does_not() {
        assert_eq!(findings("mod a;\nfn f() {}\n"), 1);
        assert_eq!(findings("pub struct S;\n"), 1);
        assert_eq!(findings("#[cfg(test)]\nmod tests {\n use super::*;\n}\n"), 1);
    }

    #[test]
    fn other_files_may_hold_what_they_like() {
        assert!(check(&[SourceFile::new("src/lib.rs", "fn f() {}")]).is_empty());
    }
}
