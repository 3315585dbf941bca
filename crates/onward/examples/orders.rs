//! A shop whose orders are reserved, charged, approved if they are large, and shipped. A failure on
//! the way undoes the earlier steps. Each order is an orchestration. The process that runs them is
//! killed (`kill -9`) twice while it works: no order is lost, and nothing is done twice.
//!
//! `cargo run --example orders`. With a path (`cargo run --example orders STORE`) it is a worker
//! process; the shop starts such processes itself.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use onward::Output;
use onward::handlers::Finished;
use onward::observe::EventCursor;
use onward::orchestration::{Activity, Either, OrchestrationContext, select};
use onward::prelude::*;
use onward::store::SqliteStore;
use onward_store::rusqlite::Connection;
use serde::{Deserialize, Serialize};

type Anyhow = Box<dyn std::error::Error>;

const ORDERS: u64 = 30;

/// The cents from which an order needs approval.
const LARGE: u64 = 2000;

/// The time that an order waits for approval.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of events in the shop between two kills.
const EVENTS_BETWEEN_KILLS: usize = 100;

/// The deeds for an order. Each is recorded in the store's file; the primary key rejects a deed
/// that is done twice.
const DEEDS: [&str; 5] = ["reserve", "charge", "refund", "release", "ship"];
const TABLE: &str = "CREATE TABLE shop_deed (number INTEGER, deed TEXT, PRIMARY KEY (number, deed))";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    number: u64,
    cents: u64,
}

impl Task for Order {
    const KIND: &'static str = "order";
    const ORCHESTRATION: bool = true;
    type Output = String;

    fn key(&self) -> Option<String> {
        Some(self.number.to_string())
    }
}

/// Runs an order from its reservation to its shipment, or undoes it.
async fn order(order: Order, context: OrchestrationContext) -> Result<String, Failure> {
    deed(&context, "reserve", &order)?.await?;
    if let Err(error) = deed(&context, "charge", &order)?.await {
        deed(&context, "release", &order)?.await?;
        return Ok(format!("undone, for {error}"));
    }
    if order.cents >= LARGE && !is_approved(&context).await? {
        deed(&context, "refund", &order)?.await?;
        deed(&context, "release", &order)?.await?;
        return Ok("undone, for nobody approved it".to_owned());
    }
    deed(&context, "ship", &order)?.await?;
    Ok("shipped".to_owned())
}

/// Waits for an approval until the time is over.
async fn is_approved(context: &OrchestrationContext) -> Result<bool, Failure> {
    context.set_status(&"waits for approval")?;
    match select(context.event::<bool>("approval")?, context.timer(PATIENCE)).await {
        Either::First(approval) => approval,
        Either::Second(()) => Ok(false),
    }
}

fn deed(context: &OrchestrationContext, deed: &str, order: &Order) -> Result<Activity<()>, Failure> {
    Ok(context.activity_task(NewTask { payload: order.number.to_string().into(), ..NewTask::new(deed)? }))
}

/// Does a deed. Its record and the end of the task are committed together.
async fn act(deed: &'static str, context: Context) -> Result<Finished, Failure> {
    let number: u64 = serde_json::from_slice(context.payload())?;
    if deed == "charge" && number.is_multiple_of(7) {
        return Err(Failure::permanent("the card was declined"));
    }
    context
        .finish(move |transaction| {
            transaction.execute("INSERT INTO shop_deed VALUES (?, ?)", (number.cast_signed(), deed))?;
            Output::json(&())
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Anyhow> {
    match std::env::args_os().nth(1) {
        Some(store) => work(Path::new(&store)).await,
        None => shop(&tempfile::tempdir()?.path().join("shop.db")).await,
    }
}

/// Runs a process that works until it is killed.
async fn work(store: &Path) -> Result<(), Anyhow> {
    let engine = Engine::open(store).await?;
    for name in DEEDS {
        engine.handle(name, move |context: Context| act(name, context));
    }
    engine.orchestrate(order);
    Ok(engine.run().await?)
}

async fn shop(path: &Path) -> Result<(), Anyhow> {
    let store = Arc::new(SqliteStore::open(path).await?);
    let deeds = store.connect()?;
    deeds.execute_batch(TABLE)?;
    let engine = Engine::builder().store(store).open().await?;

    let mut orders = Vec::new();
    for number in 1..=ORDERS {
        orders.push(engine.submit(Order { number, cents: number * 100 }).await?);
        // Every third order gets no approval or rejection. The others get theirs before they wait
        // for it.
        if !number.is_multiple_of(3) {
            engine.signal_key("order", &number.to_string(), "approval", &!number.is_multiple_of(5)).await?;
        }
    }
    kill_workers(&engine, path).await?;

    let _worker = Worker::start(path)?;
    for (number, order) in (1..).zip(orders) {
        let end = order.wait().await?;
        check(&deeds, number, &end)?;
    }
    Ok(())
}

/// Starts a worker and kills it while it works, twice. A task that loses three workers in a row
/// would be taken for what kills them.
async fn kill_workers(engine: &Engine, path: &Path) -> Result<(), Anyhow> {
    let mut events = engine.events(EventCursor::START);
    for _ in 0..2 {
        let worker = Worker::start(path)?;
        for _ in 0..EVENTS_BETWEEN_KILLS {
            events.next().await?;
        }
        drop(worker);
        print_line("the worker was killed; another one goes on");
    }
    Ok(())
}

/// A process of this program, killed when it is dropped.
struct Worker(Child);

impl Worker {
    fn start(store: &Path) -> Result<Self, Anyhow> {
        Ok(Self(Command::new(std::env::current_exe()?).arg(store).spawn()?))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints the deeds for an order, and checks them.
fn check(deeds: &Connection, number: u64, end: &str) -> Result<(), Anyhow> {
    let mut statement = deeds.prepare("SELECT deed FROM shop_deed WHERE number = ? ORDER BY rowid")?;
    let done = statement.query_map([number.cast_signed()], |row| row.get::<_, String>(0))?;
    let done = done.collect::<Result<Vec<_>, _>>()?.join(", ");
    print_line(&format!("order {number:>2}: {done:<33} {end}"));
    let expected = match end {
        "shipped" => "reserve, charge, ship",
        "undone, for nobody approved it" => "reserve, charge, refund, release",
        _ => "reserve, release",
    };
    if done == expected { Ok(()) } else { Err(format!("order {number} should have had {expected}").into()) }
}

#[expect(clippy::print_stdout, reason = "its output")]
fn print_line(line: &str) {
    println!("{line}");
}
