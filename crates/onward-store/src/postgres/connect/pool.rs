//! A few connections for reads, and whether a pooler stands before the server.

use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::error::{Error, Result};
use crate::postgres::connect::connection::{Address, OwnedConnection, connect};
use crate::postgres::connect::error::classified;
use crate::postgres::sql::READER_SETTINGS;

/// A few connections for reads.
#[derive(Debug)]
pub(in crate::postgres) struct Pool {
    address: Address,
    idle: Mutex<Vec<OwnedConnection>>,
    permits: Semaphore,
    plans: Arc<AtomicBool>,
}

/// A connection of the pool, to itself. One that is dropped before it is [given
/// back](Self::give_back) is closed, for nobody knows what is under way on it.
pub(in crate::postgres) struct Pooled<'a> {
    client: OwnedConnection,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    /// Of at most `size` connections, the first of which is there.
    pub(in crate::postgres) fn new(
        address: Address,
        size: usize,
        first: OwnedConnection,
        plans: Arc<AtomicBool>,
    ) -> Self {
        Self { address, idle: Mutex::new(vec![first]), permits: Semaphore::new(size), plans }
    }

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
    /// Gives it back after everything on it has come to an end.
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

/// How often two connections are compared.
const LOOKS: usize = 4;

/// Whether two connections get one another's server processes between transactions, as behind a
/// pooler: an idle one gives the same process to both, a busy one gives each another one now and
/// then. Holds no process while it asks for another, of which a pooler may have no more.
pub(in crate::postgres) async fn are_pooled(one: &OwnedConnection, other: &OwnedConnection) -> Result<bool> {
    let own = process(one).await?;
    for _ in 0..LOOKS {
        if process(other).await? == own || process(one).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn process(link: &OwnedConnection) -> Result<i32> {
    let rows = link.query_typed("SELECT pg_backend_pid()", &[]).await.map_err(classified)?;
    let process = rows.first().map(|row| row.try_get(0)).transpose().map_err(classified)?;
    process.ok_or_else(|| Error::io("PostgreSQL did not say which process serves a connection"))
}
