//! The traffic: tasks, runs and orchestrations, at a bounded rate.

use std::time::Duration;

use fastrand::Rng;
use onward::task::Dependencies;
use onward::{Engine, Name, NewTask, StoreReads as _, TaskId};
use serde_json::json;

use super::catalog;
use super::settings::PAUSED_QUEUE;
use super::subscription::Subscription;

/// The seed of all random choices: each start of the demonstration shows the same shop.
const SEED: u64 = 42;

/// The time between two tasks.
const PAUSE: Duration = Duration::from_millis(250);

/// The tasks that are submitted at the start.
const FIRST: usize = 120;

/// The number of waiting tasks above which a queue gets no more.
const BACKLOG: u64 = 80;

/// The number of tasks between two orders.
const TASKS_PER_ORDER: u64 = 24;

/// The number of orders that wait for a person at once.
const LARGE_ORDERS: usize = 4;

/// A generator of traffic.
#[derive(Debug)]
pub(super) struct Traffic {
    engine: Engine,
    random: Rng,
    orders: u64,
    /// The runs of large orders that have not ended.
    large: Vec<TaskId>,
    /// The run of the last import.
    import: Option<TaskId>,
    /// The queues that get no more tasks for now.
    full: Vec<Name>,
}

impl Traffic {
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, random: Rng::with_seed(SEED), orders: 1000, large: Vec::new(), import: None, full: Vec::new() }
    }

    /// Submits what the shop has at the start.
    pub(super) async fn submit_first(&mut self) -> anyhow::Result<()> {
        let mut tasks = Vec::new();
        for _ in 0..FIRST {
            tasks.push(catalog::draw(&mut self.random)?);
        }
        for _ in 0..12 {
            tasks.push(catalog::reminder(&mut self.random)?);
        }
        self.engine.submit_all(tasks).await?;
        self.submit_waiting().await?;
        for (customer, cents) in [("ada", 999), ("grace", 1299), ("dennis", 499), ("radia", 2499)] {
            self.engine.submit(Subscription { customer: customer.to_owned(), cents, month: 1 }).await?;
        }
        for _ in 0..4 {
            self.start_order(false).await?;
        }
        self.renew().await
    }

    /// Submits tasks that wait: for a pause to end, for other tasks, and for another program.
    async fn submit_waiting(&mut self) -> anyhow::Result<()> {
        for index in ["orders", "customers", "pictures"] {
            let task = catalog::task("index.rebuild", PAUSED_QUEUE, "acme", &json!({ "index": index }))?;
            self.engine.submit_task(task).await?;
        }
        let mut reports = Vec::new();
        for _ in 0..3 {
            reports.push(self.engine.submit_task(catalog::report(&mut self.random)?).await?.id());
        }
        let close = catalog::task("month.close", "reports", "acme", &json!({ "month": "2026-11" }))?;
        self.engine.submit_task(NewTask { depends_on: Dependencies::on(reports), ..close }).await?;
        let settle = catalog::task(catalog::EXTERNAL_KIND, "default", "globex", &json!({ "bank": "example" }))?;
        self.engine.submit_task(settle).await?;
        Ok(())
    }

    /// Submits a task each [`PAUSE`], and orders between them, until it is dropped.
    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        for number in 1_u64.. {
            tokio::time::sleep(PAUSE).await;
            if number.is_multiple_of(TASKS_PER_ORDER) {
                self.look_at_queues().await?;
                self.start_order(false).await?;
                self.renew().await?;
            }
            let task = catalog::draw(&mut self.random)?;
            if !self.full.contains(&task.queue) {
                self.engine.submit_task(task).await?;
            }
        }
        Ok(())
    }

    async fn look_at_queues(&mut self) -> anyhow::Result<()> {
        let queues = self.engine.store().queues().await?;
        self.full = queues.into_iter().filter(|queue| queue.waiting > BACKLOG).map(|queue| queue.name).collect();
        Ok(())
    }

    /// Starts large orders and an import for those that have ended.
    async fn renew(&mut self) -> anyhow::Result<()> {
        let mut open = Vec::new();
        for id in std::mem::take(&mut self.large) {
            if self.is_open(id).await? {
                open.push(id);
            }
        }
        self.large = open;
        while self.large.len() < LARGE_ORDERS {
            let id = self.start_order(true).await?;
            self.large.push(id);
        }
        if !matches!(self.import, Some(id) if self.is_open(id).await?) {
            let input = json!({ "supplier": format!("supplier-{}", self.random.u8(1..9)) });
            self.import = Some(self.engine.start_run("catalog/import").input(&input).await?.id);
        }
        Ok(())
    }

    async fn is_open(&self, run: TaskId) -> anyhow::Result<bool> {
        Ok(self.engine.store().task(run).await?.is_some_and(|task| !task.state.is_ended()))
    }

    async fn start_order(&mut self, is_large: bool) -> anyhow::Result<TaskId> {
        self.orders += 1;
        let input = catalog::order_input(&mut self.random, self.orders, is_large);
        Ok(self.engine.start_run("shop/order").input(&input).await?.id)
    }
}
