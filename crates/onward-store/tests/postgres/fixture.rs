//! Stores on the server that the tests have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use onward_store::{
    Changes, Clock, Durability, NewsReceiver, PostgresOptions, PostgresStore, Store, StoreDecorator, StoreInfo,
};
use onward_testkit::{Conditions, Fixture, Opening, Place, close_sessions};

/// Where the server is; `cargo xtask test` sets it.
const URL: &str = "ONWARD_POSTGRES_URL";

/// Where a pooler in transaction mode before the same server is.
const POOLER_URL: &str = "ONWARD_PGBOUNCER_URL";

/// Whoever builds these tests has a server: they do not pass without one.
fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} does not say where PostgreSQL is; `cargo xtask test` starts a server and sets it")
    })
}

/// A store of its own on the server, which nobody else has.
pub(crate) fn options() -> PostgresOptions {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let schema = format!("t{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
    // Not to wait for the disk: what survives a crash is shown elsewhere. Few connections: many tests run at once.
    PostgresStore::options().schema(schema).durability(Durability::Normal).readers(1)
}

/// Opens a store on the server.
pub(crate) async fn open(options: PostgresOptions) -> PostgresStore {
    options.open(&url(URL)).await.expect("a store opens")
}

/// Stores in a schema of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InSchema;

/// Two stores on one schema, used in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InTurn;

/// Stores that reach the server through a pooler in transaction mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThroughPooler;

#[derive(Debug)]
struct SchemaPlace(PostgresOptions, &'static str);

#[derive(Debug)]
struct TurnPlace(PostgresOptions);

impl Fixture for InSchema {
    fn place(&self) -> Box<dyn Place> {
        Box::new(SchemaPlace(options(), URL))
    }
}

impl Fixture for InTurn {
    fn place(&self) -> Box<dyn Place> {
        Box::new(TurnPlace(options()))
    }
}

impl Fixture for ThroughPooler {
    fn place(&self) -> Box<dyn Place> {
        // A pooler passes no messages in this mode.
        Box::new(SchemaPlace(options().listen(false), POOLER_URL))
    }
}

fn under(options: &PostgresOptions, conditions: &Conditions) -> PostgresOptions {
    options.clone().payload_limit(conditions.payload_limit).clock(conditions.clock.clone())
}

impl Place for SchemaPlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let options = under(&self.0, conditions);
        Box::pin(async move {
            let store = options.open(&url(self.1)).await.expect("a store opens");
            // Nobody else has the store open, so what is left is of the one that was dropped.
            close_sessions(&store).await;
            Arc::new(store) as Arc<dyn Store>
        })
    }
}

impl Place for TurnPlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let options = under(&self.0, conditions);
        Box::pin(async move {
            let (one, other) = (open(options.clone()).await, open(options).await);
            close_sessions(&one).await;
            Arc::new(Turns { stores: [one, other], calls: AtomicUsize::new(0) }) as Arc<dyn Store>
        })
    }
}

#[derive(Debug)]
struct Turns {
    stores: [PostgresStore; 2],
    calls: AtomicUsize,
}

impl StoreDecorator for Turns {
    fn inner(&self) -> &dyn Store {
        &self.stores[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }

    fn changes(&self) -> Changes {
        self.stores[0].changes()
    }

    fn news(&self) -> NewsReceiver {
        self.stores[0].news()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Store::clock(&self.stores[0])
    }

    fn info(&self) -> StoreInfo {
        self.stores[0].info()
    }
}
