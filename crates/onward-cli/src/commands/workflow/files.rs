//! Files of templates.

use std::path::{Path, PathBuf};

use onward::workflow::template::{TemplateErrors, TemplateFile};

use crate::exit_code::wrong_usage;

/// A template that was read from a file, or the errors of the file.
pub(super) type Read = (PathBuf, Result<TemplateFile, TemplateErrors>);

/// Reads a template from a file.
///
/// # Errors
/// Wrong usage if the file cannot be read. Errors of the template are part of the result.
pub(super) fn read(path: &Path) -> anyhow::Result<Read> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong_usage(format!("cannot read {}: {error}; name a file of a template", path.display())))?;
    Ok((path.to_owned(), TemplateFile::read(&path.display().to_string(), &text)))
}

/// Reads a template from a file of which the user expects that it has no errors.
///
/// # Errors
/// Wrong usage with every error of the template.
pub(crate) fn read_valid(path: &Path) -> anyhow::Result<TemplateFile> {
    let (_, read) = read(path)?;
    read.map_err(|errors| wrong_usage(format!("the workflow cannot be used:\n{errors}")))
}
