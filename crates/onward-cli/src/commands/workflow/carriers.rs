//! The processes that carry runs on.

use onward_store::{Name, SessionRecord, Store, StoreReads};

/// The command that carries the runs of a store on.
pub(crate) const REMEDY: &str = "`onward work --workflows` does, with --scripts also their scripts";

/// Returns the names of the processes on the store that carry the runs of a kind on.
pub(crate) async fn carriers(store: &dyn Store, queue: &Name, kind: &Name) -> anyhow::Result<Vec<String>> {
    let sessions = store.sessions().await?;
    Ok(sessions.into_iter().filter(|session| carries(session, queue, kind)).map(|session| session.name).collect())
}

/// Returns true if a process carries the runs of a kind on.
pub(super) fn carries(session: &SessionRecord, queue: &Name, kind: &Name) -> bool {
    session.serves_orchestration(queue, kind, None)
}
