//! A database of awa, and a worker on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use awa::model::{QueueCounts, migrations};
use awa::{Client, ClientBuilder, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use bench_protocol::{Latencies, Ledger, Order, Request, monotonic_nanoseconds, now};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

pub(crate) const QUEUE: &str = "default";
/// The connections of a worker.
const CONNECTIONS: u32 = 20;
const WORKERS: u32 = 500;
const CLAIMERS: u16 = 2;
/// The intervals at which awa's rings rotate, and at which a worker polls for tasks without a
/// notification.
const QUEUE_ROTATION: Duration = Duration::from_secs(1);
const LEASE_ROTATION: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(50);
/// The interval of the check whether all tasks have ended, and its time limit.
pub(crate) const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(300);

/// A job with the payload of the rows.
#[derive(Debug, Clone, Serialize, Deserialize, JobArgs)]
#[serde(transparent)]
pub(crate) struct PlaceOrder(pub(crate) Order);

/// The tasks that handlers saw.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ledger: Ledger,
    pub(crate) starts: Mutex<Latencies>,
}

impl Seen {
    fn see(&self, order: &Order) {
        if order.submitted > 0 {
            let latency = Duration::from_nanos(monotonic_nanoseconds() - order.submitted);
            self.starts.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
        }
        self.ledger.ran(order.number);
    }
}

/// Connections to awa's tables.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) pool: PgPool,
    pub(crate) store: Arc<QueueStorage>,
}

/// Opens connections and creates the tables.
pub(crate) async fn open(request: &Request, connections: u32) -> Result<Database> {
    let pool = PgPoolOptions::new().max_connections(connections).connect(request.server()?).await?;
    migrations::run(&pool).await?;
    let store = Arc::new(QueueStorage::new(QueueStorageConfig::default())?);
    store.install(&pool).await?;
    Ok(Database { pool, store })
}

impl Database {
    /// Returns the number of jobs in each state.
    pub(crate) async fn counts(&self) -> Result<QueueCounts> {
        Ok(self.store.queue_counts(&self.pool, QUEUE).await?)
    }
}

fn builder(database: &Database, settings: &str) -> Result<ClientBuilder> {
    let builder = Client::builder(database.pool.clone());
    match settings {
        "default" => Ok(builder.queue(QUEUE, QueueConfig::default())),
        "tuned" => {
            let queue = QueueConfig {
                max_workers: WORKERS,
                claimers: CLAIMERS,
                poll_interval: LOOK,
                deadline_duration: Duration::ZERO,
                ..QueueConfig::default()
            };
            let storage = QueueStorageConfig::default();
            Ok(builder.queue(QUEUE, queue).queue_storage(storage, QUEUE_ROTATION, LEASE_ROTATION))
        }
        other => bail!("awa has no settings `{other}`"),
    }
}

/// A worker that has not started yet.
pub(crate) struct Crew {
    pub(crate) database: Database,
    pub(crate) client: Client,
    pub(crate) seen: Arc<Seen>,
}

impl Crew {
    pub(crate) async fn new(request: &Request) -> Result<Self> {
        let database = open(request, CONNECTIONS).await?;
        let seen = Arc::new(Seen { ledger: Ledger::new(request.row.count), starts: Mutex::default() });
        let handler = seen.clone();
        let client = builder(&database, &request.settings)?
            .register::<PlaceOrder, _, _>(move |order, _context| {
                handler.see(&order.0);
                async { Ok(JobResult::Completed) }
            })
            .build()?;
        Ok(Self { database, client, seen })
    }

    /// Waits until `count` jobs have run and the tables show that as many have ended.
    pub(crate) async fn until_ended(&self, count: usize) -> Result<()> {
        let started = now();
        while self.seen.ledger.total() < count as u64 || self.database.counts().await?.terminal < i64::try_from(count)?
        {
            ensure!(
                started.elapsed() < PATIENCE,
                "after {} s: {:?}",
                PATIENCE.as_secs(),
                self.database.counts().await?
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}
