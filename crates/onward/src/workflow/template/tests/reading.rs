//! Reading of templates for tests.

use super::super::{Template, TemplateError, TemplateErrors, TemplateFile};

/// Reads a template that has no errors.
#[track_caller]
pub(super) fn read(text: &str) -> Template {
    match TemplateFile::read("test.yaml", text) {
        Ok(file) => file.template().clone(),
        Err(errors) => panic!("{errors}\n---\n{text}"),
    }
}

/// Returns the errors of a template that has some.
#[track_caller]
pub(super) fn errors_of(file: &str, text: &str) -> TemplateErrors {
    TemplateFile::read(file, text).map(|read| format!("{:?}", read.template())).unwrap_err()
}

/// Returns the only error of a template.
#[track_caller]
pub(super) fn error_of(text: &str) -> TemplateError {
    let errors = errors_of("test.yaml", text);
    let [error] = errors.as_slice() else { panic!("not one error:\n{errors}") };
    error.clone()
}
