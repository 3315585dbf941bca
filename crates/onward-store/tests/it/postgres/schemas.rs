//! A pool of schemas for many tests. A schema is reused when its test is over, because emptying one
//! takes a fraction of the time of creating one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// The schemas that no test uses at the moment. Each has the tables of a store.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The runtime of the connection that empties schemas. It lives longer than any test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime can be made")
});

static CLIENT: tokio::sync::Mutex<Option<Client>> = tokio::sync::Mutex::const_new(None);

/// A schema with an empty store or none, which no other test uses. It returns to the pool when it
/// is dropped.
#[derive(Debug)]
pub(crate) struct Schema(pub(crate) String);

impl Drop for Schema {
    fn drop(&mut self) {
        // A failed test keeps its schema, so that a developer can look for the reason.
        if !std::thread::panicking() {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.0));
        }
    }
}

/// Returns a name that no schema has yet.
pub(crate) fn new_name() -> String {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    format!("t{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed))
}

/// Takes a schema that another test has used and empties it, or returns a new one.
pub(crate) async fn take(url: &str) -> Schema {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let Some(schema) = free else { return Schema(new_name()) };
    let statements = emptying(&schema);
    let url = url.to_owned();
    RUNTIME.spawn(async move { empty(&url, &statements).await }).await.expect("a schema is emptied");
    Schema(schema)
}

async fn empty(url: &str, statements: &str) {
    let mut client = CLIENT.lock().await;
    if client.is_none() {
        let (made, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server can be reached");
        tokio::spawn(connection);
        *client = Some(made);
    }
    client.as_ref().expect("it was made").batch_execute(statements).await.expect("a schema can be emptied");
}

/// Returns the statements that empty a schema. They take the lock of the store, so that all calls
/// of its last user are over.
fn emptying(schema: &str) -> String {
    const TABLES: [&str; 18] = [
        "task",
        "history",
        "turn",
        "output_piece",
        "message",
        "task_tag",
        "unique_key",
        "dependency",
        "batch_item",
        "small_state",
        "document",
        "document_collection",
        "log",
        "statistics",
        "day",
        "writer",
        "inbox",
        "completion",
    ];
    const SEQUENCES: [&str; 7] =
        ["last_task", "last_session", "ends", "last_entry", "last_small_state", "last_write", "last_invalidation"];
    let deletes: String = TABLES.iter().map(|table| format!("DELETE FROM {schema}.{table}; ")).collect();
    let resets: String = SEQUENCES.iter().map(|name| format!("SELECT setval('{schema}.{name}', 0); ")).collect();
    format!("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('onward {schema}', 0)); {deletes}{resets}COMMIT")
}
