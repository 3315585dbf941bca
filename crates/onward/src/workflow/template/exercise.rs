//! An entry for fuzzers: it checks properties that hold for every text.

use super::bounds::{ERRORS_REPORTED, TEMPLATE_BYTES, YAML_REPLAYED_BYTES};
use super::errors::TemplateErrors;
use super::file::TemplateFile;

/// The most bytes of the canonical form for each byte that a file has or repeats. JSON needs up to
/// six for a character that YAML has as an escape of two.
const CANONICAL_FACTOR: usize = 8;

/// The most bytes of a canonical form that is read again. A longer one may break the bounds of a
/// file, because it has no aliases.
const READ_AGAIN: usize = 64 * 1024;

/// Reads any text as a template.
///
/// # Panics
/// If an error points outside the file, there are too many errors, or the canonical form is too
/// large or is another template.
#[doc(hidden)]
pub fn exercise(text: &str) {
    match TemplateFile::read("fuzz.yaml", text) {
        Ok(file) => check_canonical(&file),
        Err(errors) => check_errors(&errors, text),
    }
}

fn check_canonical(file: &TemplateFile) {
    let canonical = file.canonical();
    assert!(canonical.len() <= CANONICAL_FACTOR * (TEMPLATE_BYTES + YAML_REPLAYED_BYTES));
    if canonical.len() <= READ_AGAIN {
        match TemplateFile::read("fuzz.yaml", canonical) {
            Ok(again) => assert_eq!(again.hash(), file.hash(), "{canonical}"),
            Err(errors) => check_errors(&errors, ""),
        }
    }
}

fn check_errors(errors: &TemplateErrors, text: &str) {
    let lines = text.split(['\n', '\r']).count();
    assert!((1..=ERRORS_REPORTED).contains(&errors.as_slice().len()), "{errors}");
    for error in errors.as_slice() {
        let line = error.position.line as usize;
        assert!((1..=lines).contains(&line) && !error.message.is_empty(), "{errors}");
    }
}
