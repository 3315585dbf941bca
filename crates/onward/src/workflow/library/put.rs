//! Putting templates into the store.

use onward_store::{ExpectedVersion, Name, PutDocument, Refusal, StoreReads, Write};

use super::collections::{NAMES, TEMPLATES};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::template::{TemplateFile, TemplateHash};

/// The number of tries. Each fails only if another process has put the content or the label since
/// it was read, and neither ever changes.
const TRIES: usize = 4;

/// Stored templates of workflows. A template is found by its name, by its name and label, and by
/// its hash. A stored content never changes, and a label belongs to one content.
impl Engine {
    /// Stores a template and makes it the newest of its name. A template that is stored already
    /// becomes the newest again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use onward::Engine;
    /// use onward::workflow::template::TemplateFile;
    ///
    /// let engine = Engine::builder().memory().open().await?;
    /// let file = TemplateFile::read("order.yaml", "version: '1'\nsteps: {mail: {task: mail}}\n")?;
    /// let hash = engine.put_template(&file).await?;
    ///
    /// let newest = engine.template("order", None).await?.expect("it was put");
    /// assert_eq!((newest.record.hash, newest.record.label.as_str()), (hash, "1"));
    /// assert_eq!(engine.template_by_hash(hash).await?, Some(newest));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if another content of the name has the label, with both
    /// hashes, and for a canonical form or a label beyond the bounds of a document; the store's
    /// error if it could not keep the template.
    pub async fn put_template(&self, file: &TemplateFile) -> Result<TemplateHash> {
        let mut last = None;
        for _ in 0..TRIES {
            let writes = writes(self, file).await?;
            match self.apply(Write::All(writes)).await {
                Ok(_) => return Ok(file.hash()),
                Err(error) if is_outdated(&error) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::unexpected("a template")))
    }
}

fn is_outdated(error: &Error) -> bool {
    let Some(Refusal::InAll { refusal, .. }) = error.refusal() else { return false };
    matches!(**refusal, Refusal::DocumentChanged { .. })
}

/// Returns the writes that the store lacks for a template to be the newest of its name.
async fn writes(engine: &Engine, file: &TemplateFile) -> Result<Vec<Write>> {
    let (name, label, hash) = (file.template().name.clone(), file.label(), file.hash());
    let store = &engine.inner.store;
    let mut writes = Vec::with_capacity(3);
    if store.document(Name::new(TEMPLATES)?, hash.to_string()).await?.is_none() {
        writes.push(new_template(file, &name, &label)?);
    }
    match engine.named_hash(&format!("{name}@{label}")).await? {
        None => writes.push(new_label(format!("{name}@{label}"), hash)?),
        Some(known) if known == hash => {}
        Some(known) => return Err(taken(&name, &label, known, hash)),
    }
    let newest = PutDocument { index: vec![name.clone()], ..named(name, hash)? };
    writes.push(Write::PutDocument(Box::new(newest)));
    Ok(writes)
}

fn new_template(file: &TemplateFile, name: &str, label: &str) -> Result<Write> {
    let content = file.canonical().to_owned();
    let document = PutDocument {
        expect: ExpectedVersion::Absent,
        content_type: "application/json".to_owned(),
        index: vec![name.to_owned(), label.to_owned()],
        ..PutDocument::new(Name::new(TEMPLATES)?, file.hash().to_string(), content)
    };
    Ok(Write::PutDocument(Box::new(document)))
}

fn new_label(reference: String, hash: TemplateHash) -> Result<Write> {
    let document = PutDocument { expect: ExpectedVersion::Absent, ..named(reference, hash)? };
    Ok(Write::PutDocument(Box::new(document)))
}

pub(super) fn named(key: String, hash: TemplateHash) -> Result<PutDocument> {
    let document = PutDocument::new(Name::new(NAMES)?, key, hash.to_string());
    Ok(PutDocument { content_type: "text/plain".to_owned(), ..document })
}

#[cold]
fn taken(name: &str, label: &str, known: TemplateHash, hash: TemplateHash) -> Error {
    Error::invalid(format!(
        "the label `{label}` of the workflow `{name}` belongs to the content {known}, and the content to put is {hash}; \
         give it another `version`"
    ))
}
