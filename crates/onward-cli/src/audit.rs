//! Audit records of changes that the command line makes on the store itself.

use std::future::Future;
use std::sync::Arc;

use onward_server::http::CommandLineChange;
use onward_store::Store;

/// Makes a change of a command. Each of its commits has an audit record with the user of this
/// process.
pub(crate) async fn audited<F: Future>(
    store: Arc<dyn Store>,
    command: &str,
    object: String,
    change: impl FnOnce(Arc<dyn Store>) -> F,
) -> F::Output {
    let user = format!("command line, user {}", rustix::process::getuid().as_raw());
    CommandLineChange { user, action: format!("onward {command}"), object }.run(store, change).await
}
