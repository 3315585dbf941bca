//! The one task of a store that writes: it takes every call that waits into one transaction.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use super::connection::connect;
use super::error::concerns_everyone;
use super::store::Shared;
use super::transaction::{Fate, apply, has_happened};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::Ran;
use crate::outcome::Outcome;
use crate::write::Write;

/// How many writes one transaction takes in, unless a single call has more.
const WRITES: usize = 4096;

/// After how many bytes of payloads and results a transaction takes no further call in: the server takes a gigabyte in one statement.
const BYTES: usize = 64 * 1024 * 1024;

/// For how long a transaction is tried again before its callers are told.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first pause before the next try; each is twice as long as the one before, up to a second.
const PAUSE: Duration = Duration::from_millis(5);

/// A caller's writes, and where the answer goes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) writes: Vec<Write>,
    pub(super) answer: oneshot::Sender<Result<Vec<Outcome>>>,
}

/// Writes until the store is dropped, at first over the connection on which it was opened.
pub(super) async fn run(shared: Arc<Shared>, mut calls: mpsc::Receiver<Call>, client: Client) {
    let mut writer = Writer { shared, client: Some(client) };
    while let Some(first) = calls.recv().await {
        let mut batch = vec![first];
        let (mut writes, mut bytes) = (batch[0].writes.len(), bytes_of(&batch[0].writes));
        while batch.len() < limits::COMMIT
            && writes < WRITES
            && bytes < BYTES
            && let Ok(call) = calls.try_recv()
        {
            writes += call.writes.len();
            bytes += bytes_of(&call.writes);
            batch.push(call);
        }
        writer.commit(batch).await;
    }
}

fn bytes_of(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Submit(new) => new.payload.len(),
        Write::Complete { result, .. } => result.as_ref().map_or(0, bytes::Bytes::len),
        Write::All(writes) => bytes_of(writes),
        _ => 0,
    };
    writes.iter().map(one).sum()
}

struct Writer {
    shared: Arc<Shared>,
    client: Option<Client>,
}

impl Writer {
    /// All in one transaction; if that cannot be, each call in one of its own.
    async fn commit(&mut self, batch: Vec<Call>) {
        let calls: Vec<&[Write]> = batch.iter().map(|call| call.writes.as_slice()).collect();
        match self.try_to_commit(&calls).await {
            Ok(outcomes) => {
                for (call, outcomes) in batch.into_iter().zip(outcomes) {
                    // A caller that has gone does not want it.
                    let _ = call.answer.send(Ok(outcomes));
                }
            }
            Err(error) if batch.len() == 1 || concerns_everyone(&error) => {
                batch.into_iter().for_each(|call| drop(call.answer.send(Err(error.clone()))));
            }
            Err(_) => {
                for call in batch {
                    let outcomes = self.try_to_commit(&[&call.writes]).await;
                    let _ = call.answer.send(outcomes.map(|mut outcomes| outcomes.pop().unwrap_or_default()));
                }
            }
        }
    }

    async fn try_to_commit(&mut self, calls: &[&[Write]]) -> Result<Vec<Vec<Outcome>>> {
        let (mut pause, mut waited) = (PAUSE, Duration::ZERO);
        loop {
            let error = match self.once(calls).await {
                Ok(ran) => return Ok(self.shared.tell(ran)),
                Err((error, false)) => return Err(error),
                Err((error, true)) => error,
            };
            if waited >= PATIENCE {
                return Err(error);
            }
            tracing::debug!(%error, "a transaction is tried again");
            tokio::time::sleep(pause).await;
            (waited, pause) = (waited + pause, (pause * 2).min(Duration::from_secs(1)));
        }
    }

    /// One try; with an error, whether to try again.
    async fn once(&mut self, calls: &[&[Write]]) -> std::result::Result<Ran, (Error, bool)> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                let connected = connect(&self.shared.config).await;
                connected.map_err(|error| {
                    let again = error.is_transient();
                    (error, again)
                })?
            }
        };
        match apply(&client, &self.shared, calls).await {
            Fate::Committed(ran) => {
                self.client = Some(client);
                Ok(ran)
            }
            Fate::Failed { error, again } => {
                self.client = Some(client);
                Err((error, again))
            }
            Fate::Unknown { ran, transaction, error } => match self.settle(&transaction).await {
                Some(true) => Ok(ran),
                Some(false) => Err((error, true)),
                None => Err((error, false)),
            },
        }
    }

    /// Whether a transaction whose commit was not answered happened; `None` if nobody can be asked.
    async fn settle(&mut self, transaction: &str) -> Option<bool> {
        let (mut pause, mut waited) = (PAUSE, Duration::ZERO);
        while waited < PATIENCE {
            if let Ok(client) = connect(&self.shared.config).await
                && let Ok(Some(happened)) = has_happened(&client, transaction).await
            {
                self.client = Some(client);
                return Some(happened);
            }
            tokio::time::sleep(pause).await;
            (waited, pause) = (waited + pause, (pause * 2).min(Duration::from_secs(1)));
        }
        None
    }
}
