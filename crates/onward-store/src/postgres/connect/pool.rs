//! The pool of connections for reads, and the detection of a pooler in front of the server.

use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::error::{Error, Result};
use crate::postgres::connect::connection::{Address, OwnedConnection, connect};
use crate::postgres::connect::error::classified;
use crate::postgres::sql::READER_SETTINGS;

/// A pool of connections for reads.
#[derive(Debug)]
pub(in crate::postgres) struct Pool {
    address: Address,
    /// The connections that are not in use.
    idle: Mutex<Vec<OwnedConnection>>,
    /// One permit per connection that may exist.
    permits: Semaphore,
    /// The store's flag for prepared statements.
    plans: Arc<AtomicBool>,
}

/// A connection of the pool in exclusive use. It is closed if it is dropped before it is [given
/// back](Self::give_back), because a statement may still be running on it.
pub(in crate::postgres) struct Pooled<'a> {
    client: OwnedConnection,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    /// Creates a pool of at most `size` connections, the first of which exists already.
    pub(in crate::postgres) fn new(
        address: Address,
        size: usize,
        first: OwnedConnection,
        plans: Arc<AtomicBool>,
    ) -> Self {
        Self { address, idle: Mutex::new(vec![first]), permits: Semaphore::new(size), plans }
    }

    /// Takes an idle connection or makes one. Waits while all are in use.
    pub(in crate::postgres) async fn get(&self) -> Result<Pooled<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| Error::closed())?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client = match idle.filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.address).await?.keeping_plans(READER_SETTINGS, &self.plans).await?,
        };
        Ok(Pooled { client, pool: self, _permit: permit })
    }
}

impl Pooled<'_> {
    /// Returns the connection to the pool. Every statement on it must have ended.
    pub(in crate::postgres) fn give_back(self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.client);
    }
}

impl Deref for Pooled<'_> {
    type Target = OwnedConnection;

    fn deref(&self) -> &OwnedConnection {
        &self.client
    }
}

/// The number of comparisons of two connections.
const LOOKS: usize = 4;

/// Returns true if two connections share server processes between transactions, as behind a pooler.
///
/// An idle pooler gives the same process to both. A busy one changes the process of a connection
/// now and then. The check never holds one process while it asks for another, because a pooler may
/// have only one.
pub(in crate::postgres) async fn are_pooled(one: &OwnedConnection, other: &OwnedConnection) -> Result<bool> {
    let own = process(one).await?;
    for _ in 0..LOOKS {
        if process(other).await? == own || process(one).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the number of the process that serves a connection.
async fn process(link: &OwnedConnection) -> Result<i32> {
    let rows = link.query_typed("SELECT pg_backend_pid()", &[]).await.map_err(classified)?;
    let process = rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?;
    process.ok_or_else(|| Error::io("PostgreSQL did not say which process serves a connection"))
}
