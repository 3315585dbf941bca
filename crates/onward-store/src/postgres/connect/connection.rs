//! Connections, made when they are needed and made again when they broke.

use std::collections::HashMap;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket, Statement};

use crate::api::error::Result;
use crate::postgres::connect::encryption::{Encrypted, Tls};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::is_plan_gone;
use crate::postgres::sql::{BEGIN, BEGIN_WITH_SETTINGS};

/// How many statements one connection keeps prepared; further ones are planned each time.
const STATEMENTS: usize = 256;

/// A connection of our own.
pub(in crate::postgres) type OwnedConnection = ServerConnection<'static>;

/// A connection, with the statements that the server has planned for it.
#[derive(Debug)]
pub(in crate::postgres) struct ServerConnection<'c> {
    client: Ownership<'c>,
    /// `None` where each transaction may meet another server process, as behind a pooler.
    plans: Option<PreparedStatements>,
}

/// Whose a connection is.
#[derive(Debug)]
enum Ownership<'c> {
    Own(Client),
    Lent(&'c Client),
}

impl Deref for Ownership<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Own(client) => client,
            Self::Lent(client) => client,
        }
    }
}

#[derive(Debug)]
struct PreparedStatements {
    statements: Mutex<HashMap<String, Statement>>,
    /// Whether connections made from now on keep any.
    are_kept: Arc<AtomicBool>,
}

type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

/// What is done with each row.
pub(in crate::postgres) type RowHandler<'e> = dyn FnMut(Row) -> Result<()> + Send + 'e;

impl ServerConnection<'_> {
    pub(in crate::postgres) fn new(client: Client) -> OwnedConnection {
        OwnedConnection { client: Ownership::Own(client), plans: None }
    }

    /// Somebody else's connection. Nothing is left on it.
    pub(in crate::postgres) fn lent(client: &Client) -> ServerConnection<'_> {
        ServerConnection { client: Ownership::Lent(client), plans: None }
    }

    /// Has the server keep plans for it, and settings: only for a connection straight to the
    /// server.
    pub(in crate::postgres) async fn keeping_plans(
        mut self,
        settings: &str,
        are_kept: &Arc<AtomicBool>,
    ) -> Result<Self> {
        if are_kept.load(Ordering::Relaxed) {
            self.batch_execute(settings).await.map_err(classified)?;
            self.plans = Some(PreparedStatements { statements: Mutex::default(), are_kept: Arc::clone(are_kept) });
        }
        Ok(self)
    }

    /// How a transaction that writes begins on it.
    pub(in crate::postgres) fn begin(&self) -> &'static str {
        if self.plans.is_some() { BEGIN } else { BEGIN_WITH_SETTINGS }
    }

    /// Sends a statement when it is first polled, whether it is prepared or not, so that what is
    /// polled in an order arrives in that order. One that is not is prepared behind its first
    /// answer.
    pub(in crate::postgres) async fn query_typed(
        &self,
        text: &str,
        parameters: &Parameters<'_>,
    ) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
        if let Some(statement) = self.prepared(text) {
            let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
            let rows = self.client.query(&statement, &values).await;
            return rows.inspect_err(|error| self.give_up_plans(error));
        }
        let rows = self.client.query_typed(text, parameters).await?;
        self.prepare(text, parameters).await;
        Ok(rows)
    }

    /// As [`query_typed`](Self::query_typed), with each row handed on as it comes: while the server
    /// makes the next ones, and without having all of them at once.
    pub(in crate::postgres) async fn each_typed(
        &self,
        text: &str,
        parameters: &Parameters<'_>,
        each: &mut RowHandler<'_>,
    ) -> Result<()> {
        let prepared = self.prepared(text);
        let rows = match &prepared {
            Some(statement) => self.client.query_raw(statement, parameters.iter().map(|(value, _)| *value)).await,
            None => {
                self.client.query_typed_raw(text, parameters.iter().map(|(value, sort)| (*value, sort.clone()))).await
            }
        };
        let rows = rows.inspect_err(|error| self.give_up_plans(error)).map_err(classified)?;
        let mut rows = pin!(rows);
        while let Some(row) =
            rows.try_next().await.inspect_err(|error| self.give_up_plans(error)).map_err(classified)?
        {
            each(row)?;
        }
        if prepared.is_none() {
            self.prepare(text, parameters).await;
        }
        Ok(())
    }

    fn prepared(&self, text: &str) -> Option<Statement> {
        self.plans.as_ref()?.statements.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
    }

    async fn prepare(&self, text: &str, parameters: &Parameters<'_>) {
        let Some(PreparedStatements { statements, .. }) = &self.plans else { return };
        if statements.lock().unwrap_or_else(PoisonError::into_inner).len() >= STATEMENTS {
            return;
        }
        let types: Vec<Type> = parameters.iter().map(|(_, sort)| sort.clone()).collect();
        // One that cannot be prepared now, because its transaction has failed, is prepared another
        // time.
        match self.client.prepare_typed(text, &types).await {
            Ok(statement) => {
                statements.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned(), statement);
            }
            Err(error) => self.give_up_plans(&error),
        }
    }

    /// There is a pooler after all, which showed so late: connections made from now on keep no
    /// plans.
    fn give_up_plans(&self, error: &tokio_postgres::Error) {
        if is_plan_gone(error)
            && let Some(plans) = &self.plans
        {
            plans.are_kept.store(false, Ordering::Relaxed);
        }
    }

    pub(in crate::postgres) async fn batch_execute(
        &self,
        text: &str,
    ) -> std::result::Result<(), tokio_postgres::Error> {
        self.client.batch_execute(text).await
    }

    pub(in crate::postgres) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// Where the server is, and how it is reached.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct Address {
    pub(in crate::postgres) config: Config,
    pub(super) tls: Tls,
}

impl Address {
    /// Makes a connection, which somebody has to drive.
    pub(in crate::postgres) async fn connect(&self) -> Result<(Client, Connection<Socket, Encrypted>)> {
        self.config.connect(self.tls.clone()).await.map_err(classified)
    }
}

/// Makes a connection, and has the runtime drive it for as long as the client lives.
pub(in crate::postgres) async fn connect(address: &Address) -> Result<OwnedConnection> {
    let (client, connection) = address.connect().await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
    Ok(OwnedConnection::new(client))
}
