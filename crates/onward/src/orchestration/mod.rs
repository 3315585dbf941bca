//! Orchestrations: async functions that survive crashes.
//!
//! An orchestration is an ordinary async function that may run for months. Its history records
//! everything that it awaits: activities (which are [tasks](crate::Task)), timers, signals and
//! other orchestrations. When its process dies, another process runs the code again and feeds it
//! the history, which brings it back to the same point. While its process lives the orchestration
//! stays in memory, and an event is processed without a replay.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use onward::orchestration::{Either, OrchestrationContext, select};
//! use onward::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Charge { cents: u64 }
//!
//! impl Task for Charge {
//!     const KIND: &'static str = "charge";
//!     type Output = String;
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order { id: String, cents: u64 }
//!
//! impl Task for Order {
//!     const KIND: &'static str = "order";
//!     const ORCHESTRATION: bool = true;
//!     type Output = String;
//!
//!     fn key(&self) -> Option<String> {
//!         Some(self.id.clone())
//!     }
//! }
//!
//! async fn order(order: Order, context: OrchestrationContext) -> Result<String, Failure> {
//!     let receipt = context.activity(Charge { cents: order.cents }).await?;
//!     let packed = context.event::<String>("packed")?;
//!     match select(packed, context.timer(Duration::from_secs(7 * 24 * 3600))).await {
//!         Either::First(parcel) => Ok(format!("{receipt}, sent as {}", parcel?)),
//!         Either::Second(()) => Err(Failure::permanent("nobody packed it within a week")),
//!     }
//! }
//!
//! let engine = Engine::builder().memory().open().await?;
//! engine.register(|charge: Charge, _| async move { Ok(format!("paid {}", charge.cents)) });
//! engine.orchestrate(order);
//!
//! let running = engine.submit(Order { id: "A-17".into(), cents: 1999 }).await?;
//! engine.run_until_idle().await?;
//! engine.signal(running.id(), "packed", &"parcel 4").await?;
//! engine.run_until_idle().await?;
//! assert_eq!(running.wait().await?, "paid 1999, sent as parcel 4");
//! # Ok(()) }
//! ```

mod client;
mod code;
mod code_table;
mod remote_code;
pub(crate) mod replay;
mod turn;

pub use client::{CheckFailure, OrchestrationStatus, RecordedHistory, UpdateReply, check_files, check_main};
pub use code::{
    Activity, ActivityError, AnyReply, Either, EventQueue, NextUpdate, OrchestrationContext, Query, Running, Saga,
    Signal, Signalled, Step, Timer, Update, UpdateCall, UpdateQueue, join_all, select, select_all, try_join_all,
};
pub use code_table::OrchestrationOptions;
pub(crate) use code_table::{CodeTable, Registered};
pub use remote_code::{RemoteCode, RemoteDecision, RemoteDecisions, RemoteEnd, RemoteFuture, RemoteReply, RemoteTurn};
pub(crate) use replay::GuardedStore;
pub use replay::{CodeEnd, CompatibilityFlags, HistoryEvent, Nondeterminism, StepEnd, TaskEnd, decode_history};
pub(crate) use turn::{
    CheckIn, Evictor, InstanceCache, OrchestrationTelemetry, Plan, PlannedCode, PlannedTurn, Positioned, TurnAbort,
    TurnOutcome, TurnSlot, TurnWrite, apply_turn, cancel_here, unclaimed,
};
