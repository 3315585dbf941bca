//! Changes of the command line, which have audit records as those of requests do.

use std::future::Future;
use std::sync::Arc;

use onward_store::Store;

use super::audit::AuditRecord;
use super::recording_store::RecordingStore;
use super::scope::{ChangeScope, in_scope};
use crate::http::access::Actor;

/// A change that a command makes on the store itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLineChange {
    /// The user of the operating system, as audit records name it.
    pub user: String,
    /// The command, such as `onward account role`.
    pub action: String,
    /// The thing that it changes.
    pub object: String,
}

impl CommandLineChange {
    /// Makes the change. `change` receives the store that adds the audit record to each commit.
    pub async fn run<F: Future>(self, store: Arc<dyn Store>, change: impl FnOnce(Arc<dyn Store>) -> F) -> F::Output {
        let id = format!("command-{:016x}", fastrand::u64(..));
        let record = AuditRecord::new(&Actor::of_command_line(self.user), None, &id, self.action, &self.object);
        let scope = Arc::new(ChangeScope::new(Some(record), None));
        in_scope(scope, change(Arc::new(RecordingStore::new(store)))).await
    }
}
