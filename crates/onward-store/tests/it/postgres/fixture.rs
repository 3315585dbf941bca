//! Stores on the server of the tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use onward_store::{
    Changes, Clock, Durability, Lease, NotificationReceiver, Outcome, PostgresOptions, PostgresStore, Store,
    StoreDecorator, StoreFuture, StoreInfo, Write,
};
use onward_testkit::{Conditions, Fixture, Opening, StoreLocation, close_sessions};
use tokio_postgres::{Client, NoTls};

use super::schemas::{self, Schema};
use super::server::Way;

/// Returns options for a store of its own on the server, which no other test uses.
pub(crate) fn options() -> PostgresOptions {
    with(&schemas::new_name())
}

fn with(schema: &str) -> PostgresOptions {
    // The store does not wait for the disk, because other tests show what survives a crash. It has
    // few connections, because many tests run at once.
    PostgresStore::options().schema(schema).durability(Durability::Normal).readers(1)
}

/// Stores with a direct connection to the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct;

/// Stores that reach the server through a pooler in transaction mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThroughPooler;

/// Two stores on one schema, used in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InTurn;

#[derive(Debug)]
struct ServerLocation {
    way: Way,
    nodes: usize,
    schema: Option<Schema>,
}

fn server_location(way: Way, nodes: usize) -> Box<dyn StoreLocation> {
    Box::new(ServerLocation { way, nodes, schema: None })
}

impl Fixture for Direct {
    fn location(&self) -> Box<dyn StoreLocation> {
        server_location(Way::Direct, 1)
    }

    fn missing(&self) -> Option<String> {
        Way::Direct.url().err()
    }
}

impl Fixture for ThroughPooler {
    fn location(&self) -> Box<dyn StoreLocation> {
        server_location(Way::Pooler, 1)
    }

    fn missing(&self) -> Option<String> {
        Way::Pooler.url().err()
    }
}

impl Fixture for InTurn {
    fn location(&self) -> Box<dyn StoreLocation> {
        server_location(Way::Direct, 2)
    }

    fn missing(&self) -> Option<String> {
        Way::Direct.url().err()
    }
}

impl StoreLocation for ServerLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let conditions = conditions.clone();
        Box::pin(async move {
            let nodes = self.open_nodes(&conditions).await;
            Arc::new(Turns { nodes, calls: AtomicUsize::new(0) }) as Arc<dyn Store>
        })
    }
}

impl ServerLocation {
    async fn open_nodes(&mut self, conditions: &Conditions) -> Vec<PostgresStore> {
        let url = self.way.url().expect("there is a server");
        if self.schema.is_none() {
            self.schema = Some(schemas::take(&Way::Direct.url().expect("there is a server")).await);
        }
        let schema = self.schema.as_ref().expect("it was taken");
        let options = with(&schema.0).payload_limit(conditions.payload_limit).clock(conditions.clock.clone());
        // A pooler forwards no notifications in this mode.
        let options = options.listen(matches!(self.way, Way::Direct));
        let mut nodes = Vec::new();
        for _ in 0..self.nodes {
            nodes.push(options.clone().open(&url).await.expect("a store opens"));
        }
        // No other process has the store open, so open sessions are left from the dropped store.
        close_sessions(&nodes[0]).await;
        nodes
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

    fn notifications(&self) -> NotificationReceiver {
        self.nodes[0].notifications()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Store::clock(&self.nodes[0])
    }

    fn info(&self) -> StoreInfo {
        self.nodes[0].info()
    }
}

/// Stores on which each single completion uses the function `onward_complete`, on another
/// connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletedByFunction;

impl Fixture for CompletedByFunction {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(FunctionLocation { server: ServerLocation { way: Way::Direct, nodes: 1, schema: None } })
    }

    fn missing(&self) -> Option<String> {
        Way::Direct.url().err()
    }
}

#[derive(Debug)]
struct FunctionLocation {
    server: ServerLocation,
}

impl StoreLocation for FunctionLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let conditions = conditions.clone();
        Box::pin(async move {
            let node = self.server.open_nodes(&conditions).await.remove(0);
            let url = self.server.way.url().expect("there is a server");
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("the server can be reached");
            tokio::spawn(connection);
            let schema = &self.server.schema.as_ref().expect("it was taken").0;
            let limit = format!("UPDATE {schema}.version SET payload_limit = {}", conditions.payload_limit);
            client.batch_execute(&limit).await.expect("the limit is set");
            Arc::new(Elsewhere { node, client }) as Arc<dyn Store>
        })
    }
}

struct Elsewhere {
    node: PostgresStore,
    client: Client,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl Elsewhere {
    /// Completes a task with the function. If the server rejects it, returns the store's reply,
    /// which must be a rejection too.
    async fn complete(&self, lease: Lease, result: Option<Bytes>) -> onward_store::Result<Vec<Outcome>> {
        let statement = self.node.completion_statement(lease, result.clone());
        let (task, session, claim) = (statement.task(), statement.session(), statement.claim());
        let completed =
            self.client.query(statement.text(), &[&task, &session, &claim, &statement.result()]).await.map(drop);
        let outcomes = self.node.apply(vec![Write::Complete { lease, result }]).await?;
        assert!(matches!(outcomes[..], [Outcome::Refused(_)]), "{outcomes:?} after {completed:?}");
        Ok(if completed.is_ok() { vec![Outcome::Done] } else { outcomes })
    }
}

impl StoreDecorator for Elsewhere {
    fn inner(&self) -> &dyn Store {
        &self.node
    }

    fn apply(&self, mut writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        match writes.pop() {
            Some(Write::Complete { lease, result }) if writes.is_empty() => Box::pin(self.complete(lease, result)),
            last => {
                writes.extend(last);
                Store::apply(&self.node, writes)
            }
        }
    }
}
