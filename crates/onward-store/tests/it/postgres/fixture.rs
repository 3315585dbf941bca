//! Stores on the server that the tests have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_store::{
    Changes, Clock, Durability, NewsReceiver, PostgresOptions, PostgresStore, Store, StoreDecorator, StoreInfo,
};
use onward_testkit::{Conditions, Fixture, Opening, Place, close_sessions};

use super::schemas::{self, Schema};
use super::server::Way;

/// A store of its own on the server, which nobody else has.
pub(crate) fn options() -> PostgresOptions {
    with(&schemas::new_name())
}

fn with(schema: &str) -> PostgresOptions {
    // Not to wait for the disk: what survives a crash is shown elsewhere. Few connections: many tests run at once.
    PostgresStore::options().schema(schema).durability(Durability::Normal).readers(1)
}

/// Stores over a connection to the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct;

/// Stores that reach the server through a pooler in transaction mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThroughPooler;

/// Two stores on one schema, used in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InTurn;

#[derive(Debug)]
struct ServerPlace {
    way: Way,
    nodes: usize,
    schema: Option<Schema>,
}

fn place(way: Way, nodes: usize) -> Box<dyn Place> {
    Box::new(ServerPlace { way, nodes, schema: None })
}

impl Fixture for Direct {
    fn place(&self) -> Box<dyn Place> {
        place(Way::Direct, 1)
    }

    fn missing(&self) -> Option<String> {
        Way::Direct.url().err()
    }
}

impl Fixture for ThroughPooler {
    fn place(&self) -> Box<dyn Place> {
        place(Way::Pooler, 1)
    }

    fn missing(&self) -> Option<String> {
        Way::Pooler.url().err()
    }
}

impl Fixture for InTurn {
    fn place(&self) -> Box<dyn Place> {
        place(Way::Direct, 2)
    }

    fn missing(&self) -> Option<String> {
        Way::Direct.url().err()
    }
}

impl Place for ServerPlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let conditions = conditions.clone();
        Box::pin(async move {
            let url = self.way.url().expect("there is a server");
            if self.schema.is_none() {
                self.schema = Some(schemas::take(&Way::Direct.url().expect("there is a server")).await);
            }
            let schema = self.schema.as_ref().expect("it was taken");
            let options = with(&schema.0).payload_limit(conditions.payload_limit).clock(conditions.clock);
            // A pooler passes no messages in this mode.
            let options = options.listen(matches!(self.way, Way::Direct));
            let mut nodes = Vec::new();
            for _ in 0..self.nodes {
                nodes.push(options.clone().open(&url).await.expect("a store opens"));
            }
            // Nobody else has the store open, so what is left is of the one that was dropped.
            close_sessions(&nodes[0]).await;
            Arc::new(Turns { nodes, calls: AtomicUsize::new(0) }) as Arc<dyn Store>
        })
    }
}

#[derive(Debug)]
struct Turns {
    nodes: Vec<PostgresStore>,
    calls: AtomicUsize,
}

impl StoreDecorator for Turns {
    fn inner(&self) -> &dyn Store {
        &self.nodes[self.calls.fetch_add(1, Ordering::Relaxed) % self.nodes.len()]
    }

    fn changes(&self) -> Changes {
        self.nodes[0].changes()
    }

    fn news(&self) -> NewsReceiver {
        self.nodes[0].news()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Store::clock(&self.nodes[0])
    }

    fn info(&self) -> StoreInfo {
        self.nodes[0].info()
    }
}
