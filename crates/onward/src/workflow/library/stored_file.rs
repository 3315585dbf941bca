//! Reading a stored template for the runs that pin it.

use onward_store::{Name, Store, StoreReads};

use super::collections::TEMPLATES;
use crate::error::{Error, Result};
use crate::workflow::template::{TemplateFile, TemplateHash};

/// Returns the stored template of a hash; `None` if the store does not have it.
///
/// # Errors
/// If the store could not be read, or this version cannot read the template.
pub(crate) async fn stored_file(store: &dyn Store, hash: TemplateHash) -> Result<Option<TemplateFile>> {
    let document = store.document(Name::new(TEMPLATES)?, hash.to_string()).await?;
    let Some(document) = document else { return Ok(None) };
    let content = document.content.unwrap_or_default();
    let name = document.index.first().map_or("template", String::as_str);
    let text = String::from_utf8_lossy(&content);
    let file = TemplateFile::read(name, &text).map_err(|errors| {
        Error::invalid(format!("this version cannot read the stored template {hash} of `{name}`: {errors}"))
    })?;
    Ok(Some(file))
}
