//! Connections, made when they are needed and made again when they broke.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::{Client, Config, NoTls};

use super::error::classified;
use crate::error::{Error, Result};

/// Makes a connection, and has the runtime drive it for as long as the client lives.
pub(super) async fn connect(config: &Config) -> Result<Client> {
    let (client, connection) = config.connect(NoTls).await.map_err(classified)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
    Ok(client)
}

/// A few connections for reads.
#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
    idle: Mutex<Vec<Client>>,
    permits: Semaphore,
}

/// A connection of the pool, to itself. One that is dropped before it is [given back](Self::give_back) is closed, for nobody knows what is
/// under way on it.
pub(super) struct Pooled<'a> {
    client: Client,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    pub(super) fn new(config: Config, size: usize) -> Self {
        Self { config, idle: Mutex::default(), permits: Semaphore::new(size) }
    }

    pub(super) async fn get(&self) -> Result<Pooled<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| Error::closed())?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client = match idle.filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.config).await?,
        };
        Ok(Pooled { client, pool: self, _permit: permit })
    }
}

impl Pooled<'_> {
    /// Gives it back after everything on it has come to an end.
    pub(super) fn give_back(self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.client);
    }
}

impl Deref for Pooled<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
