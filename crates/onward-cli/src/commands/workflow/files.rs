//! Files of templates.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use onward::workflow::template::{TemplateErrors, TemplateFile};

use super::command::open_to_read;
use super::reference::Reference;
use crate::exit_code::wrong_usage;
use crate::options::GlobalOptions;

/// A template that was read from a file, or the errors of the file.
pub(super) type Read = (PathBuf, Result<TemplateFile, TemplateErrors>);

/// Reads a template from a file.
///
/// # Errors
/// Returns a usage error if the file cannot be read. Errors of the template are part of the result.
pub(super) fn read(path: &Path) -> anyhow::Result<Read> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong_usage(format!("cannot read {}: {error}; name a file of a template", path.display())))?;
    Ok((path.to_owned(), TemplateFile::read(&path.display().to_string(), &text)))
}

/// Reads a template from a file of which the user expects that it has no errors.
///
/// # Errors
/// Returns a usage error that lists every error of the template.
pub(crate) fn read_valid(path: &Path) -> anyhow::Result<TemplateFile> {
    let (_, read) = read(path)?;
    read.map_err(|errors| wrong_usage(format!("the workflow cannot be used:\n{errors}")))
}

/// Reads the template that a user names: a file, or a stored template. A file of that name goes
/// before a stored template.
///
/// # Errors
/// Returns a usage error if there is no such template, or if it has errors.
pub(super) async fn read_file_or_stored(options: &GlobalOptions, text: &str) -> anyhow::Result<TemplateFile> {
    let path = Path::new(text);
    if path.is_file() {
        return read_valid(path);
    }
    let reference: Reference = text.parse().map_err(|error: String| wrong_usage(error))?;
    let no_file = || format!("there is no file `{text}`, and no stored template of that name was found");
    let store = open_to_read(options).await.with_context(no_file)?;
    Ok(reference.find(&store).await.with_context(no_file)?.read()?)
}
