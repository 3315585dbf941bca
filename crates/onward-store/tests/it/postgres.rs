//! The PostgreSQL store under the conformance suite and against the specification, on a server that `cargo xtask test` starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_store::{Durability, PostgresOptions, PostgresStore, Store};
use onward_testkit::{Conditions, Fixture, MemoryFixture, Opening, Place, agreement, close_sessions};

use crate::agreement::SOME;

/// Where the server is; `cargo xtask test` sets it.
const URL: &str = "ONWARD_POSTGRES_URL";

/// The server's URL. Whoever builds these tests has one: they do not pass without it.
fn url() -> String {
    std::env::var(URL).unwrap_or_else(|_| {
        panic!("{URL} does not say where PostgreSQL is; `cargo xtask test` starts a server and sets it")
    })
}

/// Stores in a schema of their own, written and read over plain connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InSchema;

#[derive(Debug)]
struct SchemaPlace {
    options: PostgresOptions,
}

impl Fixture for InSchema {
    fn place(&self) -> Box<dyn Place> {
        static SCHEMAS: AtomicU64 = AtomicU64::new(0);
        let schema = format!("t{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
        // Not to wait for the disk: what survives a crash is shown elsewhere. Few connections: many tests run at once.
        let options = PostgresStore::options().schema(schema).durability(Durability::Normal).readers(1);
        Box::new(SchemaPlace { options })
    }
}

impl Place for SchemaPlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let options = self.options.clone().payload_limit(conditions.payload_limit).clock(conditions.clock.clone());
        Box::pin(async move {
            let store = options.open(&url()).await.expect("a store opens");
            // Nobody else has the store open, so what is left is of the one that was dropped.
            close_sessions(&store).await;
            Arc::new(store) as Arc<dyn Store>
        })
    }
}

mod in_schema {
    onward_testkit::conformance!(crate::postgres::InSchema);
}

#[test]
fn postgres_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &InSchema, SOME);
}
