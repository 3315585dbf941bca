//! The command that `--changed-command` gave to a named run.
//!
//! Each line of a named run has the tag of its command, so the newest line identifies the command
//! of the run. A run that continues with another command may have no new line, so a document
//! remembers the command with the newest line at that time. The tag of a later line is newer.

use onward_store::{ExpectedVersion, Name, PutDocument, Store, StoreReads, TaskId, TaskRecord, Write};
use serde::{Deserialize, Serialize};

use super::identity::COMMAND_TAG;
use crate::apply::apply_one;

/// The collection of the documents, by the name of their run.
const COLLECTION: &str = "onward.each";

/// The content of a document.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ChangedCommand {
    /// The newest line when the command changed.
    newest: TaskId,
    /// The tag of the command.
    command: String,
}

/// Returns the tag of the command of a run, whose newest line with such a tag is `newest`. Returns
/// `None` if neither has one.
pub(super) async fn command_of(store: &dyn Store, run: &str, newest: &TaskRecord) -> anyhow::Result<Option<String>> {
    let document = store.document(Name::new(COLLECTION)?, run.to_owned()).await?;
    let content = document.and_then(|document| document.content);
    // A content that cannot be read is of another version, which the tag of the line stands in for.
    let changed = content.and_then(|content| serde_json::from_slice::<ChangedCommand>(&content).ok());
    let changed = changed.filter(|changed| newest.id <= changed.newest).map(|changed| changed.command);
    Ok(changed.or_else(|| newest.tags.get(COMMAND_TAG).map(str::to_owned)))
}

/// Remembers the command of a run whose newest line is `newest`.
pub(super) async fn remember(store: &dyn Store, run: &str, newest: TaskId, command: &str) -> anyhow::Result<()> {
    let content = serde_json::to_vec(&ChangedCommand { newest, command: command.to_owned() })?;
    let put = PutDocument {
        content_type: "application/json".to_owned(),
        ..PutDocument::new(Name::new(COLLECTION)?, run, content)
    };
    apply_one(store, Write::PutDocument(Box::new(put))).await.map(drop)
}

/// Forgets the command of a run.
pub(super) async fn forget(store: &dyn Store, run: &str) -> anyhow::Result<()> {
    let (collection, key) = (Name::new(COLLECTION)?, run.to_owned());
    apply_one(store, Write::DeleteDocument { collection, key, expect: ExpectedVersion::Any }).await.map(drop)
}
