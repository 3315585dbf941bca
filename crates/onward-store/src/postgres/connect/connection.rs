//! Connections: made on demand, and replaced when they break.

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

/// The most prepared statements of one connection. Further statements are planned each time.
const STATEMENTS: usize = 256;

/// A connection of the store's own.
pub(in crate::postgres) type OwnedConnection = ServerConnection<'static>;

/// A connection with the statements that are prepared on it.
#[derive(Debug)]
pub(in crate::postgres) struct ServerConnection<'c> {
    /// The driver's connection.
    client: Ownership<'c>,
    /// The prepared statements; `None` if each transaction may run in another server process, as
    /// behind a pooler.
    plans: Option<PreparedStatements>,
}

/// The ownership of a connection.
#[derive(Debug)]
enum Ownership<'c> {
    /// A connection that the store made.
    Own(Client),
    /// A connection of a caller, for the time of one call.
    Borrowed(&'c Client),
}

impl Deref for Ownership<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Own(client) => client,
            Self::Borrowed(client) => client,
        }
    }
}

/// The prepared statements of one connection.
#[derive(Debug)]
struct PreparedStatements {
    /// The statements by their text.
    statements: Mutex<HashMap<String, Statement>>,
    /// True if new connections may prepare statements; all connections of a store share this flag.
    are_kept: Arc<AtomicBool>,
}

/// The parameters of a statement, with their types. The types save the round trip that would ask
/// the server for them.
type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

/// A function that is called with each row.
pub(in crate::postgres) type RowHandler<'e> = dyn FnMut(Row) -> Result<()> + Send + 'e;

impl ServerConnection<'_> {
    /// Wraps a new connection, which prepares nothing.
    pub(in crate::postgres) fn new(client: Client) -> OwnedConnection {
        OwnedConnection { client: Ownership::Own(client), plans: None }
    }

    /// Wraps a caller's connection. No prepared statement and no setting stays on it.
    pub(in crate::postgres) fn borrowed(client: &Client) -> ServerConnection<'_> {
        ServerConnection { client: Ownership::Borrowed(client), plans: None }
    }

    /// Applies settings for the connection's lifetime, and prepares statements from now on. It does
    /// nothing behind a pooler, where neither would stay.
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

    /// Returns the statement that begins a writing transaction on this connection.
    pub(in crate::postgres) fn begin(&self) -> &'static str {
        if self.plans.is_some() { BEGIN } else { BEGIN_WITH_SETTINGS }
    }

    /// Runs a statement, and returns its rows.
    ///
    /// The first poll sends the statement, prepared or not, so statements arrive in the order in
    /// which they are polled. A statement that is not prepared yet is prepared after its first
    /// reply.
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

    /// Runs a statement like [`query_typed`](Self::query_typed), and passes each row to `each` as
    /// it arrives. Decoding overlaps with the server's work, and the rows are never all in memory
    /// at once.
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

    /// Returns the prepared statement for a text.
    fn prepared(&self, text: &str) -> Option<Statement> {
        self.plans.as_ref()?.statements.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
    }

    /// Prepares a statement, unless there are too many.
    async fn prepare(&self, text: &str, parameters: &Parameters<'_>) {
        let Some(PreparedStatements { statements, .. }) = &self.plans else { return };
        if statements.lock().unwrap_or_else(PoisonError::into_inner).len() >= STATEMENTS {
            return;
        }
        let types: Vec<Type> = parameters.iter().map(|(_, sort)| sort.clone()).collect();
        // In a failed transaction nothing can be prepared. A later use of the statement tries
        // again.
        match self.client.prepare_typed(text, &types).await {
            Ok(statement) => {
                statements.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned(), statement);
            }
            Err(error) => self.give_up_plans(&error),
        }
    }

    /// Stops preparing statements on new connections if an error shows that there is a pooler after
    /// all.
    fn give_up_plans(&self, error: &tokio_postgres::Error) {
        if is_plan_gone(error)
            && let Some(plans) = &self.plans
        {
            plans.are_kept.store(false, Ordering::Relaxed);
        }
    }

    /// Runs statements without parameters, separated by semicolons.
    pub(in crate::postgres) async fn batch_execute(
        &self,
        text: &str,
    ) -> std::result::Result<(), tokio_postgres::Error> {
        self.client.batch_execute(text).await
    }

    /// Returns true if the connection is lost.
    pub(in crate::postgres) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// The server's address, and the encryption of connections to it.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct Address {
    pub(in crate::postgres) config: Config,
    pub(super) tls: Tls,
}

impl Address {
    /// Connects. The caller has to poll the returned [`Connection`].
    pub(in crate::postgres) async fn connect(&self) -> Result<(Client, Connection<Socket, Encrypted>)> {
        self.config.connect(self.tls.clone()).await.map_err(classified)
    }
}

/// Connects, and has a tokio task poll the connection for as long as the client exists.
pub(in crate::postgres) async fn connect(address: &Address) -> Result<OwnedConnection> {
    let (client, connection) = address.connect().await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
    Ok(OwnedConnection::new(client))
}
